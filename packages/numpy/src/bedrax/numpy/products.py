"""Products of arrays: dot, matmul, similar products, tensordot.

Every function here reduces to `lax.dot_general`. A *plan* maps shapes to dimension numbers. It is computed once
per pair of shapes and cached, so that a call costs little more than binding the primitive.
"""

from __future__ import annotations

import functools
import itertools
import operator
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes, source
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.lax import lattice
from bedrax.lax.primitives.contractions import Precision, canonical_precision, dot_general_p
from bedrax.numpy.arguments import axis_index, refuse_out, typed
from bedrax.numpy.diagonals import diagonal_number, masked_diagonal
from bedrax.numpy.einstein import einsum
from bedrax.numpy.reductions import wide_integer

__all__ = [
    "cross",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "multi_dot",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
]


def _result_type(x, y, preferred) -> tuple[np.dtype, bool]:
    if preferred is not None:
        return dtypes.explicit_dtype(preferred, "preferred_element_type"), False
    if x.dtype == y.dtype and not (x.weak_type and y.weak_type):
        return x.dtype, False
    return lattice.promote((x.dtype, y.dtype), (x.weak_type, y.weak_type))


# Pairs of operands


class _Plan(NamedTuple):
    """Steps of a product of two arrays: drop dimensions of size 1, `dot_general`, transpose."""

    numbers: tuple[Any, ...]
    squeeze_lhs: tuple[Any, ...] = ()
    squeeze_rhs: tuple[Any, ...] = ()
    permutation: tuple[Any, ...] | None = None


def _apply(plan: _Plan, a, b, x, y, precision, preferred, out_sharding=None):
    if out_sharding is not None:
        return lax.placed_call(out_sharding, lambda a, b: _apply(plan, a, b, x, y, precision, preferred), a, b)
    dtype, weak = _result_type(x, y, preferred)
    if plan.squeeze_lhs:
        a = lax.squeeze(a, plan.squeeze_lhs)
    if plan.squeeze_rhs:
        b = lax.squeeze(b, plan.squeeze_rhs)
    permutation = plan.permutation
    out = dot_general_p.bind(
        a, b, dimension_numbers=plan.numbers, precision=canonical_precision(precision), preferred_element_type=dtype
    )
    if permutation is not None:
        out = lax.transpose(out, permutation)
    return lax.convert_to(out, dtype, True) if weak else out


@functools.lru_cache(4096)
def _dot_plan(m: int, n: int) -> _Plan:
    if not m or not n:
        return _Plan((((), ()), ((), ())))
    return _Plan((((m - 1,), (max(n - 2, 0),)), ((), ())))


@one_program(static=("precision", "preferred_element_type", "out_sharding"))
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: str | None = None,
    preferred_element_type: type | None = None,
    out_sharding: Any = None,
) -> Array:
    """Sum of products over the last axis of `a` and the second to last axis of `b` (its only one for rank 1).

    Args:
      a, b: arrays; a scalar multiplies the other operand.
      precision: see `jax.lax.Precision`.
      preferred_element_type: dtype of the result; default is the promoted dtype of the operands.
      out_sharding: optional placement of the result.

    Returns:
      An array of shape ``a.shape[:-1] + b.shape[:-2] + b.shape[-1:]``.

    Raises:
      TypeError: an operand is not an array, or the contracted sizes differ.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.dot(x, jnp.array([1, 10]))
      Array([21, 43], dtype=int32)
      >>> jnp.dot(x, x)
      Array([[ 7, 10],
             [15, 22]], dtype=int32)
    """
    a, x = typed("dot", 0, a)
    b, y = typed("dot", 1, b)
    plan = _dot_plan(len(x.shape), len(y.shape))
    return _apply(plan, a, b, x, y, precision, preferred_element_type, out_sharding)


