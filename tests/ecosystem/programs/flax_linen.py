"""Train a network with batch norm and dropout; scan and remat over layers agree; weights go through bytes and back."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax import serialization
from flax.training import train_state

X = np.random.RandomState(0).standard_normal((64, 3)).astype(np.float32)
Y = np.sin(X).sum(1, keepdims=True)


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.BatchNorm(use_running_average=not train)(nn.Dense(32)(x))
        x = nn.Dropout(0.05, deterministic=not train)(nn.gelu(x))
        return nn.Dense(1)(x)


class State(train_state.TrainState):
    stats: dict


net = Net()
variables = net.init(jax.random.key(0), X, False)
state = State.create(
    apply_fn=net.apply, params=variables["params"], tx=optax.adam(2e-2), stats=variables["batch_stats"]
)


@jax.jit
def step(state, key):
    def loss(params):
        given = {"params": params, "batch_stats": state.stats}
        out, new = state.apply_fn(given, X, True, rngs={"dropout": key}, mutable=["batch_stats"])
        return jnp.mean((out - Y) ** 2), new["batch_stats"]

    (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, stats=stats), value


losses = []
for key in jax.random.split(jax.random.key(1), 100):
    state, value = step(state, key)
    losses.append(float(value))
assert losses[-1] < 0.2 * losses[0], losses
back = serialization.from_bytes(state.params, serialization.to_bytes(state.params))
jax.tree.map(np.testing.assert_array_equal, back, state.params)


class Block(nn.Module):
    @nn.compact
    def __call__(self, c, _):
        return jnp.tanh(nn.Dense(3)(c)), None


class Stack(nn.Module):
    block: type

    @nn.compact
    def __call__(self, x):
        return nn.scan(self.block, variable_axes={"params": 0}, split_rngs={"params": True}, length=4)(name="b")(
            x, None
        )[0]


v = Stack(Block).init(jax.random.key(0), X)
expected = X
for w, b in zip(*(np.asarray(v["params"]["b"]["Dense_0"][k]) for k in ("kernel", "bias")), strict=True):
    expected = np.tanh(expected @ w + b)
for block in (Block, nn.remat(Block)):
    np.testing.assert_allclose(Stack(block).apply(v, X), expected, rtol=1e-4, atol=1e-5)


class Choice(nn.Module):
    """A lifted conditional whose branches hold layers."""

    @nn.compact
    def __call__(self, x, first):
        one, two = nn.Dense(2), nn.Dense(2)
        one(x), two(x)
        return nn.cond(first, lambda m, x: one(x), lambda m, x: two(x), self, x)


v = Choice().init(jax.random.key(2), X, True)
for first, name in ((True, "Dense_0"), (False, "Dense_1")):
    p = v["params"][name]
    np.testing.assert_allclose(Choice().apply(v, X, first), X @ p["kernel"] + p["bias"], rtol=1e-4, atol=1e-5)
