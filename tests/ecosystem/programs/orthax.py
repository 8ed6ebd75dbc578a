"""Orthogonal polynomials: values, products, roots and quadrature against NumPy; fits and gradients under jit."""

import jax
import jax.numpy as jnp
import numpy as np
import orthax

x, c = np.linspace(-1, 1, 7, dtype=np.float32), np.array([1.0, 2.0, -3.0, 0.5], np.float32)
for name in ("chebyshev", "legendre", "hermite", "hermite_e", "laguerre", "polynomial"):
    ours, theirs = getattr(orthax, name), getattr(np.polynomial, name)
    short = {"chebyshev": "cheb", "legendre": "leg", "hermite": "herm", "hermite_e": "herme", "laguerre": "lag"}
    prefix = short.get(name, "poly")

    def of(module, function):
        return getattr(module, prefix + function)  # noqa: B023 (called in this round only)

    for function, arguments in {"val": (x, c), "der": (c,), "int": (c,), "mul": (c, c), "vander": (x, 3)}.items():
        expected = of(theirs, function)(*arguments)
        static = (1,) if function == "vander" else ()
        np.testing.assert_allclose(of(ours, function)(*arguments), expected, rtol=2e-4, atol=1e-4)
        again = jax.jit(of(ours, function), static_argnums=static)(*arguments)
        np.testing.assert_allclose(again, expected, rtol=2e-4, atol=1e-4)
    slope = jax.vmap(jax.grad(lambda at: of(ours, "val")(at, c)))(x)  # noqa: B023 (called in this round only)
    np.testing.assert_allclose(slope, of(theirs, "val")(x, of(theirs, "der")(c)), rtol=2e-3, atol=1e-3)
    fit = of(ours, "fit")(x, of(theirs, "val")(x, c), 3)
    np.testing.assert_allclose(fit, c, rtol=1e-2, atol=1e-2)
nodes, weights = orthax.legendre.leggauss(6)
np.testing.assert_allclose(jnp.sum(weights * jnp.exp(nodes)), np.e - 1 / np.e, rtol=1e-5)