@functools.lru_cache(4096)
def _matmul_plan(xs: tuple, ys: tuple) -> _Plan:
    m, n = len(xs), len(ys)
    for i, rank in enumerate((m, n)):
        if not rank:
            raise ValueError(f"matmul input operand {i} must have ndim at least 1, but it has ndim 0")
    # A missing matrix dimension and a batch dimension of size 1 are both left out of the contraction.
    lhs_batch, rhs_batch = list(range(max(m - 2, 0))), list(range(max(n - 2, 0)))
    rank = max(len(lhs_batch), len(rhs_batch))
    lhs_at = [None] * (rank - len(lhs_batch)) + lhs_batch
    rhs_at = [None] * (rank - len(rhs_batch)) + rhs_batch
    one = lambda shape, d: d is not None and dims.definitely_equal(shape[d], 1)
    drop_lhs, drop_rhs = [], []
    for k, (i, j) in enumerate(zip(lhs_at, rhs_at, strict=True)):
        if i is None or j is None or dims.definitely_equal(xs[i], ys[j]):
            continue
        if one(xs, i):
            drop_lhs.append(i)
            lhs_at[k] = None
        elif one(ys, j):
            drop_rhs.append(j)
            rhs_at[k] = None
        else:
            raise ValueError(f"matmul: the batch axes of shapes {xs} and {ys} do not broadcast together")
    # Positions after squeezing, then dimension numbers and where each dimension of the product goes.
    lhs_pos = {d: p for p, d in enumerate(d for d in range(m) if d not in drop_lhs)}
    rhs_pos = {d: p for p, d in enumerate(d for d in range(n) if d not in drop_rhs)}
    both = [k for k in range(rank) if lhs_at[k] is not None and rhs_at[k] is not None]
    only_lhs = [k for k in range(rank) if rhs_at[k] is None]
    only_rhs = [k for k in range(rank) if lhs_at[k] is None]
    contract = lhs_pos[m - 1], rhs_pos[max(n - 2, 0)]
    batch = tuple(lhs_pos[lhs_at[k]] for k in both), tuple(rhs_pos[rhs_at[k]] for k in both)
    order = [*both, *only_lhs, *([rank] if m > 1 else []), *only_rhs, *([rank + 1] if n > 1 else [])]
    permutation = tuple(sorted(range(len(order)), key=order.__getitem__))
    return _Plan(
        (((contract[0],), (contract[1],)), batch),
        tuple(drop_lhs),
        tuple(drop_rhs),
        None if permutation == tuple(range(len(order))) else permutation,
    )


