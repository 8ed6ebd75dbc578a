"""Products of arrays: dot, matmul and their kin, tensordot, einsum.

Every function here reduces to `lax.dot_general`. How shapes become dimension numbers is a *plan*, computed once
per pair of shapes and cached, so that a call costs little more than binding the primitive.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from bedrax.core import dims, dtypes, lax
from bedrax.core.array import Array
from bedrax.core.avals import aval_functions, aval_of
from bedrax.core.primitives.contractions import canonical_precision, dot_general_p

__all__ = [
    "cross", "dot", "einsum", "einsum_path", "inner", "kron", "matmul", "matvec", "multi_dot", "outer", "tensordot",
    "trace", "vdot", "vecdot", "vecmat",
]  # fmt: skip

ArrayLike = Any


def typed(name: str, position: int, x: ArrayLike) -> tuple[Any, Any]:
    """(x, its type), or the error that says that `name` wants arrays."""
    known = aval_functions.get(type(x))
    if known is not None:
        return x, known(x)
    if hasattr(x, "__jax_array__"):
        x = x.__jax_array__()
    try:
        return x, aval_of(x)
    except TypeError:
        raise TypeError(
            f"{name} requires ndarray or scalar arguments, got {type(x)} at position {position}."
        ) from None


def _result_type(x, y, preferred) -> tuple[np.dtype, bool]:
    if preferred is not None:
        return dtypes.explicit_dtype(preferred, "preferred_element_type"), False
    if x.dtype == y.dtype and not (x.weak_type and y.weak_type):
        return x.dtype, False
    return dtypes.promote((x.dtype, y.dtype), (x.weak_type, y.weak_type))


# Pairs of operands


class _Plan(NamedTuple):
    """How to multiply two arrays: drop dimensions of size 1, `dot_general`, transpose."""

    numbers: tuple
    squeeze_lhs: tuple = ()
    squeeze_rhs: tuple = ()
    permutation: tuple | None = None


def _apply(plan: _Plan, a, b, x, y, precision, preferred, out_sharding=None):
    dtype, weak = _result_type(x, y, preferred)
    if plan.squeeze_lhs:
        a = lax.squeeze(a, plan.squeeze_lhs)
    if plan.squeeze_rhs:
        b = lax.squeeze(b, plan.squeeze_rhs)
    permutation = plan.permutation
    if out_sharding is not None and permutation is not None:
        raise NotImplementedError(
            "out_sharding is given for a product whose result must be transposed; constrain the result instead, with"
            " jax.lax.with_sharding_constraint."
        )
    out = dot_general_p.bind(
        a, b, dimension_numbers=plan.numbers, precision=canonical_precision(precision), preferred_element_type=dtype,
        out_sharding=out_sharding,
    )  # fmt: skip
    if permutation is not None:
        out = lax.transpose(out, permutation)
    return lax.convert_to(out, dtype, True) if weak else out


@functools.lru_cache(4096)
def _dot_plan(m: int, n: int) -> _Plan:
    if not m or not n:
        return _Plan((((), ()), ((), ())))
    return _Plan((((m - 1,), (max(n - 2, 0),)), ((), ())))


def dot(a: ArrayLike, b: ArrayLike, *, precision=None, preferred_element_type=None, out_sharding=None) -> Array:
    """Sum of products over the last axis of `a` and the second to last axis of `b` (its only one for rank 1).

    Args:
      a, b: arrays; a scalar multiplies the other operand.
      precision: see `jax.lax.Precision`.
      preferred_element_type: dtype of the result; default is the promoted dtype of the operands.
      out_sharding: placement of the result under explicit sharding.

    Returns:
      An array of shape ``a.shape[:-1] + b.shape[:-2] + b.shape[-1:]``.

    Raises:
      TypeError: an operand is not an array, or the contracted sizes differ.
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
            raise ValueError(
                f"Incompatible shapes for broadcasting in matmul: batch dimensions {xs[:-2]} and {ys[:-2]} of operands"
                f" of shapes {xs} and {ys}"
            )
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
        (((contract[0],), (contract[1],)), batch), tuple(drop_lhs), tuple(drop_rhs),
        None if permutation == tuple(range(len(order))) else permutation,
    )  # fmt: skip


