"""Sixty nested `jit`s, and five hundred arguments."""

import jax
import jax.numpy as jnp

f = jnp.sin
for _ in range(60):
    f = jax.jit(lambda x, f=f: f(x) + 1)
print(float(f(0.0)), float(jax.grad(f)(0.0)))
print(float(jax.jit(lambda *a: sum(a))(*[1.0] * 500)))