@one_program(static=("precision", "preferred_element_type", "out_sharding"))
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: str | None = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Matrix product, broadcast over leading batch dimensions; vectors act as a row or a column.

    Args:
      a: array of shape ``[k]`` or ``[..., m, k]``.
      b: array of shape ``[k]`` or ``[..., k, n]``.
      precision, preferred_element_type, out_sharding: as for `dot`.

    Returns:
      An array of shape ``[..., m, n]``, without ``m`` or ``n`` where the operand is a vector.

    Raises:
      ValueError: an operand is a scalar, or batch dimensions do not broadcast.
      TypeError: an operand is not an array, or the contracted sizes differ.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.matmul(x, x)
      Array([[ 7, 10],
             [15, 22]], dtype=int32)
      >>> jnp.matmul(jnp.ones((5, 2, 3)), jnp.ones((3, 4))).shape
      (5, 2, 4)

      >>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
      Array([21, 43], dtype=int32)
    """
    a, x = typed("matmul", 0, a)
    b, y = typed("matmul", 1, b)
    plan = _matmul_plan(x.shape, y.shape)
    return _apply(plan, a, b, x, y, precision, preferred_element_type, out_sharding)


@one_program(static=("precision", "preferred_element_type"))
def vdot(a: ArrayLike, b: ArrayLike, *, precision: str | None = None, preferred_element_type: Any = None) -> Array:
    """Sum of ``conj(a) * b`` over all elements; both operands are flattened.

    Args:
      a, b: arrays of equal size.
      precision, preferred_element_type: as for `dot`.

    Returns:
      An array of shape ().

    Raises:
      TypeError: the operands differ in size.

    Examples:

      >>> jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 3]))
      Array(7.+0.j, dtype=complex64)
    """
    a, x = typed("vdot", 0, a)
    b, y = typed("vdot", 1, b)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        a = lax.conj(a)
    return dot(_ravel(a, x), _ravel(b, y), precision=precision, preferred_element_type=preferred_element_type)


def _ravel(x, aval):
    return x if aval.ndim == 1 else lax.reshape(x, (aval.size,))


@one_program(static=("precision", "preferred_element_type"))
def inner(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum of products over the last axes of both operands; a scalar multiplies the other operand.

    Args:
      a, b: arrays; the lengths of their last axes are equal.
      precision, preferred_element_type: as for `dot`.

    Returns:
      An array of shape ``a.shape[:-1] + b.shape[:-1]``.

    Raises:
      TypeError: an operand is not an array, or the contracted sizes differ.

    Examples:

      >>> jnp.inner(jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]]))
      Array([11, 17], dtype=int32)
    """
    a, x = typed("inner", 0, a)
    b, y = typed("inner", 1, b)
    plan = _Plan((((x.ndim - 1,), (y.ndim - 1,)) if x.ndim and y.ndim else ((), ()), ((), ())))
    return _apply(plan, a, b, x, y, precision, preferred_element_type)


@one_program(static=("out",))
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """All products of an element of `a` with one of `b`: a matrix of shape ``[a.size, b.size]``.

    Args:
      a, b: arrays, flattened.
      out: must be None.

    Examples:

      >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4, 5]))
      Array([[ 3,  4,  5],
             [ 6,  8, 10]], dtype=int32)
    """
    refuse_out("outer", out)
    a, x = typed("outer", 0, a)
    b, y = typed("outer", 1, b)
    shape = (x.size, y.size)
    a, b = _promoted(a, b, x, y)
    return _times(
        lax.broadcast_in_dim(lax.reshape(a, shape[:1]), shape, (0,)),
        lax.broadcast_in_dim(lax.reshape(b, shape[1:]), shape, (1,)),
    )


def _promoted(a, b, x, y):
    dtype, weak = _result_type(x, y, None)
    return lax.convert_to(a, dtype, weak), lax.convert_to(b, dtype, weak)


def _times(a, b):
    return lax.bitwise_and(a, b) if aval_of(a).dtype == np.bool_ else lax.mul(a, b)


@one_program(static=("axis", "precision", "preferred_element_type"))
def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Sum of ``conj(x1) * x2`` along one axis, broadcast over the others.

    Args:
      x1, x2: arrays of rank 1 at least.
      axis: the axis of the vectors in both.
      precision, preferred_element_type: as for `dot`.

    Raises:
      ValueError: an operand is a scalar, the sizes along the axis differ, or the rest does not broadcast.

    Examples:

      >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
      Array([21, 43], dtype=int32)
    """
    x1, x = typed("jnp.vecdot", 0, x1)
    x2, y = typed("jnp.vecdot", 1, x2)
    if not x.ndim or not y.ndim:
        raise ValueError(f"vecdot needs operands of rank 1 or more, got shapes {x.shape} and {y.shape}")
    at1, at2 = axis_index(axis, x.ndim), axis_index(axis, y.ndim)
    if not dims.definitely_equal(x.shape[at1], y.shape[at2]):
        raise ValueError(f"vecdot needs equal sizes along axis {axis}, got shapes {x.shape} and {y.shape}")
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        x1 = lax.conj(x1)
    return einsum(
        "...i,...i",
        _to_last(x1, at1, x.ndim),
        _to_last(x2, at2, y.ndim),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _to_last(x, axis: int, ndim: int):
    if axis == ndim - 1:
        return x
    return lax.transpose(x, (*[d for d in range(ndim) if d != axis], axis))


@one_program
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Product of matrices ``[..., m, n]`` with vectors ``[..., n]``, broadcast over the leading dimensions.

    Args:
      x1: the matrices, of shape ``[..., m, n]``.
      x2: the vectors, of shape ``[..., n]``.

    Returns:
      An array of shape ``[..., m]``.

    Raises:
      ValueError: the ranks are lower, the contracted sizes differ, or the rest does not broadcast.

    Examples:

      >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
      Array([21, 43], dtype=int32)
    """
    x1, x = typed("matvec", 0, x1)
    x2, y = typed("matvec", 1, x2)
    if x.ndim < 2 or y.ndim < 1:
        raise ValueError(f"matvec needs shapes [..., m, n] and [..., n], got {x.shape} and {y.shape}")
    return einsum("...mn,...n->...m", x1, x2)


