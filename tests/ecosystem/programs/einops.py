"""Rearranging, reducing and packing, of arrays and of tracers."""

import einops
import jax
import jax.numpy as jnp
import numpy as np

x = jnp.arange(24.0).reshape(2, 3, 4)
np.testing.assert_array_equal(einops.rearrange(x, "a b c -> (a c) b"), np.asarray(x).transpose(0, 2, 1).reshape(8, 3))
np.testing.assert_allclose(jax.jit(lambda x: einops.reduce(x, "a b c -> b", "mean"))(x), np.asarray(x).mean((0, 2)))
assert einops.repeat(x, "a b c -> a b c d", d=5).shape == (2, 3, 4, 5)
gradient = jax.grad(lambda x: einops.einsum(x, x, "a b c, a b c ->"))(x)
np.testing.assert_allclose(gradient, 2 * x)
packed, shapes = einops.pack([x, x[:, 0]], "a * c")
assert packed.shape == (2, 4, 4) and einops.unpack(packed, shapes, "a * c")[1].shape == (2, 4)
