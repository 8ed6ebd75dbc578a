"""Options that are declared late cause no new trace."""

import jax
import jax.numpy as jnp

traced = []
f = jax.jit(lambda x: (traced.append(1), x + 1)[1])
f(jnp.ones(3))
jax.config.values  # all owners are imported, all options are declared
import jax.nn
import jax.random
import jax.scipy.stats

f(jnp.ones(3))
assert len(traced) == 1, traced