@one_program
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Product of conjugated vectors ``[..., n]`` with matrices ``[..., n, m]``, broadcast over the rest.

    Args:
      x1: the vectors, of shape ``[..., n]``.
      x2: the matrices, of shape ``[..., n, m]``.

    Returns:
      An array of shape ``[..., m]``.

    Raises:
      ValueError: the ranks are lower, the contracted sizes differ, or the rest does not broadcast.

    Examples:

      >>> jnp.vecmat(jnp.array([1, 10]), jnp.array([[1, 2], [3, 4]]))
      Array([31, 42], dtype=int32)
    """
    x1, x = typed("vecmat", 0, x1)
    x2, y = typed("vecmat", 1, x2)
    if x.ndim < 1 or y.ndim < 2:
        raise ValueError(f"vecmat needs shapes [..., n] and [..., n, m], got {x.shape} and {y.shape}")
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        x1 = lax.conj(x1)
    return einsum("...n,...nm->...m", x1, x2)


@one_program(static=("axes", "precision", "preferred_element_type", "out_sharding"))
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[Any] = 2,
    *,
    precision: Precision | None = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sum of products over chosen axes.

    Args:
      a, b: arrays.
      axes: a number N, for the last N axes of `a` and the first N of `b` (none if N is negative); or a pair of
        axes or of sequences of axes, those of `a` and those of `b` in the same order.
      precision, preferred_element_type, out_sharding: as for `dot`.

    Returns:
      An array with the remaining axes of `a`, then those of `b`.

    Raises:
      TypeError: `axes` is none of these, or more axes than there are, or contracted sizes differ.

    Examples:

      >>> x = jnp.ones((2, 3, 4))
      >>> jnp.tensordot(x, x, axes=[(1, 2), (1, 2)])
      Array([[12., 12.],
             [12., 12.]], dtype=float32)
    """
    a, x = typed("tensordot", 0, a)
    b, y = typed("tensordot", 1, b)
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ValueError(f"tensordot needs axes of length 2, one entry per operand, got {axes}")
        pair = [tuple(group) if isinstance(group, (tuple, list, np.ndarray)) else (group,) for group in axes]
        if len(pair[0]) != len(pair[1]):
            raise ValueError(f"tensordot needs as many axes of one operand as of the other, got {axes}")
        lhs, rhs = (tuple(axis_index(d, v.ndim) for d in group) for group, v in zip(pair, (x, y), strict=True))
    else:
        try:
            count = max(operator.index(axes), 0)
        except TypeError:
            raise TypeError(f"tensordot axes argument must be an int or a pair of sequences, got {axes!r}") from None
        if count > min(x.ndim, y.ndim):
            raise TypeError(f"Number of tensordot axes (axes {count}) exceeds input ranks ({x.shape} and {y.shape})")
        lhs, rhs = tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    return _apply(_Plan(((lhs, rhs), ((), ()))), a, b, x, y, precision, preferred_element_type, out_sharding)


