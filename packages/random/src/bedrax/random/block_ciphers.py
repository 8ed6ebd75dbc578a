"""Threefry-4x32, Philox-4x32 and Philox-2x32: keyed bijections of blocks of 32-bit words, as generators.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Bits of an
element, a new key and a folded number are the hash of a block in which the element's row-major index (the number of the
key, the number) stands as two words; the other words of the block are 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from bedrax import lax
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives.random_bits import PARITY
from bedrax.random import threefry

_U32 = np.dtype(np.uint32)
_ZERO = np.uint32(0)
_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_WEYL = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)  # Philox adds them to its key between rounds
_XOR = functools.partial(functools.reduce, lax.bitwise_xor)


def _rotated(x, r: int):
    return lax.bitwise_or(lax.shift_left(x, np.uint32(r)), lax.shift_right_logical(x, np.uint32(32 - r)))


@one_program
def threefry4x32(key: Sequence[Any], block: Sequence[Any]) -> list[Any]:
    """Twenty rounds; key and block have four words."""
    keys = [*key, _XOR([*key, np.uint32(PARITY)])]
    x = [lax.add(a, k) for a, k in zip(block, keys, strict=False)]
    for i in range(20):
        others = (3, 1) if i % 2 else (1, 3)
        for place, other, r in zip((0, 2), others, _ROTATIONS[i % 8], strict=True):
            x[place] = lax.add(x[place], x[other])
            x[other] = lax.bitwise_xor(_rotated(x[other], r), x[place])
        if i % 4 == 3:
            n = i // 4 + 1
            x = [lax.add(a, keys[(n + j) % 5]) for j, a in enumerate(x)]
            x[3] = lax.add(x[3], np.uint32(n))
    return x


def _product(x, factor: int) -> tuple:
    """The high and the low word."""
    factor = lax.full_like(x, np.uint32(factor))
    return lax.mulhi(x, factor), lax.mul(x, factor)


@one_program
def philox4x32(key: Sequence[Any], block: Sequence[Any]) -> list[Any]:
    """Ten rounds; a key has two words, a block four."""
    x = list(block)
    for _ in range(10):
        (high0, low0), (high2, low2) = _product(x[0], 0xD2511F53), _product(x[2], 0xCD9E8D57)
        x = [_XOR([high2, x[1], key[0]]), low2, _XOR([high0, x[3], key[1]]), low0]
        key = [lax.add(k, w) for k, w in zip(key, _WEYL, strict=True)]
    return x


@one_program
def philox2x32(key: Sequence[Any], block: Sequence[Any]) -> list[Any]:
    """Ten rounds; a key has one word, a block two."""
    (k,), x = key, list(block)
    for _ in range(10):
        high, low = _product(x[0], 0xD256D193)
        x = [_XOR([high, k, x[1]]), low]
        k = lax.add(k, _WEYL[0])
    return x


class BlockCipher(NamedTuple):
    """A bijection as a generator.

    Attributes:
      hash: ``(words of a key, words of a block) -> words``.
      key_words, block_words: the number of words in a key and in a block.
      seed_is_key: whether a seed is the key of the hash that makes the first key, or its block.
      wide: the words that make the high and the low half of 64 bits (by exclusive or).
    """

    hash: Callable[..., Any]
    key_words: int
    block_words: int
    seed_is_key: bool
    wide: tuple[tuple[int, ...], tuple[int, ...]]

    def _hashed(self, key, words: Sequence, first: int) -> list:
        """The hash, under a key, of a block that has `words` from place `first` on."""
        shape = np.shape(words[0])
        zero = lax.full(shape, _ZERO)
        block = [zero] * first + [*words] + [zero] * (self.block_words - first - len(words))
        spread = [lax.broadcast(threefry.key_word(key, i), shape) for i in range(self.key_words)]
        return self.hash(spread, block)

    def _keys(self, words: Sequence, shape: tuple):
        return lax.concatenate([lax.reshape(x, (*shape, 1)) for x in words[: self.key_words]], len(shape))

    def seed(self, number: Array) -> Array:
        """The key of a seed, an integer of rank 0."""
        halves = threefry.seed(number)
        words = [threefry.key_word(halves, i) for i in (0, 1)]
        zero = [lax.full((), _ZERO)] * self.block_words
        if self.seed_is_key:
            return self._keys(self.hash([*words, *zero[2:]], zero), ())
        return self._keys(self.hash(zero[: self.key_words], [*words, *zero[2:]]), ())

    def split(self, key: ArrayLike, shape: tuple[Any, ...]) -> Array:
        """Keys of shape ``(*shape, key_words)``."""
        return self._keys(self._hashed(key, threefry.counts(shape), self.block_words - 2), shape)

    def fold_in(self, key: ArrayLike, data: Array) -> Array:
        """The key for a number (uint32, rank 0) under `key`."""
        return self._keys(self._hashed(key, [lax.full((), _ZERO), data], self.block_words - 2), ())

    def bits(self, key: ArrayLike, bit_width: int, shape: tuple[Any, ...]) -> Array:
        """Uniformly distributed unsigned integers of 8, 16, 32 or 64 bits."""
        words = self._hashed(key, threefry.counts(shape), 0)
        if bit_width == 64:
            return threefry.joined(*[_XOR([words[i] for i in half]) for half in self.wide])
        return lax.convert_element_type(_XOR(words), np.dtype(f"uint{bit_width}"))


ciphers: Final = {
    "threefry4x32": (BlockCipher(threefry4x32, 4, 4, True, ((0, 2), (1, 3))), "fry4"),
    "philox4x32": (BlockCipher(philox4x32, 2, 4, False, ((0,), (1,))), "phx4"),
    "philox2x32": (BlockCipher(philox2x32, 1, 2, False, ((0,), (1,))), "phx2"),
}
