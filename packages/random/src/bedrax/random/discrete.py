"""Samplers that choose: permutations, categories, members of an array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives.placement import placed, placed_call
from bedrax.numpy import searchsorted
from bedrax.random.arguments import as_dtype, broadcast_to, parameter, shape_of
from bedrax.random.continuous import gumbel_function
from bedrax.random.keys import raw_bits, single_key
from bedrax.random.uniforms import randint, split_keys, unit_floats

__all__ = ["categorical", "choice", "permutation"]


# ---- permutations ----


def _shuffled(key, x, axis: int):
    """Each line of `x` along `axis` in random order: sorted by random words, in enough rounds that ties are rare.

    A sort by n words of 32 bits is a uniform permutation unless words are equal; with ``3 log(n) / log(2^32)`` rounds
    all words of two elements are equal with a probability of at most about 1/n for any pair.
    """
    size = dims.size(aval_of(x).shape)

    def sorted_by(key, x):
        key, sub = split_keys(key, 2)
        words = raw_bits(sub, 32, aval_of(x).shape)
        return key, lax.sort((words, x), dimension=axis, is_stable=True, num_keys=1)[1]

    if dims.is_constant_dim(size):
        for _ in range(math.ceil(3 * math.log(max(1, size)) / math.log(2**32 - 1))):
            key, x = sorted_by(key, x)
        return x
    # The same rounds for each size that a symbolic one may have.
    rounds = sum(lax.convert_element_type(dims.dim_as_value(size) > n, np.dtype(np.int32)) for n in (1, 1625, 2642245))
    return lax.fori_loop(0, rounds, lambda _, state: sorted_by(*state), (key, x))[1]


@one_program(static=("axis",), everywhere=True)
def _shuffle(key, x, axis):
    return _shuffled(key, x, axis)


@one_program(static=("n", "dtype"), everywhere=True)
def _permuted_range(key, n, dtype):
    return _shuffled(key, lax.iota(dtype, n), 0)


@one_program(static=("axis",), everywhere=True)
def _permute_slices(key, x, axis):
    order = _shuffled(key, lax.iota(np.dtype(np.int32), aval_of(x).shape[axis]), 0)
    return take(x, order, axis)


def take(x: ArrayLike, indices: Array, axis: int) -> Array:
    """Slices of `x` at valid `indices` along `axis`."""
    shape = aval_of(x).shape
    where = aval_of(indices).shape
    if dims.definitely_equal(dims.size(where), 0):  # a gather takes one slice at least
        return lax.full_like(x, 0, shape=(*shape[:axis], *where, *shape[axis + 1 :]))
    dnums = lax.GatherDimensionNumbers(
        offset_dims=(*range(axis), *range(axis + len(where), len(shape) - 1 + len(where))),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    sizes = tuple(1 if i == axis else n for i, n in enumerate(shape))
    return lax.gather(x, lax.reshape(indices, (*where, 1)), dnums, sizes, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def _axis(axis, rank: int) -> int:
    axis = dims.integer(axis, "axis")
    if not -rank <= axis < rank:
        raise ValueError(coded("BX-AXIS-RANGE", f"axis {axis} is out of bounds for array of dimension {rank}"))
    return axis % rank


def _is_size(x) -> bool:
    return isinstance(x, (int, np.integer)) or dims.is_symbolic(x)


def _is_int(x) -> bool:
    if isinstance(x, (int, np.integer)):
        return True
    return isinstance(x, (Array, np.ndarray)) and not aval_of(x).shape and dtypes.is_integer(aval_of(x).dtype)


def _count(name: str, x: Any) -> Any:
    """The number of integers that the argument `x` of rank 0 stands for."""
    if not dims.is_symbolic(x) and not _is_int(x):
        raise TypeError(f"{name} takes an int or an array with an axis, got {x!r}")
    return dims.canonical_dim(x)


def permutation(
    key: ArrayLike, x: ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: Any = None
) -> Array:
    """A random permutation.

    Args:
      key: a single key.
      x: an int n, for the permutation of ``0, ..., n - 1`` (of no number, if n is negative); or an array, whose slices
        along `axis` are permuted.
      axis: axis of `x` to permute.
      independent: permute every line along `axis` on its own.
      out_sharding: placement of the result.

    Returns:
      An array like `x`, or of n integers.

    Examples:

      >>> jax.random.permutation(jax.random.key(0), 5)
      Array([0, 1, 4, 3, 2], dtype=int32)
      >>> jax.random.permutation(jax.random.key(0), jnp.array([[1, 2], [3, 4]]), axis=1)
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    key, _ = single_key("permutation", key)
    if not _is_size(x):
        x = parameter("permutation", x)
    rank = 0 if _is_size(x) else len(aval_of(x).shape)
    axis = _axis(axis, rank or 1)
    if not rank:
        n = _count("permutation", x)
        n = max(n, 0) if type(n) is int else n  # a range to a negative number is empty, as in NumPy
        return placed(_permuted_range(key, n, dtypes.default_int_dtype()), out_sharding)
    permute = _shuffle if independent or rank == 1 else _permute_slices
    if out_sharding is None:
        return permute(key, x, axis)
    return placed_call(out_sharding, lambda x: permute(key, x, axis), x)


