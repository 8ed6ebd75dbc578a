"""Products of BCOO arrays: contractions with dense and sparse arrays, elementwise products."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, Final, NamedTuple

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core.array import Array
from bedrax.core.public import public
from bedrax.core.typing import ArrayLike
from bedrax.sparse import elements
from bedrax.sparse.bcoo import BCOO, bcoo_update_layout, extracted, mapped
from bedrax.sparse.formats import broadcasting_vmap, composed

__all__ = [
    "bcoo_dot_general",
    "bcoo_dot_general_p",
    "bcoo_dot_general_sampled",
    "bcoo_dot_general_sampled_p",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_spdot_general_p",
]


class _Contraction(NamedTuple):
    """Dimension numbers, with the remaining dimensions of the operands."""

    lhs_contract: tuple[Any, ...]
    rhs_contract: tuple[Any, ...]
    lhs_batch: tuple[Any, ...]
    rhs_batch: tuple[Any, ...]
    lhs_free: tuple[Any, ...]
    rhs_free: tuple[Any, ...]


def _contraction(lhs_shape, rhs_shape, dimension_numbers) -> _Contraction:
    (lc, rc), (lb, rb) = [[tuple(map(operator.index, x)) for x in pair] for pair in dimension_numbers]
    for a, b, what in ((lc, rc, "contracting"), (lb, rb, "batch")):
        sizes = [lhs_shape[i] for i in a], [rhs_shape[i] for i in b]
        if sizes[0] != sizes[1]:
            raise TypeError(f"dot_general: {what} dimensions have sizes {sizes[0]} and {sizes[1]}")
    free = [tuple(d for d in range(len(s)) if d not in c + b) for s, c, b in ((lhs_shape, lc, lb), (rhs_shape, rc, rb))]
    return _Contraction(lc, rc, lb, rb, *free)


def _dot_general(data, indices, rhs, *, dimension_numbers, spinfo, preferred_element_type, precision):
    shape, n_batch, n_sparse = spinfo.shape, indices.ndim - 2, indices.shape[-1]
    c = _contraction(shape, rhs.shape, dimension_numbers)
    dtype = preferred_element_type or jnp.result_type(data.dtype, rhs.dtype)
    data, rhs = data.astype(dtype), rhs.astype(dtype)
    partner = dict(zip((*c.lhs_contract, *c.lhs_batch), (*c.rhs_contract, *c.rhs_batch)))
    if any(d >= n_batch for d in c.lhs_batch):
        raise NotImplementedError(
            f"batch dimensions of a product are batch dimensions of a sparse operand, got {c.lhs_batch} for n_batch={n_batch}"
        )
    # Each batch dimension of the sparse operand is mapped, together with its dimension of `rhs`.
    left = list(range(rhs.ndim))
    axes = []
    for d in range(n_batch):
        at = left.index(partner[d]) if d in partner else None
        axes.append(at)
        if at is not None:
            left.pop(at)
    edge = n_batch + n_sparse
    pairs = sorted((d, left.index(r)) for d, r in zip(c.lhs_contract, c.rhs_contract) if d >= n_batch)
    free = [shape[d] for d in c.lhs_free if d >= n_batch] + [rhs.shape[d] for d in c.rhs_free]
    fun = functools.partial(
        elements.contract,
        precision=precision,
        shape=shape[n_batch:edge],
        free_shape=tuple(free),
        sparse=tuple((d - n_batch, r) for d, r in pairs if d < edge),
        dense=tuple((d - edge, r) for d, r in pairs if d >= edge),
    )
    for at in reversed(axes):
        fun = broadcasting_vmap(fun, (0, 0, at))
    out = fun(data, indices, rhs)
    out = jnp.broadcast_to(out, (*shape[:n_batch], *out.shape[n_batch:]))
    summed = tuple(d for d in c.lhs_contract if d < n_batch)
    out = out.sum(summed) if summed else out
    kept = [d for d in range(n_batch) if d not in summed]
    first = [kept.index(d) for d in c.lhs_batch]
    return out.transpose(*first, *(i for i in range(out.ndim) if i not in first)).astype(dtype)


bcoo_dot_general_p: Final = composed("bcoo_dot_general", _dot_general)


def bcoo_dot_general(
    lhs: BCOO | np.ndarray[Any, Any],
    rhs: BCOO | ArrayLike,
    *,
    dimension_numbers: tuple[tuple[Any, ...], ...],
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array | BCOO:
    """The product of two arrays, one or both of them sparse.

    Args:
      lhs, rhs: a `BCOO` array and a dense array, in either order, or two `BCOO` arrays.
      dimension_numbers: see `jax.lax.dot_general`: ``((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))``. Batch
        dimensions of the product are batch dimensions of sparse operands.
      precision: see `jax.lax.dot_general`; products of two sparse arrays are always computed exactly.
      preferred_element_type: the dtype of the computation and of the result.
      out_sharding: only None.

    Returns:
      A dense array; a `BCOO` array if both operands are.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))
      >>> sparse.bcoo_dot_general(m, jnp.array([1., 10.]), dimension_numbers=(((1,), (0,)), ((), ())))
      Array([20.,  3.], dtype=float32)
    """
    if out_sharding is not None:
        raise NotImplementedError(public("bcoo_dot_general has no out_sharding: use jax.lax.with_sharding_constraint"))
    (lc, rc), (lb, rb) = dimension_numbers
    numbers = ((tuple(lc), tuple(rc)), (tuple(lb), tuple(rb)))
    preferred = None if preferred_element_type is None else np.dtype(preferred_element_type)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _spdot_general(lhs, rhs, numbers, preferred)
    if isinstance(lhs, BCOO):
        return bcoo_dot_general_p.bind(
            lhs.data,
            lhs.indices,
            jnp.asarray(rhs),
            dimension_numbers=numbers,
            spinfo=lhs._info,
            preferred_element_type=preferred,
            precision=precision,
        )
    if not isinstance(rhs, BCOO):
        raise TypeError(f"bcoo_dot_general takes a BCOO array, got {type(lhs)} and {type(rhs)}")
    (lc, rc), (lb, rb) = numbers
    swapped = ((rc, lc), (rb, lb))
    out = bcoo_dot_general(rhs, lhs, dimension_numbers=swapped, precision=precision, preferred_element_type=preferred)
    n, m = len(lb), rhs.ndim - len(rb) - len(rc)
    return out.transpose(*range(n), *range(n + m, out.ndim), *range(n, n + m))


def _spdot(ld, li, rd, ri, *, pairs, lhs_shape, rhs_shape, dtype):
    """The product of two arrays without batch and dense dimensions, over pairs of their dimensions."""
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    together = elements.matches(elements.columns(li, ours), elements.columns(ri, theirs))
    there = elements.inside(li, lhs_shape)[:, None] & elements.inside(ri, rhs_shape)[None, :] & together
    data = ld.astype(dtype)[:, None] * rd.astype(dtype)[None, :]
    left = [d for d in range(len(lhs_shape)) if d not in ours]
    right = [d for d in range(len(rhs_shape)) if d not in theirs]
    n, m = there.shape
    index = jnp.promote_types(li.dtype, ri.dtype)
    indices = jnp.concatenate(
        [
            jnp.broadcast_to(elements.columns(li, left)[:, None], (n, m, len(left))).astype(index),
            jnp.broadcast_to(elements.columns(ri, right)[None], (n, m, len(right))).astype(index),
        ],
        -1,
    ).reshape(n * m, -1)
    shape = (*(lhs_shape[d] for d in left), *(rhs_shape[d] for d in right))
    data, indices = elements.keep(data.reshape(n * m), indices.reshape(n * m, len(shape)), there.reshape(n * m), shape)
    size = math.prod(shape)
    return elements.sum_duplicates(data, indices, shape, size) if size < n * m else (data, indices)


def _spdot_batched(ld, li, rd, ri, *, pairs, lhs_shape, rhs_shape, dtype, axes):
    fun = functools.partial(_spdot, pairs=pairs, lhs_shape=lhs_shape, rhs_shape=rhs_shape, dtype=dtype)
    for left, right in reversed(axes):
        fun = broadcasting_vmap(fun, (left, left, right, right))
    return fun(ld, li, rd, ri)


bcoo_spdot_general_p: Final = composed("bcoo_spdot_general", _spdot_batched, multiple_results=True)


def _spdot_general(lhs: BCOO, rhs: BCOO, dimension_numbers, preferred) -> BCOO:
    c = _contraction(lhs.shape, rhs.shape, dimension_numbers)
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError(f"the product of sparse arrays with dense dimensions, got {lhs} and {rhs}")
    lhs = _contracted_as_sparse(lhs, c.lhs_contract, c.lhs_batch)
    rhs = _contracted_as_sparse(rhs, c.rhs_contract, c.rhs_batch)
    for mat, own in ((lhs, c.lhs_batch), (rhs, c.rhs_batch)):
        if any(d >= mat.n_batch for d in own):
            raise NotImplementedError(f"batch dimensions of a product that are not batch dimensions of {mat}")
    pairs = tuple((a - lhs.n_batch, b - rhs.n_batch) for a, b in zip(c.lhs_contract, c.rhs_contract))
    own = [d for d in range(lhs.n_batch) if d not in c.lhs_batch]
    if any(d < rhs.n_batch for d in c.rhs_free) and any(d >= lhs.n_batch for d in c.lhs_free):
        rhs_free = [d for d in range(rhs.n_batch) if d not in c.rhs_batch]
        if rhs_free[0] != len(c.rhs_batch) or max(c.rhs_batch, default=-1) >= rhs_free[0]:
            raise NotImplementedError(
                f"bcoo_dot_general: batch dimensions of {rhs} come after sparse ones in the product; change its layout first"
            )
        moved = rhs.n_batch - rhs_free[0]
        rhs = bcoo_update_layout(rhs, n_batch=rhs.n_batch - moved)
        pairs = tuple((a, b + moved) for a, b in pairs)
    theirs = [d for d in range(rhs.n_batch) if d not in c.rhs_batch]
    # batch dimensions of the product, then those of one operand alone; each is mapped at its position among the others
    order = [*zip(c.lhs_batch, c.rhs_batch), *((d, None) for d in own), *((None, d) for d in theirs)]
    axes, gone = [], ([], [])
    for pair in order:
        axes.append(tuple(None if d is None else d - sum(g < d for g in g_) for d, g_ in zip(pair, gone)))
        for d, g_ in zip(pair, gone):
            if d is not None:
                g_.append(d)
    dtype = preferred or jnp.result_type(lhs.dtype, rhs.dtype)
    data, indices = bcoo_spdot_general_p.bind(
        lhs.data,
        lhs.indices,
        rhs.data,
        rhs.indices,
        pairs=pairs,
        lhs_shape=lhs.sparse_shape,
        rhs_shape=rhs.sparse_shape,
        dtype=dtype,
        axes=tuple(axes),
    )
    shape = [lhs.shape[d] for d in (*c.lhs_batch, *c.lhs_free)]
    return BCOO((data, indices), shape=(*shape, *(rhs.shape[d] for d in c.rhs_free)))


def _contracted_as_sparse(mat: BCOO, contract: tuple, batch: tuple) -> BCOO:
    """The array with contracted batch dimensions as sparse ones."""
    hit = [d for d in contract if d < mat.n_batch]
    if not hit:
        return mat
    if any(d >= min(hit) for d in batch):
        raise NotImplementedError(
            f"the product of {mat} over the batch dimensions {hit}: they must be after {batch}; transpose it first"
        )
    return bcoo_update_layout(mat, n_batch=min(hit))


def _dot_general_sampled(A, B, indices, *, dimension_numbers):
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    c = _contraction(A.shape, B.shape, dimension_numbers)
    if len(c.lhs_batch) != n_batch or len(c.lhs_free) + len(c.rhs_free) != n_sparse:
        return extracted(indices, lax.dot_general(A, B, dimension_numbers))
    A = A.transpose(*c.lhs_batch, *c.lhs_free, *c.lhs_contract)
    B = B.transpose(*c.rhs_batch, *c.rhs_free, *c.rhs_contract)
    n = len(c.lhs_free)

    def sample(a, b, i):
        product = elements.extract(i[:, :n], a) * elements.extract(i[:, n:], b)
        return product.sum(tuple(range(1, product.ndim)))

    return mapped(sample, n_batch, A, B, indices)


bcoo_dot_general_sampled_p: Final = composed("bcoo_dot_general_sampled", _dot_general_sampled)


def bcoo_dot_general_sampled(
    A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: tuple[tuple[Any, ...], ...]
) -> Array:
    """Compute the elements of a product of dense arrays at the given indices.

    Args:
      A, B: dense arrays.
      indices: ``(*batch, nse, n_sparse)`` integers.
      dimension_numbers: see `jax.lax.dot_general`.

    Returns:
      ``(*batch, nse, *dense)``; 0 for indices out of bounds. If all remaining dimensions are sparse, only
      these elements are computed.

    Examples:

      >>> from jax.experimental import sparse

      >>> indices = jnp.array([[0, 1], [1, 1]])
      >>> x = jnp.array([[1., 2.], [3., 4.]])
      >>> sparse.bcoo_dot_general_sampled(x, x, indices, dimension_numbers=(((1,), (0,)), ((), ())))
      Array([10., 22.], dtype=float32)
    """
    (lc, rc), (lb, rb) = dimension_numbers
    numbers = ((tuple(lc), tuple(rc)), (tuple(lb), tuple(rb)))
    return bcoo_dot_general_sampled_p.bind(
        jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices), dimension_numbers=numbers
    )


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Any:
    """The data of the product of a sparse array with a dense one that is broadcast to its shape.

    Args:
      sp_mat: BCOO array.
      v: array.

    Returns:
      An array with the product of each stored element.

    Raises:
      NotImplementedError: the product has a larger shape than `sp_mat`.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([0., 2., 3.]))
      >>> (m * jnp.array([10., 20., 30.])).todense()
      Array([ 0., 40., 90.], dtype=float32)
    """
    v = jnp.asarray(v)
    if v.ndim > sp_mat.ndim or jnp.broadcast_shapes(v.shape, sp_mat.shape) != sp_mat.shape:
        raise NotImplementedError(f"a product larger than the sparse operand: shapes {sp_mat.shape} and {v.shape}")
    v = v.reshape((1,) * (sp_mat.ndim - v.ndim) + v.shape)
    edge = sp_mat.n_batch + sp_mat.n_sparse
    ones = [i for i in range(sp_mat.n_sparse) if v.shape[sp_mat.n_batch + i] == 1 != sp_mat.sparse_shape[i]]

    def multiply(data, indices, v):
        if ones:
            indices = indices.at[:, np.array(ones)].set(0)
        return data * elements.extract(indices, v)

    if v.shape[sp_mat.n_batch : edge] == (1,) * sp_mat.n_sparse:
        return sp_mat.data * v.reshape(*v.shape[: sp_mat.n_batch], 1, *v.shape[edge:])
    batch = jnp.broadcast_shapes(sp_mat.data.shape[: sp_mat.n_batch], v.shape[: sp_mat.n_batch])
    out = mapped(multiply, sp_mat.n_batch, sp_mat.data, sp_mat.indices, v)
    return jnp.broadcast_to(out, (*batch, *out.shape[sp_mat.n_batch :])) if 0 not in batch else out


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two sparse arrays of one shape and layout; it stores pairs of elements.

    Args:
      lhs, rhs: BCOO arrays.

    Raises:
      NotImplementedError: the shapes or layouts differ.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.BCOO.fromdense(jnp.array([0., 2., 3.]))
      >>> sparse.bcoo_multiply_sparse(m, m).todense()
      Array([0., 4., 9.], dtype=float32)
    """
    if lhs.shape != rhs.shape or (lhs.n_batch, lhs.n_dense) != (rhs.n_batch, rhs.n_dense):
        raise NotImplementedError(f"the product of sparse arrays of different shapes or layouts: {lhs} and {rhs}")
    shape = lhs.sparse_shape

    def multiply(ld, li, rd, ri):
        n, m = li.shape[0], ri.shape[0]
        there = elements.matches(li, ri) & elements.inside(li, shape)[:, None]
        data = (ld[:, None] * rd[None]).reshape(n * m, *ld.shape[1:])
        indices = jnp.broadcast_to(li[:, None], (n, m, len(shape))).reshape(n * m, len(shape))
        return elements.keep(data, indices, there.reshape(n * m), shape)

    data, indices = mapped(multiply, lhs.n_batch, lhs.data, lhs.indices, rhs.data, rhs.indices)
    unique = lhs.unique_indices and rhs.unique_indices
    return BCOO((data, indices), shape=lhs.shape, unique_indices=unique)
