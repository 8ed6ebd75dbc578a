"""One operation."""

import jax.numpy as jnp

print(float(jnp.sin(1.0)))