# ---- categories ----


def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: tuple[int, ...] | None = None,
    replace: bool = True,
    mode: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Indices of categories, drawn with probabilities proportional to ``exp(logits)``.

    The maximum of independent Gumbel numbers shifted by the logits is at a category with its probability (Devroye,
    chapter III; Kool, van Hoof and Welling 2019 for draws without replacement: the largest few).

    Args:
      key: a single key.
      logits: unnormalized log probabilities; float array.
      axis: the axis of the categories.
      shape: of the result, which ``logits.shape`` without `axis` broadcasts to; default: that shape.
      replace: whether draws in the leading dimensions of `shape` may repeat a category.
      mode: precision of the Gumbel numbers, see `gumbel`.
      out_sharding: placement of the result.

    Returns:
      Integers below ``logits.shape[axis]``.

    Examples:

      >>> logits = jnp.log(jnp.array([0.1, 0.1, 0.8]))
      >>> jax.random.categorical(jax.random.key(0), logits, shape=(6,))
      Array([1, 2, 2, 1, 2, 2], dtype=int32)
    """
    key, _ = single_key("categorical", key)
    logits = parameter("categorical", logits)
    logits_shape = aval_of(logits).shape
    axis = _axis(axis, len(logits_shape))
    batch = tuple(n for i, n in enumerate(logits_shape) if i != axis)
    if shape is None:
        shape = batch
    else:
        shape = shape_of(shape)
        # each draw has a Gumbel number for each category: the result must be as the batch or larger
        if lax.broadcast_shapes(shape, batch) != shape:
            raise ValueError(coded("BX-BROADCAST", f"Incompatible shapes for broadcasting: shapes={[shape, batch]}"))
    dtype = aval_of(logits).dtype
    if not dtypes.is_floating(dtype):
        raise ValueError(f"dtype argument to `gumbel` must be a float dtype, got {dtype}")
    gumbel_function(mode)
    if replace:
        if dims.definitely_equal(logits_shape[axis], 0):
            raise ValueError(f"categorical: logits have no category along axis {axis}, got shape {logits_shape}")
        return placed(_categorical(key, shape, axis - len(logits_shape), mode, logits), out_sharding)
    prefix = shape[: len(shape) - len(batch)]
    draws = math.prod(prefix)
    if draws > logits_shape[axis]:
        raise ValueError(
            coded(
                "BX-SAMPLES",
                f"categorical: {draws} samples without replacement, of {logits_shape[axis]} categories only",
            )
        )
    return placed(_categories_apart(key, prefix, shape[len(prefix) :], axis, mode, logits), out_sharding)


@one_program(static=("shape", "axis", "mode"), everywhere=True)
def _categorical(key, shape, axis, mode, logits):
    categories = aval_of(logits).shape[axis]
    position = len(shape) + 1 + axis
    full = (*shape[:position], categories, *shape[position:])
    g = gumbel_function(mode)(key, full, aval_of(logits).dtype)
    return lax.argmax(lax.add(g, broadcast_to(logits, full)), position, dtypes.default_int_dtype())


@one_program(static=("prefix", "shape", "axis", "mode"), everywhere=True)
def _categories_apart(key, prefix, shape, axis, mode, logits):
    own = aval_of(logits).shape
    full = (*shape[:axis], own[axis], *shape[axis:])
    g = gumbel_function(mode)(key, full, aval_of(logits).dtype)
    scores = lax.add(g, broadcast_to(logits, full))
    rank = len(full)
    scores = lax.transpose(scores, (*(i for i in range(rank) if i != axis), axis))
    best = lax.top_k(scores, math.prod(prefix))[1]
    best = lax.transpose(best, (rank - 1, *range(rank - 1)))
    best = lax.reshape(best, (*prefix, *shape))
    dtype = dtypes.default_int_dtype()
    return best if aval_of(best).dtype == dtype else lax.convert_element_type(best, dtype)


# ---- members ----


def choice(
    key: ArrayLike,
    a: ArrayLike,
    shape: tuple[int, ...] = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: Any = None,
) -> Array:
    """Random members of an array.

    Args:
      key: a single key.
      a: array whose slices along `axis` are drawn from, or an int n for ``0, ..., n - 1``.
      shape: of the draws.
      replace: whether a member may be drawn again.
      p: probabilities, one for each member; default: equal ones.
      axis: axis of `a`.
      mode: precision of the Gumbel numbers that draw without replacement, see `gumbel`.

    Returns:
      An array of shape ``(*a.shape[:axis], *shape, *a.shape[axis + 1:])``.

    Examples:

      >>> jax.random.choice(jax.random.key(0), jnp.array([10, 20, 30, 40]), (3,), replace=False)
      Array([10, 20, 40], dtype=int32)
      >>> jax.random.choice(jax.random.key(0), 3, (4,), p=jnp.array([0., 0.5, 0.5]))
      Array([1, 1, 2, 2], dtype=int32)
    """
    key, _ = single_key("choice", key)
    if not isinstance(replace, (bool, np.bool_)):
        raise TypeError(f"choice: replace is a bool, got {replace!r}")
    shape = shape_of(shape)
    if not _is_size(a):
        a = parameter("choice", a)
    rank = 0 if _is_size(a) else len(aval_of(a).shape)
    axis = _axis(axis, rank or 1)
    members = aval_of(a).shape[axis] if rank else _count("choice", a)
    draws = dims.size(shape)
    if not dims.definitely_equal(draws, 0) and not members > 0:
        raise ValueError(f"choice: there is nothing to draw from: a has {members} members")
    members = max(members, 0) if type(members) is int else members
    if not replace and draws > members:
        raise ValueError(
            coded(
                "BX-SAMPLES",
                f"choice: {draws} samples without replacement, of {members} members only; pass replace=True",
            )
        )
    if p is None:
        if replace:
            return _members(a, rank, randint(key, shape, 0, dims.dim_as_value(members)), axis)
        if not rank:
            first = lax.slice_in_dim(permutation(key, members), 0, draws)
            return lax.reshape(first, shape)
        drawn = lax.slice_in_dim(permutation(key, a, axis), 0, draws, axis=axis)
        own = aval_of(a).shape
        return lax.reshape(drawn, (*own[:axis], *shape, *own[axis + 1 :]))
    p = parameter("choice", p)
    found = aval_of(p)
    if not dims.definitely_equal_shape(found.shape, (members,)):
        raise ValueError(f"choice: p has one probability per member, shape ({members},), got shape {found.shape}")
    dtype = found.dtype if dtypes.is_inexact(found.dtype) else dtypes.default_float_dtype()
    p = as_dtype(p, dtype)
    if replace:
        return _members(a, rank, _weighted(key, shape, p), axis)
    gumbel_function(mode)
    return _members(a, rank, lax.reshape(_weighted_apart(key, draws, mode, p), shape), axis)


def _members(a, rank, indices, axis):
    return take(a, indices, axis) if rank else indices


@one_program(static=("shape",), everywhere=True)
def _weighted(key, shape, p):
    n = aval_of(p).shape[0]
    if dims.definitely_equal(n, 0):  # nothing is drawn
        return lax.full(shape, 0, dtypes.default_int_dtype())
    total = lax.cumsum(p)
    last = lax.index_in_dim(total, n - 1, 0, keepdims=False)
    one = np.ones((), aval_of(p).dtype)
    r = lax.mul(broadcast_to(last, shape), lax.sub(one, unit_floats(key, shape, aval_of(p).dtype)))
    return lax.convert_element_type(searchsorted(total, r), dtypes.default_int_dtype())


@one_program(static=("draws", "mode"), everywhere=True)
def _weighted_apart(key, draws, mode, p):
    n = aval_of(p).shape[0]
    scores = lax.add(gumbel_function(mode)(key, (n,), aval_of(p).dtype), lax.log(p))
    return lax.convert_element_type(lax.top_k(scores, draws)[1], dtypes.default_int_dtype())
