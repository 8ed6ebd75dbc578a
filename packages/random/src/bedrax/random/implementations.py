"""The generators behind keys: they make a key of a seed, keys of a key, and bits of a key.

An implementation's functions take one key's base, a uint32 array of shape `key_shape`. Callers map them over arrays of
keys.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from bedrax import lax
from bedrax.lax.primitives.random_bits import rng_bit_generator
from bedrax.random import block_ciphers, flags, threefry

_U32 = np.dtype(np.uint32)


class KeyImplementation(NamedTuple):
    """A generator.

    Attributes:
      key_shape: shape of the uint32 array that is a key.
      seed: ``(integer of rank 0) -> key``.
      split: ``(key, shape) -> keys`` of shape ``(*shape, *key_shape)``.
      random_bits: ``(key, bit_width, shape) -> unsigned integers``, of width 8, 16, 32 or 64.
      fold_in: ``(key, uint32 of rank 0) -> key``.
      name: the name that ``impl=`` takes.
      tag: short name, printed as ``key<tag>``.
    """

    key_shape: tuple[int, ...]
    seed: Callable[..., Any]
    split: Callable[..., Any]
    random_bits: Callable[..., Any]
    fold_in: Callable[..., Any]
    name: str = "<unnamed>"
    tag: str = "?"

    def __repr__(self) -> str:
        return self.tag

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is KeyImplementation and tuple(self) == tuple(other))

    def __hash__(self) -> int:
        return hash((self.name, self.tag, self.key_shape))


# ---- XLA's own generators, keyed by two threefry keys side by side ----


def _halves(key) -> list:
    return [lax.slice_in_dim(key, 0, 2), lax.slice_in_dim(key, 2, 4)]


def _double_seed(number):
    key = threefry.seed(number)
    return lax.concatenate([key, key], 0)


def _split_halves(key, shape):
    return lax.concatenate([threefry.split(half, shape) for half in _halves(key)], len(shape))


def _fold_in_halves(key, data):
    return lax.concatenate([threefry.fold_in(half, data) for half in _halves(key)], 0)


def _generate(key, bit_width, shape):
    if bit_width not in (8, 16, 32, 64):
        raise TypeError(f"bits have width 8, 16, 32 or 64, got {bit_width}")
    return rng_bit_generator(key, shape, np.dtype(f"uint{bit_width}"))[1]


# Consecutive keys of the plain generator would be consecutive counters: of each ten words one is kept.
_STRIDE = 10


def _generated_split(key, shape):
    count = math.prod(shape)
    words = _generate(key, 32, (_STRIDE * count, 4))
    return lax.reshape(lax.slice_in_dim(words, 0, _STRIDE * count, stride=_STRIDE), (*shape, 4))


def _generated_fold_in(key, data):
    words = _generate(_double_seed(data), 32, (_STRIDE, 4))
    return lax.bitwise_xor(key, lax.index_in_dim(words, _STRIDE - 1, 0, keepdims=False))


threefry2x32: Final = KeyImplementation(
    threefry.KEY_SHAPE, threefry.seed, threefry.split, threefry.bits, threefry.fold_in, "threefry2x32", "fry"
)
rbg: Final = KeyImplementation((4,), _double_seed, _split_halves, _generate, _fold_in_halves, "rbg", "rbg")
unsafe_rbg: Final = KeyImplementation(
    (4,), _double_seed, _generated_split, _generate, _generated_fold_in, "unsafe_rbg", "urbg"
)

implementations: dict[str, KeyImplementation] = {}


def register(implementation: KeyImplementation) -> KeyImplementation:
    """Register an implementation under its name. Raises ValueError if the name is registered."""
    if implementation.name in implementations:
        raise ValueError(f"an implementation of keys named {implementation.name!r} is registered already")
    implementations[implementation.name] = implementation
    return implementation


for _implementation in (threefry2x32, rbg, unsafe_rbg):
    register(_implementation)
for _name, (_c, _tag) in block_ciphers.ciphers.items():
    register(KeyImplementation((_c.key_words,), _c.seed, _c.split, _c.bits, _c.fold_in, _name, _tag))


def find(spec: KeyImplementation | str | None = None) -> KeyImplementation:
    """The implementation for a name, an implementation or a key dtype; None: for the option ``jax_default_prng_impl``.

    Raises:
      ValueError: no implementation has that name.
      TypeError: `spec` is none of these.
    """
    if spec is None:
        spec = flags.default_prng_impl.value
    if isinstance(spec, KeyImplementation):
        return spec
    if isinstance(spec, str):
        found = implementations.get(spec)
        if found is not None:
            return found
        likely = difflib.get_close_matches(spec, implementations, n=len(implementations), cutoff=0.0)
        listed = ", ".join(map(repr, likely))
        raise ValueError(f"no implementation of keys is named {spec!r}; there are, likeliest first, {listed}")
    found = getattr(spec, "implementation", None)
    if isinstance(found, KeyImplementation):
        return found
    raise TypeError(f"an implementation of keys is given by its name or a key dtype, got {spec!r} of type {type(spec)}")
