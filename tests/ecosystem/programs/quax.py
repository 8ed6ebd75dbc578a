"""A library's array type meets functions that know arrays only; units are kept, low rank matrices stay apart."""

import jax
import jax.numpy as jnp
import numpy as np
import quax
from quax.examples import lora, unitful

w = lora.LoraArray(jnp.eye(4), rank=2, key=jax.random.key(0))
x = jnp.arange(4.0)
out = quax.quaxify(lambda w, x: jax.jit(lambda w, x: jnp.dot(w, x))(w, x))(w, x)
np.testing.assert_allclose(out, x, atol=1e-5)
length = unitful.Unitful(jnp.array(3.0), {unitful.meters: 1})
area = quax.quaxify(lambda a, b: a * b)(length, length)
assert area.units == {unitful.meters: 2} and area.array == 9
try:
    quax.quaxify(jnp.add)(length, unitful.Unitful(jnp.array(1.0), {unitful.kilograms: 1}))
except ValueError:
    pass
else:
    raise SystemExit("metres and kilograms were added")
