"""Operations on the stored elements of one sparse array, without batch dimensions.

`data` has shape ``(nse, *dense)``, `indices` are integers of shape ``(nse, n_sparse)``; `shape` is that of the sparse
dimensions. An index out of bounds marks padding; all indices of padding that an operation makes
are the sizes of the dimensions. Elements with equal indices are added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax


def columns(indices: Any, dims: Sequence[int]) -> Any:
    """The indices of some dimensions."""
    return indices[..., np.array(dims, np.int32)] if dims else indices[..., :0]


def inside(indices: Any, shape: tuple[Any, ...]) -> Any:
    """A boolean per element, of shape ``(nse,)``: whether its indices are in bounds, so that it is no padding."""
    limits = np.array(shape, np.int32).reshape(1, -1)
    return ((indices >= 0) & (indices < limits.astype(indices.dtype))).all(1)


def keep(data: Any, indices: Any, kept: Any, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The elements for which `kept` is true; the others become padding, with data of zero."""
    mask = kept.reshape(kept.shape + (1,) * (data.ndim - 1))
    absent = jnp.array(shape, indices.dtype).reshape(1, len(shape))
    return jnp.where(mask, data, jnp.zeros((), data.dtype)), jnp.where(kept[:, None], indices, absent)


def todense(data: Any, indices: Any, shape: tuple[Any, ...]) -> Any:
    """The dense array, of shape ``(*shape, *dense)``."""
    out = jnp.zeros((*shape, *data.shape[1:]), data.dtype)
    if not shape:
        return data.any(0) if data.dtype == bool else data.sum(0).astype(data.dtype)
    at = out.at[tuple(indices[:, i] for i in range(len(shape)))]
    return at.max(data, mode="drop") if data.dtype == bool else at.add(data, mode="drop")


def extract(indices: Any, mat: Any) -> Any:
    """The elements of a dense array at indices, ``(nse, *dense)``; zero for indices out of bounds."""
    if not indices.shape[1]:
        return jnp.broadcast_to(mat, (indices.shape[0], *mat.shape))
    return mat.at[tuple(indices[:, i] for i in range(indices.shape[1]))].get(mode="fill", fill_value=0)


def positions(mask: Any, nse: int, dtype: Any) -> Any:
    """The indices of the first `nse` true elements."""
    shape, size = mask.shape, math.prod(mask.shape)
    flat = jnp.nonzero(mask.reshape(size), size=nse, fill_value=size)[0]
    columns = jnp.unravel_index(jnp.minimum(flat, max(size - 1, 0)), shape) if shape and size else [flat] * len(shape)
    columns = [jnp.where(flat < size, c, n) for c, n in zip(columns, shape)]
    return jnp.stack(columns, 1).astype(dtype) if shape else jnp.zeros((nse, 0), dtype)


def order(indices: Any) -> Any:
    """The permutation of a stable lexicographic sort of the indices."""
    iota = lax.iota(np.int32, indices.shape[0])
    columns = [indices[:, i] for i in range(indices.shape[1])]
    return lax.sort((*columns, iota), num_keys=len(columns))[-1] if columns else iota


def groups(indices: Any, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """(the order of the indices, for each element in that order the number of its group, the number of groups).

    Elements of a group have equal indices; padding is in the last group, which is not counted.
    """
    there = inside(indices, shape)
    absent = jnp.array(shape, indices.dtype).reshape(1, len(shape))
    indices = jnp.where(there[:, None], indices, absent)
    by = order(indices)
    if not indices.shape[0]:
        return by, by, np.int32(0)
    rows = indices[by]
    new = jnp.concatenate([jnp.ones(1, bool), (rows[1:] != rows[:-1]).any(1)])
    group = jnp.cumsum(new) - 1
    return by, group.astype(np.int32), (new & there[by]).sum().astype(np.int32)


def sum_duplicates(data: Any, indices: Any, shape: tuple[Any, ...], nse: int) -> tuple[Any, ...]:
    """Sorted elements with unique indices, in arrays of `nse` elements."""
    by, group, _ = groups(indices, shape)
    kept, rows = keep(data, indices, inside(indices, shape), shape)
    out = jnp.broadcast_to(jnp.array(shape, indices.dtype), (nse, len(shape)))
    new = out.at[group].set(rows[by], mode="drop")
    total = jnp.zeros((nse, *data.shape[1:]), data.dtype).at[group]
    return total.max(kept[by], mode="drop") if data.dtype == bool else total.add(kept[by], mode="drop"), new


def first_of_each(indices: Any, shape: tuple[Any, ...]) -> Any:
    """A boolean per element: whether it is the first one with its indices."""
    by, group, _ = groups(indices, shape)
    first = jnp.concatenate([jnp.ones(1, bool), group[1:] != group[:-1]]) if group.shape[0] else group.astype(bool)
    return jnp.zeros(first.shape, bool).at[by].set(first)


def matches(lhs: Any, rhs: Any) -> Any:
    """A boolean per pair of elements: whether their indices are equal, of shape ``(n, m)``."""
    return (lhs[:, None, :] == rhs[None, :, :]).all(2)


def contract(
    data: Any,
    indices: Any,
    rhs: Any,
    *,
    shape: tuple[int, ...],
    sparse: tuple[tuple[Any, ...], ...],
    dense: tuple[Any, ...],
    free_shape: tuple[int, ...],
    precision: Any,
) -> Any:
    """The product of the stored elements with a dense array, over some dimensions.

    Args:
      shape: sizes of the sparse dimensions.
      sparse: pairs (sparse dimension, dimension of `rhs`).
      dense: pairs (dense dimension, dimension of `rhs`).
      free_shape: the shape of the result: the remaining sparse dimensions, dense dimensions, and dimensions of `rhs`.
    """
    front = [d for _, d in sparse]
    middle = [d for _, d in dense]
    rest = [d for d in range(rhs.ndim) if d not in front and d not in middle]
    rhs = rhs.transpose(*front, *middle, *rest)
    n_dense = data.ndim - 1
    names = iter("abcdefghijklmnopqrstuvwxyABCDEFGHIJKLMNOPQRSTUVWXY")
    own = [next(names) for _ in range(n_dense)]
    left = "".join(own)
    common = "".join(own[d] for d, _ in dense)
    right = "".join(next(names) for _ in rest)
    kept = "".join(x for i, x in enumerate(own) if i not in {d for d, _ in dense})
    free = [d for d in range(len(shape)) if d not in {s for s, _ in sparse}]
    if sparse:
        rhs = extract(columns(indices, [s for s, _ in sparse]), rhs)
        lead, out = "Z", "" if not free else "Z"
    else:
        lead, out = "", "" if not free else "Z"
        if not free:
            data = data.sum(0)
    first = "" if data.ndim == n_dense else "Z"
    product = jnp.einsum(f"{first}{left},{lead}{common}{right}->{out}{kept}{right}", data, rhs, precision=precision)
    if not free:
        return product
    return todense(product, columns(indices, free), tuple(shape[d] for d in free)).reshape(free_shape)