def matmul(a: ArrayLike, b: ArrayLike, *, precision=None, preferred_element_type=None, out_sharding=None) -> Array:
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
    """
    a, x = typed("matmul", 0, a)
    b, y = typed("matmul", 1, b)
    plan = _matmul_plan(x.shape, y.shape)
    return _apply(plan, a, b, x, y, precision, preferred_element_type, out_sharding)


def vdot(a: ArrayLike, b: ArrayLike, *, precision=None, preferred_element_type=None) -> Array:
    """Sum of ``conj(a) * b`` over all elements; both operands are flattened.

    Raises:
      TypeError: the operands differ in size.
    """
    a, x = typed("vdot", 0, a)
    b, y = typed("vdot", 1, b)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        a = lax.conj(a)
    return dot(_ravel(a, x), _ravel(b, y), precision=precision, preferred_element_type=preferred_element_type)


def _ravel(x, aval):
    return x if aval.ndim == 1 else lax.reshape(x, (aval.size,))


def inner(a: ArrayLike, b: ArrayLike, *, precision=None, preferred_element_type=None) -> Array:
    """Sum of products over the last axes of both operands; a scalar multiplies the other operand.

    Returns:
      An array of shape ``a.shape[:-1] + b.shape[:-1]``.
    """
    a, x = typed("inner", 0, a)
    b, y = typed("inner", 1, b)
    plan = _Plan((((x.ndim - 1,), (y.ndim - 1,)) if x.ndim and y.ndim else ((), ()), ((), ())))
    return _apply(plan, a, b, x, y, precision, preferred_element_type)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """All products of an element of `a` with one of `b`: a matrix of shape ``[a.size, b.size]``."""
    _refuse_out("outer", out)
    a, x = typed("outer", 0, a)
    b, y = typed("outer", 1, b)
    shape = (x.size, y.size)
    a, b = _promoted(a, b, x, y)
    return lax.mul(_spread(lax.reshape(a, shape[:1]), shape, (0,)), _spread(lax.reshape(b, shape[1:]), shape, (1,)))


def _promoted(a, b, x, y):
    dtype, weak = _result_type(x, y, None)
    return lax.convert_to(a, dtype, weak), lax.convert_to(b, dtype, weak)


def _spread(x, shape, where):
    return lax.broadcast_in_dim(x, shape, where)


def _refuse_out(name: str, out) -> None:
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported: arrays are immutable.")


def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision=None, preferred_element_type=None
) -> Array:
    """Sum of ``conj(x1) * x2`` along one axis, broadcast over the others.

    Raises:
      ValueError: an operand is a scalar, the sizes along the axis differ, or the rest does not broadcast.
    """
    x1, x = typed("jnp.vecdot", 0, x1)
    x2, y = typed("jnp.vecdot", 1, x2)
    if not x.ndim or not y.ndim:
        raise ValueError(f"vecdot needs operands of rank 1 or more, got shapes {x.shape} and {y.shape}")
    at1, at2 = _axis(axis, x.ndim), _axis(axis, y.ndim)
    if not dims.definitely_equal(x.shape[at1], y.shape[at2]):
        raise ValueError(f"vecdot needs equal sizes along axis {axis}, got shapes {x.shape} and {y.shape}")
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        x1 = lax.conj(x1)
    return einsum(
        "...i,...i", _to_last(x1, at1, x.ndim), _to_last(x2, at2, y.ndim), precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _axis(axis: Any, ndim: int) -> int:
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def _to_last(x, axis: int, ndim: int):
    if axis == ndim - 1:
        return x
    return lax.transpose(x, (*[d for d in range(ndim) if d != axis], axis))


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Product of matrices ``[..., m, n]`` with vectors ``[..., n]``, broadcast over the leading dimensions."""
    x1, x = typed("matvec", 0, x1)
    x2, y = typed("matvec", 1, x2)
    if x.ndim < 2 or y.ndim < 1:
        raise ValueError(f"matvec needs shapes [..., m, n] and [..., n], got {x.shape} and {y.shape}")
    return einsum("...mn,...n->...m", x1, x2)


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Product of conjugated vectors ``[..., n]`` with matrices ``[..., n, m]``, broadcast over the rest."""
    x1, x = typed("vecmat", 0, x1)
    x2, y = typed("vecmat", 1, x2)
    if x.ndim < 1 or y.ndim < 2:
        raise ValueError(f"vecmat needs shapes [..., n] and [..., n, m], got {x.shape} and {y.shape}")
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        x1 = lax.conj(x1)
    return einsum("...n,...nm->...m", x1, x2)


def tensordot(
    a: ArrayLike, b: ArrayLike, axes: int | Sequence = 2, *, precision=None, preferred_element_type=None,
    out_sharding=None,
) -> Array:  # fmt: skip
    """Sum of products over chosen axes.

    Args:
      a, b: arrays.
      axes: a number N, for the last N axes of `a` and the first N of `b`; or a pair of axes or of sequences
        of axes, those of `a` and those of `b` in the same order.
      precision, preferred_element_type, out_sharding: as for `dot`.

    Returns:
      An array with the remaining axes of `a`, then those of `b`.

    Raises:
      TypeError: `axes` is none of these, or more axes than there are, or contracted sizes differ.
    """
    a, x = typed("tensordot", 0, a)
    b, y = typed("tensordot", 1, b)
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ValueError(f"tensordot needs axes of length 2, one entry per operand, got {axes}")
        pair = [tuple(group) if isinstance(group, (tuple, list, np.ndarray)) else (group,) for group in axes]
        if len(pair[0]) != len(pair[1]):
            raise ValueError(f"tensordot needs as many axes of one operand as of the other, got {axes}")
        lhs, rhs = (tuple(_axis(d, v.ndim) for d in group) for group, v in zip(pair, (x, y), strict=True))
    else:
        try:
            count = operator.index(axes)
        except TypeError:
            raise TypeError(f"tensordot axes argument must be an int or a pair of sequences, got {axes!r}") from None
        if not 0 <= count <= min(x.ndim, y.ndim):
            raise TypeError(f"Number of tensordot axes (axes {count}) exceeds input ranks ({x.shape} and {y.shape})")
        lhs, rhs = tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    return _apply(_Plan(((lhs, rhs), ((), ()))), a, b, x, y, precision, preferred_element_type, out_sharding)


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Kronecker product: blocks of `b`, each scaled by an element of `a`; a missing leading axis has size 1."""
    a, x = typed("kron", 0, a)
    b, y = typed("kron", 1, b)
    a, b = _promoted(a, b, x, y)
    rank = max(x.ndim, y.ndim)
    xs, ys = (1,) * (rank - x.ndim) + x.shape, (1,) * (rank - y.ndim) + y.shape
    shape = tuple(d for pair in zip(xs, ys, strict=True) for d in pair)
    a = _spread(lax.reshape(a, xs), shape, tuple(range(0, 2 * rank, 2)))
    b = _spread(lax.reshape(b, ys), shape, tuple(range(1, 2 * rank, 2)))
    return lax.reshape(lax.mul(a, b), tuple(m * n for m, n in zip(xs, ys, strict=True)))


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """Cross product of vectors of 2 or 3 elements, broadcast over the other axes.

    A vector of 2 elements has a third of 0; of two such vectors only the third element of the product is
    returned, without an axis.

    Args:
      a, b: arrays.
      axisa, axisb, axisc: the axis of the vectors in `a`, in `b` and in the result.
      axis: one value for all three.

    Raises:
      ValueError: vectors of another length.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, x = typed("cross", 0, a)
    b, y = typed("cross", 1, b)
    a, b = _promoted(a, b, x, y)
    axisa, axisb = _axis(axisa, x.ndim), _axis(axisb, y.ndim)
    n, m = x.shape[axisa], y.shape[axisb]
    if n not in (2, 3) or m not in (2, 3):
        raise ValueError(f"Dimension must be either 2 or 3 for cross product, got {n} and {m}")
    us = [lax.index_in_dim(a, i, axisa, keepdims=False) for i in range(n)]
    vs = [lax.index_in_dim(b, i, axisb, keepdims=False) for i in range(m)]
    shape = lax.broadcast_shapes(aval_of(us[0]).shape, aval_of(vs[0]).shape)
    widen = lambda v: v if v is None else _spread(v, shape, _trailing(aval_of(v).ndim, len(shape)))
    u0, u1, u2 = map(widen, (us + [None])[:3])
    v0, v1, v2 = map(widen, (vs + [None])[:3])
    last = lax.sub(lax.mul(u0, v1), lax.mul(u1, v0))
    if u2 is None and v2 is None:
        return last
    times = lambda p, q: None if p is None or q is None else lax.mul(p, q)
    minus = lambda p, q: lax.neg(q) if p is None else p if q is None else lax.sub(p, q)
    parts = [minus(times(u1, v2), times(u2, v1)), minus(times(u2, v0), times(u0, v2)), last]
    return lax.stack(parts, _axis(axisc, len(shape) + 1))


def _trailing(rank: int, of: int) -> tuple:
    return tuple(range(of - rank, of))


def trace(
    a: ArrayLike, offset: int | ArrayLike = 0, axis1: int = 0, axis2: int = 1, dtype=None, out: None = None
) -> Array:
    """Sum of the diagonal elements over two axes.

    Args:
      a: array of rank 2 or more.
      offset: which diagonal, above the main one if positive; may be traced.
      axis1, axis2: the axes of the matrices.
      dtype: dtype of the sum; by default that of `a`, but at least the default integer type for integers.

    Returns:
      An array without the two axes.
    """
    _refuse_out("trace", out)
    a, x = typed("trace", 0, a)
    if x.ndim < 2:
        raise ValueError(f"trace needs an array of rank 2 or more, got shape {x.shape}")
    axis1, axis2 = _axis(axis1, x.ndim), _axis(axis2, x.ndim)
    if axis1 == axis2:
        raise ValueError(f"trace needs two different axes, got {axis1} and {axis2}")
    a = _masked_diagonal(a, x, axis1, axis2, offset)
    if dtype is None:
        dtype = sum_dtype(x.dtype)
    a = lax.convert_to(a, dtypes.explicit_dtype(dtype, "trace"))
    if aval_of(a).dtype == np.bool_:
        return lax.reduce_or(a, (axis1, axis2))
    return lax.reduce_sum(a, (axis1, axis2))


def sum_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype that NumPy sums `dtype` in: integers and booleans at least in the default integer width."""
    if dtypes.issubdtype(dtype, np.bool_):
        return dtypes.default_int_dtype()
    for kind, default in ((np.unsignedinteger, dtypes.default_uint_dtype), (np.integer, dtypes.default_int_dtype)):
        if dtypes.issubdtype(dtype, kind):
            wide = default()
            return wide if dtypes.itemsize_bits(wide) > dtypes.itemsize_bits(dtype) else dtype
    return dtype


