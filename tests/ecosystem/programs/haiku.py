"""Convolution and batch norm with state, an LSTM, attention: trained, under jit and scan."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

X = np.random.RandomState(0).standard_normal((16, 8, 8, 1)).astype(np.float32)
Y = X.mean((1, 2, 3)) > 0


def net(x, train):
    x = hk.Conv2D(4, 3)(x)
    x = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, train))
    return hk.nets.MLP([8, 2])(hk.Flatten()(x))


f = hk.transform_with_state(net)
params, state = f.init(jax.random.PRNGKey(0), X, True)
opt = optax.adam(1e-2)


@jax.jit
def step(params, state, moments):
    def loss(p):
        out, new = f.apply(p, state, None, X, True)
        return optax.softmax_cross_entropy_with_integer_labels(out, Y.astype(int)).mean(), new

    (value, new), grads = jax.value_and_grad(loss, has_aux=True)(params)
    updates, moments = opt.update(grads, moments)
    return optax.apply_updates(params, updates), new, moments, value


moments, losses = opt.init(params), []
for _ in range(40):
    params, state, moments, value = step(params, state, moments)
    losses.append(float(value))
assert losses[-1] < 0.3 * losses[0], losses


def recurrent(x):
    core = hk.LSTM(5)
    out, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))
    return hk.MultiHeadAttention(2, 4, w_init=hk.initializers.RandomNormal(0.1))(out, out, out)


g = hk.without_apply_rng(hk.transform(recurrent))
x = jnp.ones((6, 2, 3))
p = g.init(jax.random.PRNGKey(0), x)
np.testing.assert_allclose(jax.jit(g.apply)(p, x), g.apply(p, x), rtol=1e-4, atol=1e-5)
