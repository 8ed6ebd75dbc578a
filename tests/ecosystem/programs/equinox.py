"""Filtered transformations train a network; state, error_if, checkpointed loops, serialisation."""

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox.internal import while_loop

X = np.random.RandomState(0).standard_normal((64, 3)).astype(np.float32)
Y = np.sin(X).sum(1, keepdims=True)
model = eqx.nn.MLP(3, 1, 16, 2, key=jax.random.key(0))


@eqx.filter_jit
def step(model):
    value, grads = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(X) - Y) ** 2))(model)
    return value, eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, grads))


losses = []
for _ in range(100):
    value, model = step(model)
    losses.append(float(value))
assert losses[-1] < 0.4 * losses[0], losses

norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, "batch", mode="batch")
out, state = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(X, state)
np.testing.assert_allclose(np.mean(out, 0), 0, atol=1e-4)


def power(x, kind):
    return while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * x), (0, 1.0), kind=kind, max_steps=8)[1]


for kind in ("bounded", "checkpointed"):
    np.testing.assert_allclose(jax.grad(power)(1.1, kind), 5 * 1.1**4, rtol=1e-5)
checked = eqx.filter_jit(lambda x: eqx.error_if(x, x < 0, "is negative"))
assert checked(jnp.float32(1)) == 1
try:
    checked(jnp.float32(-1))
except Exception as e:
    assert "is negative" in str(e)
else:
    raise SystemExit("no error")
file = io.BytesIO()
eqx.tree_serialise_leaves(file, model)
file.seek(0)
assert eqx.tree_equal(eqx.tree_deserialise_leaves(file, model), model)
