"""Prints how often a newer jaxlib warns."""

import warnings

import jaxlib.version

jaxlib.version.__version__ = "99.1"
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import jax
    import jax.export
    import jax.numpy as jnp

    assert jax.jit(lambda x: x + 1)(jnp.ones(2)).sum() == 4
print(sum("99.1 is newer than" in str(w.message) for w in seen))
