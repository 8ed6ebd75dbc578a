"""The Threefry hash, written out and as a loop, and the bit generators, as XLA's CPU backend draws them.

All arithmetic is of 32-bit words: there are runtimes and modes without 64-bit integers.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from bedrax.core import dims
from bedrax.lax.primitives import elementwise as e
from bedrax.lax.primitives import random_bits as p
from bedrax.lax.primitives import shaping
from bedrax.lax.primitives.control_flow import fori_loop
from bedrax.lax.primitives.conversions import convert_to
from bedrax.lax.primitives.shaping import broadcast_in_dim
from bedrax.lax.tables import decompositions

_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)


def _rotate_left(x, r):
    right = np.uint32(32 - r) if isinstance(r, int) else e.sub(np.uint32(32), r)
    return e.bitwise_or(e.shift_left(x, np.uint32(r) if isinstance(r, int) else r), e.shift_right_logical(x, right))


@decompositions.rule(p.threefry2x32_p)
def threefry(key1: Any, key2: Any, x1: Any, x2: Any) -> Any:
    return list(p.threefry_hash((key1, key2), x1, x2, e.add, e.bitwise_xor, _rotate_left, np.uint32))


def threefry_loop(key1: Any, key2: Any, x1: Any, x2: Any) -> Any:
    """`threefry` with a loop of two turns of eight rounds, then the last four rounds; each turn shifts the keys by two."""

    def four_rounds(x1, x2, rotations):
        for r in rotations:
            x1 = e.add(x1, x2)
            x2 = e.bitwise_xor(_rotate_left(x2, r), x1)
        return x1, x2

    def inject(x1, x2, key1, key2, n):
        return e.add(x1, key1), e.add(x2, e.add(key2, n))

    def turn(i, carry):
        x1, x2, (key1, key2, key3) = carry
        n = convert_to(e.mul(i, np.int32(2)), np.uint32)
        x1, x2 = four_rounds(x1, x2, p.ROTATIONS[0])
        x1, x2 = inject(x1, x2, key2, key3, e.add(n, np.uint32(1)))
        x1, x2 = four_rounds(x1, x2, p.ROTATIONS[1])
        x1, x2 = inject(x1, x2, key3, key1, e.add(n, np.uint32(2)))
        return x1, x2, (key3, key1, key2)

    key3 = e.bitwise_xor(e.bitwise_xor(key1, key2), np.uint32(p.PARITY))
    x1, x2 = e.add(x1, key1), e.add(x2, key2)
    shape = x1.shape or x2.shape
    x1, x2 = (x if x.shape == shape else broadcast_in_dim(x, shape, ()) for x in (x1, x2))
    x1, x2, (_, key2, key3) = fori_loop(np.int32(0), np.int32(2), turn, (x1, x2, (key1, key2, key3)))
    x1, x2 = four_rounds(x1, x2, p.ROTATIONS[0])
    return list(inject(x1, x2, key2, key3, np.uint32(5)))


# ---- generators ----------------------------------------------------------------------------------


@decompositions.rule(p.rng_bit_generator_p)
def _bit_generator(key, *, shape, dtype, algorithm):
    # The state: 64 bits of key, and a 64-bit counter of blocks; each is a pair of words, the low one first.
    parts = shaping.unstack(key)
    narrow = key.dtype == _U32
    secret, start = (parts[:2], parts[2:]) if narrow else map(_halves, parts)
    draw = _draw_threefry if algorithm == p.RandomAlgorithm.RNG_THREE_FRY else _draw_philox
    bits, blocks = draw(secret, start, shape, dtype == _U64)
    low, high, _ = _advanced(start, convert_to(blocks, _U32))
    words = (*secret, low, high) if narrow else (_joined(*secret), _joined(low, high))
    return [shaping.stack(words), convert_to(bits, dtype)]


def _halves(x):
    return convert_to(x, _U32), convert_to(e.shift_right_logical(x, _half()), _U32)


def _half():
    return convert_to(np.uint32(32), _U64)  # a constant of 64 bits would be narrowed where jax_enable_x64 is off


def _joined(low, high):
    return e.bitwise_or(convert_to(low, _U64), e.shift_left(convert_to(high, _U64), _half()))


def _advanced(number, count):
    """A number of two words, plus `count`: its low and high word, and the carry."""
    low = e.add(number[0], count)
    high = e.add(number[1], convert_to(e.lt(low, count), _U32))
    wrapped = e.bitwise_and(e.lt(low, count), e.eq(high, np.uint32(0)))
    return low, high, convert_to(wrapped, _U32)


def _draw_threefry(secret, start, shape, wide):
    """Two words per block. The words of a block are neighbours along one axis: the first of even length, or the longest."""
    half, axis = list(shape), 0
    if shape and not wide:
        even = [i for i, n in enumerate(shape) if dims.definitely_equal(n % 2, 0)]
        if not dims.is_constant_shape(shape[: even[0]] if even else shape):
            return _draw_threefry_somehow(secret, start, shape)
        axis = even[0] if even else int(np.argmax(shape))
        half[axis] = -(-half[axis] // 2)
    blocks = dims.size(half)
    low, high, _ = _advanced(start, shaping.reshape(shaping.iota(_U32, blocks), half))
    x0, x1 = p.threefry2x32_p.bind(*secret, low, high)
    if wide:
        return _joined(x0, x1), dims.dim_as_value(blocks)
    if not shape:
        return x0, dims.dim_as_value(blocks)
    both = shaping.reshape(shaping.stack([x0, x1], axis + 1), [*half[:axis], 2 * half[axis], *half[axis + 1 :]])
    return shaping.slice_in_dim(both, 0, shape[axis], axis=axis), dims.dim_as_value(blocks)


def _draw_threefry_somehow(secret, start, shape):
    """`_draw_threefry` for sizes of unknown parity: each element computes both words of its block."""
    sizes = [convert_to(dims.dim_as_value(n), np.int32) for n in shape]
    even = [e.eq(e.bitwise_and(n, np.int32(1)), np.int32(0)) for n in sizes]
    some_even = functools.reduce(e.bitwise_or, even)
    longest = functools.reduce(e.max, sizes)
    found, blocks, number, odd = np.False_, np.int32(1), np.int32(0), np.int32(0)
    halved = []
    for n, is_even in zip(sizes, even, strict=True):
        fits = e.select(some_even, is_even, e.eq(n, longest))
        halved.append(convert_to(e.bitwise_and(fits, e.bitwise_not(found)), np.int32))  # 1 for the axis of neighbours
        found = e.bitwise_or(found, fits)
    for i in reversed(range(len(shape))):
        place = shaping.broadcasted_iota(np.int32, shape, i)
        number = e.add(number, e.mul(e.shift_right_logical(place, halved[i]), blocks))
        odd = e.add(odd, e.bitwise_and(place, halved[i]))
        blocks = e.mul(blocks, e.shift_right_logical(e.add(sizes[i], halved[i]), halved[i]))
    low, high, _ = _advanced(start, convert_to(number, _U32))
    x0, x1 = p.threefry2x32_p.bind(*secret, low, high)
    return e.select(e.eq(odd, np.int32(0)), x0, x1), blocks


# Philox-4x32 with 10 rounds: multipliers, and the increments of the key between rounds.
_MULTIPLIERS = np.uint32(0xD2511F53), np.uint32(0xCD9E8D57)
_WEYL = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)


def _draw_philox(secret, start, shape, wide):
    """Four words per block, in order. The counter has 128 bits: the state, and above it the key."""
    count = dims.size(shape) * (2 if wide else 1)
    blocks = -(-count // 4)
    c0, c1, carry = _advanced(start, shaping.iota(_U32, blocks))
    c2, c3, _ = _advanced(secret, carry)
    keys = secret
    for _ in range(10):
        a, b = _MULTIPLIERS
        first, second = e.bitwise_xor(c1, keys[0]), e.bitwise_xor(c3, keys[1])
        c0, c1, c2, c3 = (
            e.bitwise_xor(e.mulhi(c2, b), first),
            e.mul(c2, b),
            e.bitwise_xor(e.mulhi(c0, a), second),
            e.mul(c0, a),
        )
        keys = [e.add(k, w) for k, w in zip(keys, _WEYL, strict=True)]
    flat = shaping.slice_in_dim(shaping.reshape(shaping.stack([c0, c1, c2, c3], 1), (4 * blocks,)), 0, count)
    bits = _joined(*(shaping.slice_in_dim(flat, i, None, 2) for i in (0, 1))) if wide else flat
    return shaping.reshape(bits, shape), dims.dim_as_value(blocks)
