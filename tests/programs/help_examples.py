"""`help()` shows examples, once for names of one function."""

import pydoc

import jax
import jax.numpy as jnp

assert "Examples:\n" in pydoc.render_doc(jnp.arccos) and jnp.arccos is jnp.acos
assert jnp.acos.__doc__.count("Examples:") == 1
assert "1, 10" in pydoc.render_doc(jax.vmap) or ">>> jax.vmap" in pydoc.render_doc(jax.vmap)
