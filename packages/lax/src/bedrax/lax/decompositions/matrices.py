"""Common parts of algorithms on batches of matrices: masks, single rows and columns, loops, reflectors.

Loops work on whole matrices with masks, so that one program serves all positions and all batch axes; sizes may be
symbolic. Axes are counted from the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.typing import ArrayLike
from bedrax.lax import matrices


def is_complex(x: Array) -> bool:
    """Whether the elements are complex."""
    return dtypes.is_complex(x.dtype)


def conj(x: Array) -> Array:
    """The conjugate; real arrays are unchanged."""
    return lax.conj(x) if is_complex(x) else x


def real(x: ArrayLike) -> Any:
    """The real part; real arrays are unchanged."""
    return lax.real(x) if is_complex(x) else x


def as_dtype(x: Array, like: Array) -> Array:
    """`x` in the dtype of `like`."""
    return lax.convert_element_type(x, like.dtype)


def column(v: Array) -> Array:
    """Vectors as matrices of one column."""
    return lax.expand_dims(v, (len(v.shape),))


def row(v: Array) -> Array:
    """Vectors as matrices of one row."""
    return lax.expand_dims(v, (len(v.shape) - 1,))


def where(which: Array, x: Array, y: ArrayLike = 0) -> Array:
    """`x` or `y` (an array or a number); `which` and `y` are broadcast to the shape of `x` by NumPy's rules."""
    y = lax.broadcast_like(y, x) if hasattr(y, "shape") else lax.full_like(x, y)
    return lax.select(lax.broadcast_like(which, x), x, y)


def positions(n: int) -> Array:
    """0, 1, ..., n - 1."""
    return lax.iota(np.int32, n)


def at(x: Array, i: Array, axis: int) -> Array:
    """Position `i` along an axis; the result has no such axis."""
    return lax.dynamic_index_in_dim(x, i, axis, keepdims=False, allow_negative_indices=False)


def put(x: ArrayLike, i: Any, value: Any, axis: int) -> Any:
    """`x` with `value` at position `i` of an axis."""
    value = lax.expand_dims(value, (len(x.shape) + axis,))
    return lax.dynamic_update_index_in_dim(x, value, i, axis, allow_negative_indices=False)


def pick(x: Array, chosen: Array, axis: int) -> Array:
    """The element along an axis where the mask `chosen` is true; the mask is true once."""
    return lax.reduce_sum(where(chosen, x), (len(x.shape) + axis,))


def exchanged(x: Array, i: Array, j: Array, axis: int) -> Array:
    """`x` with the positions `i` and `j` of an axis exchanged; `j` has the batch axes of `x`."""
    rank, batch = len(x.shape), len(j.shape)
    if not batch:
        first, second = at(x, i, axis), at(x, j, axis)
        return put(put(x, i, second, axis), j, first, axis)
    others = [d for d in range(batch, rank) if d != rank + axis]
    numbers = positions(x.shape[axis])
    here = lax.expand_dims(lax.expand_dims(numbers == i, range(batch)), others)
    there = lax.expand_dims(lax.expand_dims(numbers, range(batch)) == column(j), others)
    first, second = at(x, i, axis), pick(x, there, axis)
    first, second = (lax.expand_dims(v, (rank + axis,)) for v in (first, second))
    return where(lax.broadcast_like(~here, x), where(~there, x, first), second)


def loop(count: int, body: Callable[..., Any], *state: Array, reverse: bool = False) -> Any:
    """The last of the states ``state = body(i, *state)``, i from 0 up to `count`, or back; `count` may be symbolic."""
    if dims.is_constant_dim(count) and count <= 0:
        return state
    constant = dims.is_constant_dim(count)
    end = np.int32(count) if constant else lax.convert_element_type(dims.dim_as_value(count), np.int32)
    turn = (lambda i: end - np.int32(1) - i) if reverse else (lambda i: i)
    return lax.fori_loop(np.int32(0), end, lambda i, state: tuple(body(turn(i), *state)), state)


def identity(like: Array, rows: int, columns: int) -> Array:
    """Identity matrices with the batch axes and the dtype of `like`."""
    same = column(positions(rows)) == row(positions(columns))
    shape = (*like.shape[:-2], rows, columns)
    return lax.broadcast_in_dim(as_dtype(same, like), shape, (len(shape) - 2, len(shape) - 1))


def diagonal(x: Array) -> Array:
    """The main diagonals of square matrices."""
    n = positions(x.shape[-1])
    return pick(x, column(n) == row(n), -2)


# ---- Householder reflectors (Golub and Van Loan, 5.1) -----------------------------------------------------


def reflector(alpha: Any, x: ArrayLike) -> Any:
    """The (beta, tau, v) with ``(1 - tau [1, v] [1, v]^H)^H [alpha, x] = [beta, 0]``, beta real.

    LAPACK's larfg: tau is 0 where no reflection is needed.
    """
    last = (len(x.shape) - 1,)
    size2 = lambda v: lax.square(lax.real(v)) + lax.square(lax.imag(v)) if is_complex(v) else lax.square(v)
    # Scaled by the largest size, so that squares neither overflow nor vanish.
    scale = lax.max(lax.reduce_max(lax.abs(x), last), lax.abs(alpha))
    scale = where((scale > 0) & lax.is_finite(scale), scale, 1)
    rest = lax.reduce_sum(size2(x / as_dtype(column(scale), x)), last)
    nothing = rest == 0
    if is_complex(x):
        nothing = nothing & (lax.imag(alpha) == 0)
    length = lax.sqrt(size2(alpha / as_dtype(scale, x)) + rest) * scale
    beta = where(real(alpha) < 0, length, -length)
    divisor = where(~nothing, alpha - as_dtype(beta, x), 1)
    tau = where(~nothing, -divisor / as_dtype(where(~nothing, beta, 1), x))
    return where(nothing, real(alpha), beta), tau, x / column(divisor)


def from_left(x: Array, v: Array, tau: Array) -> Array:
    """``x - tau v (v^H x)``."""
    return x - column(column(tau) * v) * matrices.matmul(row(conj(v)), x)


def from_right(x: ArrayLike, v: Any, tau: Any) -> Any:
    """``x - tau (x v) v^H``."""
    return x - matrices.matmul(x, column(v)) * row(column(tau) * conj(v))


def unit(v: Array, i: Array) -> Array:
    """Vectors with a one at position `i`."""
    return where(positions(v.shape[-1]) != i, v, 1)
