"""Train a module with state; vmap, scan, split and merge; variables that hold references."""

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

X = np.random.RandomState(0).standard_normal((64, 3)).astype(np.float32)
Y = np.sin(X).sum(1, keepdims=True)


class Net(nnx.Module):
    def __init__(self, rngs):
        self.first, self.last = nnx.Linear(3, 32, rngs=rngs), nnx.Linear(32, 1, rngs=rngs)
        self.norm, self.drop = nnx.BatchNorm(32, rngs=rngs), nnx.Dropout(0.05, rngs=rngs)

    def __call__(self, x):
        return self.last(self.drop(nnx.gelu(self.norm(self.first(x)))))


net = Net(nnx.Rngs(0))
opt = nnx.Optimizer(net, optax.adam(2e-2), wrt=nnx.Param)


@nnx.jit
def step(net, opt):
    value, grads = nnx.value_and_grad(lambda net: jnp.mean((net(X) - Y) ** 2))(net)
    opt.update(net, grads)
    return value


losses = [float(step(net, opt)) for _ in range(100)]
assert losses[-1] < 0.2 * losses[0], losses
assert np.abs(net.norm.mean[...]).max() > 1e-3
net.eval()
graph, state = nnx.split(net)
np.testing.assert_array_equal(nnx.merge(graph, state)(X), net(X))

layers = nnx.vmap(lambda rngs: nnx.Linear(3, 3, rngs=rngs))(nnx.Rngs(0).fork(split=4))
forward = nnx.scan(lambda x, layer: jnp.tanh(layer(x)), in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
expected = X
for w, b in zip(np.asarray(layers.kernel[...]), np.asarray(layers.bias[...]), strict=True):
    expected = np.tanh(expected @ w + b)
np.testing.assert_allclose(forward(jnp.asarray(X), layers), expected, rtol=1e-4, atol=1e-5)


count = nnx.Variable(jnp.zeros(()), use_ref=True) if hasattr(nnx, "use_refs") else nnx.Variable(jnp.zeros(()))


@nnx.jit
def tick(v):
    v[...] += 1


for _ in range(3):
    tick(count)
assert count[...] == 3