@one_program
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Kronecker product: blocks of `b`, each scaled by an element of `a`; a missing leading axis has size 1.

    Args:
      a, b: arrays.

    Returns:
      An array of the higher rank; each of its lengths is the product of the two.

    Examples:

      >>> jnp.kron(jnp.array([1, 10]), jnp.array([[1, 2], [3, 4]]))
      Array([[ 1,  2, 10, 20],
             [ 3,  4, 30, 40]], dtype=int32)
    """
    a, x = typed("kron", 0, a)
    b, y = typed("kron", 1, b)
    a, b = _promoted(a, b, x, y)
    rank = max(x.ndim, y.ndim)
    xs, ys = (1,) * (rank - x.ndim) + x.shape, (1,) * (rank - y.ndim) + y.shape
    shape = tuple(d for pair in zip(xs, ys, strict=True) for d in pair)
    a = lax.broadcast_in_dim(lax.reshape(a, xs), shape, tuple(range(0, 2 * rank, 2)))
    b = lax.broadcast_in_dim(lax.reshape(b, ys), shape, tuple(range(1, 2 * rank, 2)))
    return lax.reshape(_times(a, b), tuple(m * n for m, n in zip(xs, ys, strict=True)))


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """Cross product of vectors of 3 elements, broadcast over the other axes.

    A vector of 2 elements is extended by a third element, 0. If both vectors have 2 elements, the result is the third
    element of the product, without an axis. Vectors of 2 elements are deprecated.

    Args:
      a, b: arrays.
      axisa, axisb, axisc: the axis of the vectors in `a`, in `b` and in the result.
      axis: one value for all three.

    Raises:
      ValueError: vectors of another length.

    Examples:

      >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
      Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    out = _cross(a, b, axisa, axisb, axisc)
    lengths = aval_of(a).shape[axisa], aval_of(b).shape[axisb]
    if 2 in lengths:
        warnings.warn(
            f"jnp.cross of vectors of 2 elements is deprecated, got lengths {lengths}; append a zero to each vector",
            DeprecationWarning,
            stacklevel=source.stacklevel(),
        )
    return out


@one_program(static=("axisa", "axisb", "axisc"))
def _cross(a: ArrayLike, b: ArrayLike, axisa: int, axisb: int, axisc: int) -> Array:
    a, x = typed("cross", 0, a)
    b, y = typed("cross", 1, b)
    a, b = _promoted(a, b, x, y)
    axisa, axisb = axis_index(axisa, x.ndim), axis_index(axisb, y.ndim)
    n, m = x.shape[axisa], y.shape[axisb]
    if n not in (2, 3) or m not in (2, 3):
        raise ValueError(f"Dimension must be either 2 or 3 for cross product, got {n} and {m}")
    us = [lax.index_in_dim(a, i, axisa, keepdims=False) for i in range(n)]
    vs = [lax.index_in_dim(b, i, axisb, keepdims=False) for i in range(m)]
    shape = lax.broadcast_shapes(aval_of(us[0]).shape, aval_of(vs[0]).shape)
    widen = lambda v: (
        v if v is None else lax.broadcast_in_dim(v, shape, range(len(shape) - aval_of(v).ndim, len(shape)))
    )
    u0, u1, u2 = map(widen, (us + [None])[:3])
    v0, v1, v2 = map(widen, (vs + [None])[:3])
    last = lax.sub(lax.mul(u0, v1), lax.mul(u1, v0))
    if u2 is None and v2 is None:
        return last
    times = lambda p, q: None if p is None or q is None else lax.mul(p, q)
    minus = lambda p, q: lax.neg(q) if p is None else p if q is None else lax.sub(p, q)
    parts = [minus(times(u1, v2), times(u2, v1)), minus(times(u2, v0), times(u0, v2)), last]
    return lax.stack(parts, axis_index(axisc, len(shape) + 1))


