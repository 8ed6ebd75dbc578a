"""Threefry-2x32 with 20 rounds, the default generator, as functions of one key's two numbers.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): a keyed
bijection of pairs of 32-bit numbers, made of additions, rotations and exclusive ors. Bits are made by hashing counts:
the pair for an element of an array is that of its row-major index, high half first, so that every element's bits depend
on nothing but the key and its own index.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core import dims
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives.random_bits import threefry2x32_p
from bedrax.random import flags

_U32 = np.dtype(np.uint32)
KEY_SHAPE = (2,)


def hash_pairs(key: ArrayLike, x0: Array, x1: Array) -> list[Array]:
    """The bijection, with the key of shape (2,), of the pairs (x0, x1): two uint32 arrays of their shape."""
    return threefry2x32_p.bind(key_word(key, 0), key_word(key, 1), x0, x1)


def key_word(key: ArrayLike, i: int) -> Array:
    """One of a key's numbers, of rank 0."""
    return lax.index_in_dim(key, i, 0, keepdims=False)


def counts(shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The row-major index of each element of an array, as high and low halves."""
    if not shape:
        zero = lax.full((), 0, _U32)
        return zero, zero
    static = dims.is_constant_shape(shape)
    if static and math.prod(shape) <= 2**32:
        low = lax.reshape(lax.iota(_U32, math.prod(shape)), shape)
        return lax.full(shape, 0, _U32), low
    # index = sum of (position along each axis) * (elements per step), kept as two halves
    high, low = lax.full(shape, 0, _U32), lax.full(shape, 0, _U32)
    step = 1
    for axis in range(len(shape) - 1, -1, -1):
        position = lax.broadcasted_iota(_U32, shape, axis)
        part_high, part_low = _times(position, step)
        total = lax.add(low, part_low)
        carry = lax.convert_element_type(lax.lt(total, low), _U32)
        high, low = lax.add(lax.add(high, part_high), carry), total
        step = step * shape[axis]
    return high, low


def _times(x, step) -> tuple:
    """The 64-bit product of an array of uint32 and a dimension, as halves."""
    if dims.is_constant_dim(step):
        step = int(step)
        low_step, high_step = np.uint32(step % 2**32), np.uint32(step >> 32)
        high = lax.add(lax.mulhi(x, lax.full(aval_of(x).shape, low_step, _U32)), lax.mul(x, high_step))
        return high, lax.mul(x, low_step)
    value = lax.convert_element_type(dims.dim_as_value(step), _U32)  # symbolic sizes are below 2**31
    value = lax.broadcast(value, aval_of(x).shape)
    return lax.mulhi(x, value), lax.mul(x, value)


def seed(number: Array) -> Array:
    """The key of a seed, an integer of rank 0: its high and low halves."""
    dtype = aval_of(number).dtype
    if dtype.itemsize == 8:
        unsigned = lax.convert_element_type(number, np.uint64)
        halves = lax.shift_right_logical(unsigned, np.uint64(32)), unsigned
    else:
        halves = lax.full((), 0, _U32), number
    return lax.concatenate([lax.reshape(_u32(x), (1,)) for x in halves], 0)


def _u32(x):
    return lax.convert_element_type(x, _U32)


def split(key: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Keys of shape ``(*shape, 2)``."""
    if flags.threefry_partitionable.value:
        pair = hash_pairs(key, *counts(shape))
        return lax.concatenate([lax.reshape(x, (*shape, 1)) for x in pair], len(shape))
    return lax.reshape(_hash_sequence(key, lax.iota(_U32, math.prod(shape) * 2)), (*shape, 2))


def fold_in(key: ArrayLike, data: Array) -> Array:
    """The key derived from `key` and a number (uint32, rank 0): the number seeds a key, which is hashed under `key`."""
    folded = seed(data)
    return lax.concatenate([lax.reshape(x, (1,)) for x in hash_pairs(key, key_word(folded, 0), key_word(folded, 1))], 0)


def bits(key: ArrayLike, bit_width: int, shape: tuple[int, ...]) -> Array:
    """Uniformly distributed unsigned integers of 8, 16, 32 or 64 bits."""
    dtype = np.dtype(f"uint{bit_width}")
    if not flags.threefry_partitionable.value:
        return _sequential_bits(key, bit_width, shape, dtype)
    high, low = hash_pairs(key, *counts(shape))
    if bit_width == 64:
        return joined(high, low)
    mixed = lax.bitwise_xor(high, low)
    return mixed if bit_width == 32 else lax.convert_element_type(mixed, dtype)


def joined(high: Array, low: Array) -> Array:
    """Numbers of 64 bits from their high and low words."""
    u64 = np.dtype(np.uint64)
    high, low = (lax.convert_element_type(x, u64) for x in (high, low))
    return lax.bitwise_or(lax.shift_left(high, np.uint64(32)), low)


# ---- the older scheme, whose bits depend on the size of the array (jax_threefry_partitionable=False) ----


def _hash_sequence(key, numbers):
    """Hash a vector: its first half paired with its second half (with a zero behind an odd number of them)."""
    n = aval_of(numbers).shape[0]
    if n % 2:
        numbers = lax.concatenate([numbers, lax.full((1,), 0, _U32)], 0)
    half = (n + 1) // 2
    pair = hash_pairs(key, lax.slice_in_dim(numbers, 0, half), lax.slice_in_dim(numbers, half, 2 * half))
    return lax.slice_in_dim(lax.concatenate(list(pair), 0), 0, n)


def _sequential_bits(key, bit_width, shape, dtype):
    size = math.prod(shape)
    words = -(-size * bit_width // 32)
    stream = _hash_sequence(key, lax.iota(_U32, words))
    if bit_width == 64:
        stream = joined(lax.slice_in_dim(stream, 0, size), lax.slice_in_dim(stream, size, 2 * size))
    elif bit_width < 32:
        # each word is cut into its parts, lowest first
        parts = 32 // bit_width
        wide = lax.broadcast_in_dim(stream, (words, parts), (0,))
        shifts = lax.mul(lax.broadcasted_iota(_U32, (words, parts), 1), np.uint32(bit_width))
        stream = lax.convert_element_type(lax.shift_right_logical(wide, shifts), dtype)
        stream = lax.slice_in_dim(lax.reshape(stream, (words * parts,)), 0, size)
    return lax.reshape(stream, shape)


__all__ = ["KEY_SHAPE", "bits", "fold_in", "hash_pairs", "seed", "split"]