def _masked_diagonal(x, aval, axis1: int, axis2: int, offset=0):
    """`x` with zeros off the diagonal of two axes."""
    row = lax.broadcasted_iota(np.int32, aval.shape, axis1)
    column = lax.broadcasted_iota(np.int32, aval.shape, axis2)
    if not (isinstance(offset, int) and offset == 0):
        row = lax.add(row, lax.convert_element_type(offset, np.int32))
    return lax.select(lax.eq(row, column), x, lax.full(aval.shape, 0, aval.dtype))


def multi_dot(arrays: Sequence[ArrayLike], *, precision=None) -> Array:
    """Product of two or more matrices, in the order of multiplications that costs the least.

    Args:
      arrays: matrices; the first and the last may be vectors.
      precision: see `jax.lax.Precision`.

    Raises:
      ValueError: fewer than two arrays, or shapes that do not chain.

    The order is the textbook dynamic program over chains (Cormen et al., Introduction to Algorithms, 15.2);
    symbolic sizes are multiplied from left to right.
    """
    pairs = [typed("jnp.linalg.multi_dot", i, x) for i, x in enumerate(arrays)]
    n = len(pairs)
    if n < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={n}")
    for i, (_, aval) in enumerate(pairs):
        if aval.ndim != 2 and not (aval.ndim == 1 and i in (0, n - 1)):
            raise ValueError(
                f"multi_dot: input arrays must all be two-dimensional, except for the first and last array which may"
                f" be 1 or 2 dimensional. Got shape {aval.shape} at position {i}"
            )
    shapes = [aval.shape for _, aval in pairs]
    sizes = [shapes[0][0] if len(shapes[0]) == 2 else 1, *(s[0] for s in shapes[1:])]
    sizes.append(shapes[-1][1] if len(shapes[-1]) == 2 else 1)
    for left, right in itertools.pairwise(shapes):
        if not dims.definitely_equal(left[-1], right[0]):
            raise ValueError(f"multi_dot: last dimension of each array must match first dimension of following array."
                             f" Got array shapes {shapes}")  # fmt: skip
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


