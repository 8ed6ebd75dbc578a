"""Right uses of the interface: `mypy --strict` and pyright accept each line. `reveal_type` is checked by
`assert_type`."""

from __future__ import annotations

from typing import Any, assert_type

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike, DTypeLike

x = jnp.arange(6.0).reshape(2, 3)
key = jax.random.key(0)

# ---- arrays ----
assert_type(x, Array)
assert_type(x + 1, Array)
assert_type(2.0 * x - np.ones(3), Array)
assert_type(x @ x.T, Array)
assert_type(x[0, ..., None], Array)
assert_type(x > 0, Array)
assert_type(x.shape, tuple[int, ...])
assert_type(x.ndim, int)
assert_type(x.at[0].set(1.0), Array)
assert_type(x.at[0, 1].add(x[0, 0], mode="drop"), Array)
assert_type(x.sum(axis=0, keepdims=True), Array)
assert_type(x.astype(jnp.int32), Array)
assert_type(x.mean(), Array)
assert_type(x.block_until_ready(), Array)
assert_type(float(x[0, 0]), float)

# ---- jax.numpy ----
assert_type(jnp.sin(x), Array)
assert_type(jnp.add(x, 1), Array)
assert_type(jnp.sum(x, axis=(0, 1)), Array)
assert_type(jnp.mean(x, where=x > 0), Array)
assert_type(jnp.quantile(x, 0.5, method="linear"), Array)
assert_type(jnp.zeros((2, 3), dtype="float32"), Array)
assert_type(jnp.ones(3, jnp.bfloat16), Array)
assert_type(jnp.concatenate([x, x], axis=1), Array)
assert_type(jnp.where(x > 0, x, 0), Array)
assert_type(jnp.linalg.norm(x, axis=-1), Array)
values, vectors = jnp.linalg.eigh(x @ x.T)
assert_type(values, Array)
assert_type(jnp.fft.rfft(x), Array)

# ---- jax.random, jax.nn, jax.scipy ----
assert_type(jax.random.normal(key, (2, 3)), Array)
assert_type(jax.random.uniform(key, (2,), minval=0.0, maxval=2.0), Array)
assert_type(jax.random.split(key, 3), Array)
assert_type(jax.nn.relu(x), Array)
assert_type(jax.nn.softmax(x, axis=-1), Array)
assert_type(jax.scipy.stats.norm.logpdf(x, loc=1.0), Array)
assert_type(jax.scipy.special.erf(x), Array)

# ---- jax.lax ----
assert_type(lax.add(x, x), Array)
assert_type(lax.exp(x), Array)
assert_type(lax.stop_gradient(x), Array)
assert_type(lax.reduce_sum(x, (0,)), Array)
carry, rows = lax.scan(lambda c, row: (c + row.sum(), None), jnp.float32(0), x)


# ---- transformations keep the signature ----
def loss(w: Array, batch: Array, scale: float = 1.0) -> Array:
    return scale * jnp.mean((batch @ w) ** 2)


def loss_with_parts(w: Array, batch: Array) -> tuple[Array, dict[str, Array]]:
    return loss(w, batch), {"norm": jnp.linalg.norm(w)}


w = jnp.ones(3)
assert_type(jax.jit(loss)(w, x, scale=2.0), Array)
assert_type(jax.checkpoint(loss)(w, x), Array)
assert_type(jax.vmap(loss, in_axes=(None, 0))(w, x), Array)
gradient: Array = jax.grad(loss)(w, x)
value, slope = jax.value_and_grad(loss)(w, x, scale=0.5)
assert_type(value, Array)
(value, parts), slope = jax.value_and_grad(loss_with_parts, has_aux=True)(w, x)
assert_type(parts, dict[str, Array])
jax.jit(loss).lower(w, x).compile()
jax.jit(loss).clear_cache()
out, pullback = jax.vjp(loss, w, x)
assert_type(out, Array)


@jax.jit
def step(w: Array, rate: float) -> Array:
    slope: Array = jax.grad(loss)(w, x)  # a gradient may be any tree
    return w - rate * slope


assert_type(step(w, 0.1), Array)


@jax.custom_jvp
def clipped(v: Array) -> Array:
    return jnp.clip(v, -1, 1)


@clipped.defjvp
def clipped_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return clipped(*primals), tangents[0]


assert_type(clipped(x), Array)


@jax.tree_util.register_static
class Model:
    """A method may be jitted."""

    @jax.jit
    def predict(self, batch: Array) -> Array:
        return batch * 2


assert_type(Model().predict(x), Array)


# ---- annotations of users ----
def scaled(v: ArrayLike, dtype: DTypeLike = jnp.float32) -> Array:
    return jnp.asarray(v, dtype) * 2


scaled(1)
scaled(np.float32(2), "float16")
scaled(x, np.dtype("int32"))
tree: Any = jax.tree.map(lambda leaf: leaf + 1, {"a": x})
