"""Tensor products and spherical harmonics turn as their inputs are turned."""

import e3nn_jax as e3nn
import jax
import numpy as np

turn = e3nn.rand_matrix(jax.random.PRNGKey(0))
x = jax.random.normal(jax.random.PRNGKey(1), (5, 3))
harmonics = jax.jit(lambda x: e3nn.spherical_harmonics("0e + 1o + 2e", x, normalize=True))
np.testing.assert_allclose(harmonics(x @ turn.T).array, harmonics(x).transform_by_matrix(turn).array, atol=1e-4)
a = e3nn.normal("2x0e + 1o + 2e", jax.random.PRNGKey(2), (5,))
b = e3nn.normal("1o", jax.random.PRNGKey(3), (5,))
product = e3nn.tensor_product(a, b)
turned = e3nn.tensor_product(a.transform_by_matrix(turn), b.transform_by_matrix(turn))
np.testing.assert_allclose(turned.array, product.transform_by_matrix(turn).array, atol=1e-4)
assert e3nn.tensor_product("1o", "1o") == e3nn.Irreps("0e + 1e + 2e")
gradient = jax.grad(lambda x: harmonics(x).array.sum())(x)
assert np.all(np.isfinite(gradient))