# einsum


class _Ellipsis(NamedTuple):
    """Label of the dimension that `...` stands for, counted from the right."""

    position: int


def _split_labels(term: str) -> list:
    term = term.replace(" ", "")
    head, dots, tail = term.partition("...")
    if "." in head or "." in tail:
        raise ValueError(f"einsum: one ellipsis '...' at most per operand, and no other dots, got {term!r}")
    for c in (*head, *tail):
        if not c.isalpha():
            raise ValueError(f"einsum: Character {c!r} in {term!r} is not a letter.")
    return [*head, *([...] if dots else []), *tail]


@functools.lru_cache(2048)
def _parse(subscripts: str, ranks: tuple) -> tuple:
    """(labels of each operand, labels of the result) of a subscripts string."""
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    if "-" in inputs or ">" in inputs or "-" in output or ">" in output:
        raise ValueError(f"einsum: subscripts can only contain one '->', got {subscripts!r}")
    terms = [_split_labels(t) for t in inputs.split(",")]
    return _resolve(terms, _split_labels(output) if arrow else None, ranks, subscripts)


def _resolve(terms: list, output: list | None, ranks: tuple, shown: Any) -> tuple:
    if len(terms) != len(ranks):
        raise ValueError(f"einsum: Number of einsum subscripts, {len(terms)}, must equal the number of operands,"
                         f" {len(ranks)}, in {shown!r}")  # fmt: skip
    longest, resolved = 0, []
    for i, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        hidden = rank - len(term) + 1 if ... in term else 0
        if hidden < 0 or (... not in term and len(term) != rank):
            named = "".join("..." if c is ... else str(c) for c in term)
            raise ValueError(f"einsum: subscript {named!r} does not fit operand {i} of rank {rank}, in {shown!r}")
        longest = max(longest, hidden)
        resolved.append(_expand(term, hidden))
    if output is None:
        counts: dict = {}
        for term in resolved:
            for c in term:
                counts[c] = counts.get(c, 0) + 1
        once = [c for c, k in counts.items() if k == 1 and not isinstance(c, _Ellipsis)]
        labels = (*_expand([...], longest), *sorted(once))
    else:
        if ... not in output and longest:
            raise ValueError(f"einsum: the result has no ellipsis '...' for the dimensions that it stands for, in {shown!r}")
        labels = _expand(output, longest)
        known = {c for term in resolved for c in term}
        for c in labels:
            if c not in known:
                raise ValueError(f"einsum: Output character {c!r} did not appear in the input, in {shown!r}")
        if len(set(labels)) != len(labels):
            raise ValueError(f"einsum: Output character appeared more than once, in {shown!r}")
    return tuple(resolved), labels


