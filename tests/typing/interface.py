"""A program that uses the interface, with the types that its author expects.

`nox -s types` checks it with mypy. The test suite runs it (`tests/test_typing.py`) and checks that the
values have these types, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Params = dict[str, jax.Array]


def init(key: jax.Array, sizes: Sequence[int]) -> Params:
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = list(itertools.pairwise(sizes))
    return {f"w{i}": jax.random.normal(k, s) for i, (k, s) in enumerate(zip(keys, shapes, strict=True))}


def predict(params: Params, x: jax.Array) -> jax.Array:
    for name in sorted(params):
        x = jnp.tanh(x @ params[name])
    return x


def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((predict(params, x) - y) ** 2)


def main() -> dict[str, Any]:
    params = init(jax.random.key(0), (3, 4, 2))
    x: jax.Array = jnp.arange(15.0).reshape(5, 3)
    y: jax.Array = jnp.zeros((5, 2), dtype=jnp.float32)
    gradient: Callable[..., Params] = jax.jit(jax.grad(loss))
    step: Params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient(params, x, y))
    mapped: jax.Array = jax.vmap(predict, in_axes=(None, 0))(step, x)
    shape: tuple[int, ...] = mapped.shape
    dtype: np.dtype = mapped.dtype
    leaves, treedef = jax.tree.flatten(step)
    again: Params = jax.tree.unflatten(treedef, leaves)
    described: jax.ShapeDtypeStruct = jax.eval_shape(predict, again, x)
    total, _ = jax.lax.scan(lambda carry, row: (carry + row.sum(), None), jnp.float32(0), mapped)
    number: float = float(total)
    host: np.ndarray = np.asarray(mapped)
    return {"shape": shape, "dtype": dtype, "described": described, "number": number, "host": host}
