"""Every solver that takes a learning rate descends; L-BFGS, clipping, schedules, losses against their formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

TARGET = jnp.array([0.5, -1.0, 2.0])
NAMES = """sgd adam adamw adamax adamaxw adagrad adafactor adabelief amsgrad fromage lamb lars lion nadam nadamw novograd
optimistic_gradient_descent radam rmsprop rprop sign_sgd sm3 yogi adan""".split()


def loss(p):
    return jnp.sum((p["w"] - TARGET) ** 2) + jnp.sum(p["m"] ** 2)


def run(opt, steps=40):
    params = {"w": jnp.zeros(3), "m": jnp.ones((4, 6))}

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params)
        extra = {"value": value, "grad": grads, "value_fn": loss}
        updates, state = optax.with_extra_args_support(opt).update(grads, state, params, **extra)
        return optax.apply_updates(params, updates), state, value

    state, values = opt.init(params), []
    for _ in range(steps):
        params, state, value = step(params, state)
        values.append(float(value))
    return values


for name in NAMES:
    values = run(getattr(optax, name)(learning_rate=0.02))
    assert np.all(np.isfinite(values)) and values[-1] < values[0], (name, values)
assert run(optax.lbfgs(), 12)[-1] < 1e-6
assert run(optax.contrib.prodigy(1.0), 60)[-1] < 20
assert run(optax.apply_if_finite(optax.adam(0.02), 3))[-1] < 29
assert run(optax.MultiSteps(optax.sgd(0.1), 2))[-1] < 1e-1
clipped, _ = optax.clip_by_global_norm(1.0).update({"a": jnp.array([3.0, 4.0])}, optax.EmptyState())
np.testing.assert_allclose(clipped["a"], [0.6, 0.8], rtol=1e-6)
logits = np.random.RandomState(0).standard_normal((8, 3)).astype(np.float32)
log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
labels = np.arange(8) % 3
got = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
np.testing.assert_allclose(got, -log_p[np.arange(8), labels], rtol=1e-5)
