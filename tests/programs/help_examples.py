"""`help()` shows one example for each function, however it was made, and whichever of its names is looked up first."""

import pydoc

import jax
import jax.numpy as jnp

assert jnp.arccos is jnp.acos and jnp.amax is jnp.max
shown = {
    "jnp.arccos": jnp.acos,  # functions of a table
    "jnp.add": jnp.add,
    "jnp.sum": jnp.sum,
    "jnp.float32": jnp.float32,
    "lax.sin": jax.lax.sin,
    "norm.cdf": jax.scipy.stats.norm.cdf,
    "he_normal": jax.nn.initializers.he_normal,
    "record_event": jax.monitoring.record_event,
    "normal": jax.random.normal,
    "vmap": jax.vmap,  # written out
}
for name, value in shown.items():
    assert pydoc.render_doc(value).count("Examples:\n") == 1, name
    assert value.__doc__.count(">>> ") >= 1, name