def _expand(term: list, hidden: int) -> tuple:
    out: list = []
    for c in term:
        out.extend(map(_Ellipsis, range(hidden - 1, -1, -1)) if c is ... else [c])
    return tuple(out)


def _arguments(subscripts, operands: tuple) -> tuple:
    """(operands, a function from their ranks to the labels), for both ways to call einsum."""
    if isinstance(subscripts, str):
        return operands, functools.partial(_parse, subscripts)
    everything = (subscripts, *operands)
    output = list(everything[-1]) if len(everything) % 2 else None
    arrays = everything[: len(everything) // 2 * 2 : 2]
    terms = [list(t) for t in everything[1::2]]
    return arrays, lambda ranks: _resolve(terms, output, ranks, (terms, output))


class _Step(NamedTuple):
    """One contraction: take operands out of the list, multiply them, append the result."""

    positions: tuple
    operands: tuple  # per operand: (pairs of axes of repeated labels, axes to sum, axes of size 1 to drop)
    numbers: tuple | None  # of the product of two, None for one
    permutation: tuple | None


@functools.lru_cache(2048)
def _steps(inputs: tuple, output: tuple, shapes: tuple, optimize: Any) -> tuple:
    """The program of contractions for operands with these labels and shapes."""
    sizes: dict = {}
    for term, shape in zip(inputs, shapes, strict=True):
        for c, d in zip(term, shape, strict=True):
            known = sizes.setdefault(c, d)
            if dims.definitely_equal(known, 1):
                sizes[c] = d
            elif not dims.definitely_equal(known, d) and not dims.definitely_equal(d, 1):
                label = "..." if isinstance(c, _Ellipsis) else c
                raise ValueError(
                    f"einsum: Size of label {label!r} for operand shapes {list(shapes)} is {known} and {d}: they must"
                    " be equal, or one of them 1."
                )
    terms = [list(zip(term, shape, strict=True)) for term, shape in zip(inputs, shapes, strict=True)]
    steps: list[_Step] = []
    for group in _path(inputs, output, sizes, optimize):
        group = sorted(group, reverse=True)
        taken = [terms.pop(i) for i in group]
        # More than two at once (an unoptimized path) go from left to right.
        taken.reverse()
        positions = tuple(reversed(group))
        while True:
            pair, rest = taken[:2], taken[2:]
            wanted = {c for t in (*rest, *terms) for c, _ in t} | set(output)
            last = not rest and not terms
            step, result = _step(positions[: len(pair)], pair, wanted, sizes, output if last else None)
            steps.append(step)
            if not rest:
                break
            # the result stands at the end; the others have moved down
            count = len(terms) + len(rest)
            positions = (count, *[p - sum(q < p for q in positions[:2]) for p in positions[2:]])
            taken = [result, *rest]
        terms.append(result)
    return tuple(steps)


def _step(positions, pair, wanted, sizes, output):
    # What remains of each operand: its labels, once each, without dimensions of size 1 that only broadcast
    # against the label's size in another operand.
    remains = [_without_broadcast(term, sizes) for term in pair]
    prepared, labels = [], []
    for i, (diagonals, drop, left) in enumerate(remains):
        elsewhere = {c for j, (_, _, other) in enumerate(remains) if j != i for _, c, _ in other} | wanted
        total = [second for _, second in diagonals] + [axis for axis, c, _ in left if c not in elsewhere]
        prepared.append((diagonals, tuple(sorted(total)), drop))
        labels.append([(c, d) for _, c, d in left if c in elsewhere])
    if len(pair) == 1:
        result, numbers = labels[0], None
    else:
        result, numbers, swap = _pair_numbers(labels[0], labels[1], wanted, output)
        if swap:
            prepared.reverse()
            positions = positions[::-1]
    permutation = None
    if output is not None:
        order = [c for c, _ in result]
        permutation = tuple(order.index(c) for c in output)
        if permutation == tuple(range(len(order))):
            permutation = None
        by_label = dict(result)
        result = [(c, by_label[c]) for c in output]
    return _Step(tuple(positions), tuple(prepared), numbers, permutation), result


def _without_broadcast(term, sizes):
    """(pairs of axes of repeated labels, axes of size 1 to drop, the rest as (axis, label, size)) of an operand."""
    names = [c for c, _ in term]
    widest = {}
    for c, d in term:
        if c not in widest or dims.definitely_equal(widest[c], 1):
            widest[c] = d
    diagonals = tuple((names.index(c), axis) for axis, c in enumerate(names) if names.index(c) != axis)
    first = [axis for axis, c in enumerate(names) if names.index(c) == axis]
    one = lambda d: dims.definitely_equal(d, 1)
    drop = tuple(axis for axis in first if one(widest[names[axis]]) and not one(sizes[names[axis]]))
    return diagonals, drop, [(axis, names[axis], widest[names[axis]]) for axis in first if axis not in drop]


def _pair_numbers(lhs, rhs, wanted, output):
    in_lhs, in_rhs = [c for c, _ in lhs], [c for c, _ in rhs]
    shared = [c for c in in_lhs if c in in_rhs]
    batch = [c for c in shared if c in wanted]
    if output is not None:
        batch.sort(key=output.index)
    contract = [c for c in shared if c not in wanted]
    free_lhs, free_rhs = [c for c in in_lhs if c not in shared], [c for c in in_rhs if c not in shared]
    swap = output is not None and list(output) == [*batch, *free_rhs, *free_lhs] and bool(free_lhs and free_rhs)
    if swap:
        lhs, rhs, in_lhs, in_rhs, free_lhs, free_rhs = rhs, lhs, in_rhs, in_lhs, free_rhs, free_lhs
    at = lambda names, wanted: tuple(names.index(c) for c in wanted)
    numbers = ((at(in_lhs, contract), at(in_rhs, contract)), (at(in_lhs, batch), at(in_rhs, batch)))
    sized = dict([*rhs, *lhs])
    return [(c, sized[c]) for c in (*batch, *free_lhs, *free_rhs)], numbers, swap


def _path(inputs, output, sizes, optimize) -> list:
    n = len(inputs)
    if n <= 2:
        return [tuple(range(n))]
    if optimize is False:
        return [tuple(range(n))]
    if isinstance(optimize, tuple):
        steps = optimize[1:] if optimize[:1] == ("einsum_path",) else optimize
        return [*steps]
    return _opt_einsum_path(inputs, output, sizes, optimize)[0]


def _opt_einsum_path(inputs, output, sizes, optimize):
    import opt_einsum

    # Only the costs are of interest: labels become letters, and a symbolic size becomes a number.
    letters: dict = {}
    name = lambda c: letters.setdefault(c, opt_einsum.get_symbol(len(letters)))
    text = ",".join("".join(map(name, t)) for t in inputs) + "->" + "".join(map(name, output))
    number = lambda d: int(d) if dims.is_constant_dim(d) else 64
    shapes = [tuple(number(sizes[c]) for c in t) for t in inputs]
    return opt_einsum.contract_path(
        text, *shapes, shapes=True, optimize="optimal" if optimize is True else optimize
    )  # fmt: skip


def _hashable(optimize):
    if isinstance(optimize, (list, tuple)):
        return tuple(tuple(s) if isinstance(s, (list, tuple)) else s for s in optimize)
    return optimize


def _prepare(x, spec):
    """Diagonals, sums and broadcast dimensions of one operand, before it is multiplied."""
    diagonals, total, drop = spec
    for first, second in diagonals:
        aval = aval_of(x)
        # sizes 1 and n: the dimension of size 1 broadcasts along the diagonal
        if dims.definitely_equal(aval.shape[first], aval.shape[second]):
            x = _masked_diagonal(x, aval, first, second)
        elif dims.definitely_equal(aval.shape[first], 1):
            wide = tuple(aval.shape[second] if d == first else s for d, s in enumerate(aval.shape))
            x = lax.broadcast_in_dim(x, wide, tuple(range(len(wide))))
            x = _masked_diagonal(x, aval_of(x), first, second)
    if total:
        x = lax.reduce_or(x, total) if aval_of(x).dtype == np.bool_ else lax.reduce_sum(x, total)
    if drop:
        x = lax.squeeze(x, tuple(d - sum(t < d for t in total) for d in drop))
    return x


def einsum(
    subscripts, /, *operands, out: None = None, optimize: str | bool | list = "auto", precision=None,
    preferred_element_type=None, _dot_general: Callable | None = None, out_sharding=None,
) -> Array:  # fmt: skip
    """Sum of products in Einstein's notation.

    Args:
      subscripts: labels of the axes of each operand and of the result, as in ``"ij,jk->ik"``; ``...`` stands for
        any number of broadcast axes. Without ``->``, the result has the labels that occur once, sorted. Or the
        interleaved form: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.
      operands: arrays.
      optimize: how the order of three or more operands is found: the name of a strategy of the package
        opt_einsum, True for ``"optimal"``, False for left to right, or a path from `einsum_path`.
      precision: see `jax.lax.Precision`.
      preferred_element_type: dtype of the result; by default the promoted dtype of the operands.
      out_sharding: placement of the result under explicit sharding.

    Raises:
      TypeError: an operand is not an array.
      ValueError: the subscripts do not fit the operands.
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.einsum is not supported: arrays are immutable.")
    operands, labels_of = _arguments(subscripts, operands)
    if not operands:
        raise ValueError("einsum needs at least one operand")
    pairs = [typed("einsum", i, x) for i, x in enumerate(operands)]
    avals = [aval for _, aval in pairs]
    inputs, output = labels_of(tuple(len(v.shape) for v in avals))
    steps = _steps(inputs, output, tuple(v.shape for v in avals), _hashable(optimize))
    if preferred_element_type is not None:
        dtype, weak = dtypes.explicit_dtype(preferred_element_type, "einsum"), False
    else:
        dtype, weak = dtypes.promote([v.dtype for v in avals], [v.weak_type for v in avals])
    values = [x for x, _ in pairs]
    if out_sharding is not None and (steps[-1].permutation is not None or steps[-1].numbers is None):
        raise NotImplementedError(
            "einsum: out_sharding is supported where the last step is a product that needs no transposition; constrain"
            " the result with jax.lax.with_sharding_constraint instead."
        )
    precision = canonical_precision(precision) if _dot_general is None else precision
    for step in steps:
        taken = [_prepare(values[p], spec) for p, spec in zip(step.positions, step.operands, strict=True)]
        for p in sorted(step.positions, reverse=True):
            del values[p]
        if step.numbers is None:
            x = taken[0]
        elif _dot_general is None:
            x = dot_general_p.bind(
                *taken, dimension_numbers=step.numbers, precision=precision, preferred_element_type=dtype,
                out_sharding=out_sharding if step is steps[-1] else None,
            )  # fmt: skip
        else:
            x = _dot_general(*taken, step.numbers, precision, preferred_element_type=dtype)
        values.append(x if step.permutation is None else lax.transpose(x, step.permutation))
    return lax.convert_to(values[0], dtype, weak)


def einsum_path(subscripts, /, *operands, optimize: bool | str | list = "auto") -> tuple[list[tuple[int, ...]], Any]:
    """The order in which `einsum` would contract its operands, found by the package opt_einsum.

    Args:
      subscripts, operands: as for `einsum`.
      optimize: a strategy of opt_einsum; True for ``"optimal"``, False for all at once.

    Returns:
      A list of positions to contract step by step, which `einsum` takes as `optimize`, and a report to print.
    """
    arrays, labels_of = _arguments(subscripts, operands)
    avals = [typed("einsum_path", i, x)[1] for i, x in enumerate(arrays)]
    inputs, output = labels_of(tuple(v.ndim for v in avals))
    sizes: dict = {}
    for term, v in zip(inputs, avals, strict=True):
        for c, d in zip(term, v.shape, strict=True):
            sizes[c] = d if dims.definitely_equal(sizes.get(c, 1), 1) else sizes[c]
    return _opt_einsum_path(inputs, output, sizes, optimize)