@one_program(static=("offset", "axis1", "axis2", "dtype", "out"))
def trace(
    a: ArrayLike,
    offset: int | ArrayLike = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sum of the diagonal elements over two axes.

    Args:
      a: array of rank 2 or more.
      offset: which diagonal, above the main one if positive; may be traced.
      axis1, axis2: the axes of the matrices.
      dtype: dtype of the sum; by default that of `a`, but at least the default integer type for integers.
      out: only None.

    Returns:
      An array without the two axes.

    Examples:

      >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
      Array(5, dtype=int32)
    """
    refuse_out("trace", out)
    a, x = typed("trace", 0, a)
    if x.ndim < 2:
        raise ValueError(f"trace needs an array of rank 2 or more, got shape {x.shape}")
    axis1, axis2 = axis_index(axis1, x.ndim), axis_index(axis2, x.ndim)
    if axis1 == axis2:
        raise ValueError(f"trace needs two different axes, got {axis1} and {axis2}")
    a = masked_diagonal(a, x, axis1, axis2, diagonal_number("trace", "offset", offset))
    if dtype is None:
        dtype = x.dtype if dtypes.is_inexact(x.dtype) else wide_integer(x.dtype)
    a = lax.convert_to(a, dtypes.explicit_dtype(dtype, "trace"))
    if aval_of(a).dtype == np.bool_:
        return lax.reduce_or(a, (axis1, axis2))
    return lax.reduce_sum(a, (axis1, axis2))


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """Product of two or more matrices, in the order of multiplications that costs the least.

    Args:
      arrays: matrices; the first and the last may be vectors.
      precision: see `jax.lax.Precision`.

    Raises:
      ValueError: fewer than two arrays, or shapes that do not chain.

    The order is the textbook dynamic program over chains (Cormen et al., Introduction to Algorithms, 15.2);
    symbolic sizes are multiplied from left to right.

    Examples:

      >>> row, square = jnp.array([[1, 2]]), jnp.array([[1, 2], [3, 4]])
      >>> jnp.linalg.multi_dot([row, square, row.T])
      Array([[27]], dtype=int32)
    """
    pairs = [typed("jnp.linalg.multi_dot", i, x) for i, x in enumerate(arrays)]
    n = len(pairs)
    if n < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={n}")
    for i, (_, aval) in enumerate(pairs):
        if aval.ndim != 2 and not (aval.ndim == 1 and i in (0, n - 1)):
            raise ValueError(
                f"multi_dot: matrices, and vectors first and last, are needed; got shape {aval.shape} at position {i}"
            )
    shapes = [aval.shape for _, aval in pairs]
    sizes = [shapes[0][0] if len(shapes[0]) == 2 else 1, *(s[0] for s in shapes[1:])]
    sizes.append(shapes[-1][1] if len(shapes[-1]) == 2 else 1)
    for left, right in itertools.pairwise(shapes):
        if not dims.definitely_equal(left[-1], right[0]):
            raise ValueError(f"multi_dot: each array must fit the next one, got shapes {shapes}")
    values = [x for x, _ in pairs]
    if not dims.is_constant_shape(tuple(sizes)):
        return functools.reduce(lambda a, b: dot(a, b, precision=precision), values)
    cut = _best_cuts(tuple(sizes))

    def product(i, j):
        if i == j:
            return values[i]
        k = cut[i, j]
        return dot(product(i, k), product(k + 1, j), precision=precision)

    return product(0, n - 1)


@functools.lru_cache(512)
def _best_cuts(sizes: tuple) -> dict:
    n = len(sizes) - 1
    cost: dict[tuple[int, int], int] = {(i, i): 0 for i in range(n)}
    cut: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            price = lambda k, i=i, j=j: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
            cut[i, j] = min(range(i, j), key=price)
            cost[i, j] = price(cut[i, j])
    return cut
