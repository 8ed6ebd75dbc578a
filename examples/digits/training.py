"""Training: AdamW with a schedule, one `lax.scan` over the minibatches of an epoch."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from .data import Digits
from .model import Model

BATCH = 64


class State(NamedTuple):
    """Everything that training changes; donated to every step."""

    params: Any
    stats: Any
    optimizer: Any


def make_optimizer(epochs: int, examples: int) -> optax.GradientTransformation:
    """AdamW. Its learning rate rises over a tenth of the steps and then falls as a cosine."""
    steps = epochs * (examples // BATCH)
    schedule = optax.warmup_cosine_decay_schedule(0.0, 4e-3, steps // 10, steps, 1e-5)
    return optax.adamw(schedule, weight_decay=1e-3)


def init(model: Model, optimizer: optax.GradientTransformation, key: jax.Array) -> State:
    """A random initial state."""
    params, stats = model.init(key)
    return State(params, stats, optimizer.init(params))


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def run_epoch(model, optimizer, state, images, labels, key):
    """Train on every full minibatch of one random order. Returns the state and the mean loss."""
    shuffle_key, dropout_key = jax.random.split(key)
    steps = len(labels) // BATCH
    order = jax.random.permutation(shuffle_key, len(labels))[: steps * BATCH].reshape(steps, BATCH)

    def step(state, inputs):
        indices, key = inputs

        def loss_fn(params):
            logits, stats = model.apply(params, state.stats, images[indices], key)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels[indices])
            return losses.mean(), stats

        (loss, stats), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        updates, opt_state = optimizer.update(grads, state.optimizer, state.params)
        return State(optax.apply_updates(state.params, updates), stats, opt_state), loss

    state, losses = jax.lax.scan(step, state, (order, jax.random.split(dropout_key, steps)))
    return state, losses.mean()


def train(
    model: Model,
    optimizer: optax.GradientTransformation,
    state: State,
    digits: Digits,
    epochs: int,
    key: jax.Array,
    after_epoch: Callable[[float, float], None],
) -> State:
    """Train from `state`. Calls `after_epoch` with the mean training loss and the test accuracy after each epoch."""
    images, labels = jnp.asarray(digits.train_images), jnp.asarray(digits.train_labels)
    for epoch in range(epochs):
        state, loss = run_epoch(model, optimizer, state, images, labels, jax.random.fold_in(key, epoch))
        predicted = predict(model, state.params, state.stats, digits.test_images).argmax(-1)
        after_epoch(float(loss), float((predicted == digits.test_labels).mean()))
    return state


@partial(jax.jit, static_argnums=0)
def predict(model, params, stats, images):
    """Class probabilities, `(n, 8, 8, 1)` to `(n, 10)`."""
    logits, _ = model.apply(params, stats, images, None)
    return jax.nn.softmax(logits)


@partial(jax.jit, static_argnums=0)
def gradient_norms(model, params, stats, images, labels):
    """The norm of the gradient of each single example with respect to the parameters, of shape `(n,)`."""

    def loss(params, image, label):
        logits, _ = model.apply(params, stats, image[None], None)
        return optax.softmax_cross_entropy_with_integer_labels(logits[0], label)

    per_example = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))
    return jax.vmap(optax.global_norm)(per_example(params, images, labels))
