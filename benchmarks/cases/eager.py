"""Single operations on concrete arrays: the overhead of a call."""

from ..case import Case

SETUP = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
x = jnp.arange(8.0)
y = jnp.ones(8)
m = jnp.ones((8, 8))
idx = jnp.array([1, 5, 2])
i = jnp.int32(3)
key = jax.random.key(0)
"""
STATEMENTS = (
    "jnp.add(x, y)",
    "x + y",
    "x * 2.0",
    "jnp.sin(x)",
    "lax.sin(x)",
    "m @ m",
    "x.sum()",
    "x.mean()",
    "jnp.var(x)",
    "x // y",
    "jax.nn.log_softmax(x)",
    "jnp.linspace(0.0, 1.0, 8)",
    "jnp.where(x > 2, x, y)",
    "x[3]",
    "x[2:5]",
    "x[idx]",
    "x[i]",
    "x.at[3].set(1.0)",
    "x.at[idx].add(1.0)",
    "jnp.zeros((8, 8))",
    "jnp.concatenate([x, y])",
    "x.reshape(2, 4)",
    "jnp.asarray(np.ones(8, np.float32))",
    "np.asarray(x + y)",
    "float(x[0])",
    "jax.random.normal(key, (8,))",
)

CASES = [Case(f"eager/{statement}", statement, SETUP, target=1.0) for statement in STATEMENTS]
