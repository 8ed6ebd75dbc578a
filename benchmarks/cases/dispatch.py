"""Calls of a function that is compiled already."""

from ..case import Case

SETUP = """
import jax, jax.numpy as jnp
xs1 = [jnp.float32(i) for i in range(1)]
xs10 = [jnp.float32(i) for i in range(10)]
xs100 = [jnp.float32(i) for i in range(100)]
f = jax.jit(lambda *xs: xs[0] + xs[-1])
same = jax.jit(lambda *xs: xs)
tree = {f"layer{i}": {"kernel": jnp.ones((4, 4)), "bias": jnp.ones(4)} for i in range(10)}
g = jax.jit(lambda tree: tree["layer0"]["bias"] + 1)
h = jax.jit(lambda x, n: x * n, static_argnums=1)
k = jax.jit(lambda x, *, scale: x * scale)
x = jnp.ones(8)
donating = jax.jit(lambda x: x + 1, donate_argnums=0)
box = [x + 0]
scalar = 3.0
"""
STATEMENTS = {
    "1 argument": "f(*xs1)",
    "10 arguments": "f(*xs10)",
    "100 arguments": "f(*xs100)",
    "10 arguments and 10 results": "same(*xs10)",
    "a pytree of 20 arrays": "g(tree)",
    "a static argument": "h(x, 3)",
    "a keyword argument": "k(x, scale=x)",
    "a Python scalar": "f(scalar)",
    "a donated argument": "box[0] = donating(box[0])",
}

CASES = [Case(f"jit dispatch/{name}", statement, SETUP, target=1.0) for name, statement in STATEMENTS.items()]
