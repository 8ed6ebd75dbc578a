"""NumPy evaluation of random bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.primitives import random_bits as p
from bedrax.numpy_backend.rules.elementwise import checked
from bedrax.numpy_backend.tables import Exactness, exact_rules, numpy_rules


def _rotate_left(x, r):
    return (x << np.uint32(r)) | (x >> np.uint32(32 - r))


def threefry(
    key1: np.ndarray[Any, Any], key2: np.ndarray[Any, Any], x1: np.ndarray[Any, Any], x2: np.ndarray[Any, Any]
) -> tuple[Any, ...]:
    """The hash of uint32 arrays."""
    with np.errstate(over="ignore"):  # sums are modulo 2**32
        return p.threefry_hash((key1, key2), x1, x2, np.add, np.bitwise_xor, _rotate_left, np.uint32)


@numpy_rules.rule(p.threefry2x32_p)
def _threefry(*args):
    shape = checked(p.threefry2x32_p, *args)[0].shape
    return [np.array(np.broadcast_to(y, shape)) for y in threefry(*args)]


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


exact_rules.add(p.threefry2x32_p, lambda types: Exactness.BITS)
