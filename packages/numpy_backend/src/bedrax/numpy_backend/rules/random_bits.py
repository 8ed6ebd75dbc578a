"""NumPy evaluation of random bits: the generators as XLA's CPU backend draws them."""

from __future__ import annotations

import math

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.primitives import random_bits as p
from bedrax.numpy_backend.rules.elementwise import checked
from bedrax.numpy_backend.tables import numpy_rules

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def _rotate_left(x, r):
    return (x << np.uint32(r)) | (x >> np.uint32(32 - r))


def threefry(key1, key2, x1, x2):
    """The hash of uint32 arrays."""
    with np.errstate(over="ignore"):  # sums are modulo 2**32
        return p.threefry_hash((key1, key2), x1, x2, np.add, np.bitwise_xor, _rotate_left, np.uint32)


@numpy_rules.rule(p.threefry2x32_p)
def _threefry(*args):
    shape = checked(p.threefry2x32_p, *args)[0].shape
    return [np.array(np.broadcast_to(y, shape)) for y in threefry(*args)]


# Philox-4x32 with 10 rounds: multipliers, and what is added to the key between rounds.
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))


def philox(counter, key):
    """Four words (uint64 arrays below 2**32) from a counter of four words and a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ k0, p1 & _LOW, (p0 >> _HALF) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _WEYL[0]) & _LOW, (k1 + _WEYL[1]) & _LOW
    return c0, c1, c2, c3


@numpy_rules.rule(p.rng_bit_generator_p)
def _bit_generator(key, *, shape, dtype, algorithm):
    checked(p.rng_bit_generator_p, key, shape=shape, dtype=dtype, algorithm=algorithm)
    # The state: 64 bits of key, and a 64-bit counter of blocks.
    secret, start = np.ascontiguousarray(key).astype(key.dtype.newbyteorder("<")).view("<u8")
    draw = _draw_threefry if algorithm == p.RandomAlgorithm.RNG_THREE_FRY else _draw_philox
    with np.errstate(over="ignore"):
        bits, blocks = draw(secret, start, shape, dtype == np.uint64)
        new_key = np.array([secret, start + np.uint64(blocks)], "<u8").view(key.dtype.newbyteorder("<"))
    return [new_key.astype(key.dtype), np.asarray(bits).astype(dtype)]


def _join(low, high):
    return low.astype(np.uint64) | (high.astype(np.uint64) << _HALF)


def _draw_threefry(secret, start, shape, wide):
    """Two words a block. The words of a block are neighbours along one axis: the first of even length, or the longest."""
    half, axis = list(shape), 0
    if shape and not wide:
        axis = next((i for i, n in enumerate(shape) if n % 2 == 0), int(np.argmax(shape)))
        half[axis] = -(-half[axis] // 2)
    blocks = math.prod(half)
    counter = (start + np.arange(blocks, dtype=np.uint64)).reshape(half)
    words = (secret & _LOW, secret >> _HALF, counter & _LOW, counter >> _HALF)
    x0, x1 = threefry(*(np.asarray(v).astype(np.uint32) for v in words))
    if wide:
        return _join(x0, x1), blocks
    if not shape:
        return x0, blocks
    both = np.stack([x0, x1], axis + 1).reshape(*half[:axis], 2 * half[axis], *half[axis + 1 :])
    return np.take(both, np.arange(shape[axis]), axis), blocks


def _draw_philox(secret, start, shape, wide):
    """Four words a block, in order. The counter has 128 bits: the state, and above it the key."""
    words = math.prod(shape) * (2 if wide else 1)
    blocks = -(-words // 4)
    low = start + np.arange(blocks, dtype=np.uint64)
    high = secret + (low < start)  # the carry
    drawn = philox((low & _LOW, low >> _HALF, high & _LOW, high >> _HALF), (secret & _LOW, secret >> _HALF))
    flat = np.stack(drawn, axis=-1).reshape(-1)[:words]
    bits = _join(flat[0::2], flat[1::2]) if wide else flat
    return bits.reshape(shape), blocks


_stateful = np.random.default_rng()


@numpy_rules.rule(p.rng_uniform_p)
def _uniform(a, b, *, shape):
    checked(p.rng_uniform_p, a, b, shape=shape)
    if dtypes.is_integer(a.dtype):
        draws = _stateful.integers(int(a), max(int(b), int(a) + 1), shape, dtype=np.int64 if int(a) < 0 else np.uint64)
        return np.asarray(draws).astype(a.dtype)
    low, high = a.astype(np.float64), b.astype(np.float64)
    draws = np.asarray(low + (high - low) * _stateful.random(shape)).astype(a.dtype)
    return np.where(draws < b, draws, a)  # rounding may have reached b
