"""Wrong uses of the interface: mypy and pyright refuse the lines that are marked so."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

x = jnp.ones((2, 3))
key = jax.random.key(0)


def loss(w: Array, batch: Array) -> Array:
    return jnp.mean((batch @ w) ** 2)


def loss_with_parts(w: Array, batch: Array) -> tuple[Array, int]:
    return loss(w, batch), 1


# misspelt and missing arguments
jnp.sum(x, axsi=0)  # wrong
jnp.quantile(x, 0.5, metod="linear")  # wrong
jnp.zeros((2, 3), dtyp="float32")  # wrong
jnp.concatenate([x, x], dim=1)  # wrong
jax.random.normal(key, (2,), dtyp=3)  # wrong
jax.random.normal()  # wrong
jax.nn.softmax(x, dim=0)  # wrong
x.sum(axes=0)  # wrong
x.at[0].set(1, modes="drop")  # wrong
jnp.sin()  # wrong
jnp.sin(x, x)  # wrong
lax.add(x)  # wrong
jax.scipy.stats.norm.pdf(x, location=0)  # wrong
jax.jit(loss, static_argname="w")  # wrong

# arrays in the place of numbers, and numbers in the place of arrays
n: int = jnp.sum(x)  # wrong
s: str = jnp.tanh(x)  # wrong
d: dict[str, int] = jax.random.split(key)  # wrong
m: np.ndarray = jnp.mean(x)  # wrong
jnp.sum(x, axis=x)  # wrong
jnp.sum(x, axis="0")  # wrong
jnp.zeros(x)  # wrong
jnp.zeros("23")  # wrong
jnp.sin("x")  # wrong
jnp.sin([1.0, 2.0])  # wrong
lax.exp([1.0])  # wrong
x.swapaxes(0, x)  # wrong
len(3 * x.ndim)  # wrong

# attributes that are not there
x.shpae  # wrong
x.at[0].sets(1)  # wrong
jax.jit(loss).lowered  # wrong
jax.jit(loss).lower(x, x, x)  # wrong
jnp.sinn(x)  # wrong
jax.gradd(loss)  # wrong
lax.adds(x, x)  # wrong

# signatures of transformed functions
jax.jit(loss)(x)  # wrong
jax.jit(loss)(x, batches=x)  # wrong
jax.grad(loss)(x)  # wrong
jax.vmap(loss)(x, x, x)  # wrong
jax.checkpoint(loss)("w", x)  # wrong
a, b, c = jax.value_and_grad(loss)(x, x)  # wrong
jax.grad(3)  # wrong
jax.value_and_grad(loss, has_auxx=True)  # wrong
value: int = jax.value_and_grad(loss)(x, x)[0]  # wrong
p, q, r = jax.vjp(loss, x, x)  # wrong
first, second, third = lax.scan(lambda carry, row: (carry, row), x, x)  # wrong
