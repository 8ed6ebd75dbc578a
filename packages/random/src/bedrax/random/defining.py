"""Generators that a library defines, and the existing ones (`jax.extend.random`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bedrax import lax
from bedrax.core.array import Array
from bedrax.lax.primitives.random_bits import threefry2x32_p
from bedrax.random import implementations, keys
from bedrax.random.implementations import KeyImplementation

threefry_prng_impl: Final = implementations.threefry2x32
rbg_prng_impl: Final = implementations.rbg
unsafe_rbg_prng_impl: Final = implementations.unsafe_rbg


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[..., Any],
    split: Callable[..., Any],
    random_bits: Callable[..., Any],
    fold_in: Callable[..., Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> KeyImplementation:
    """A generator, for the argument ``impl=`` of functions that make keys.

    Args:
      key_shape: shape of the uint32 array that is a key.
      seed: ``(integer of rank 0) -> key``.
      split: ``(key, shape) -> keys`` of shape ``(*shape, *key_shape)``.
      random_bits: ``(key, bit_width, shape) -> unsigned integers``.
      fold_in: ``(key, integer of rank 0) -> key``.
      name, tag: for messages and for ``key<tag>``.

    Examples:

      >>> from jax.extend import random

      >>> def bits(key, width, shape):  # no generator to be used: it counts
      ...     return key[0].astype(f"uint{width}") + jnp.arange(np.prod(shape), dtype=f"uint{width}").reshape(shape)
      ...
      >>> counting = random.define_prng_impl(
      ...     key_shape=(1,), seed=lambda n: n.astype(jnp.uint32).reshape(1), random_bits=bits,
      ...     split=lambda key, shape: key + bits(key * 0, 32, (*shape, 1)), fold_in=lambda key, n: key + n, name="counting",
      ...     tag="count")
      >>> key = jax.random.key(5, impl=counting)
      >>> jax.random.bits(key, (3,)), jax.random.key_data(jax.random.split(key)).ravel()
      (Array([5, 6, 7], dtype=uint32), Array([5, 6], dtype=uint32))
      >>> key.dtype
      key<count>
    """
    return KeyImplementation(tuple(key_shape), seed, split, random_bits, fold_in, name, tag)


def seed_with_impl(impl: KeyImplementation, seed: Any) -> Array:
    """Return `random_seed` with its arguments in the other order: keys for integers.

    Args:
      impl: a generator, as in `random_seed`.
      seed: an integer, or an array of integers.

    Returns:
      An array of keys, of the shape of `seed`.

    Examples:

      >>> from jax.extend import random

      >>> key = random.seed_with_impl(random.rbg_prng_impl, 3)
      >>> bool(jnp.all(key == jax.random.key(3, impl="rbg"))), jax.random.key_data(key).shape
      (True, (4,))
    """
    return random_seed(seed, impl)


def random_seed(seeds: Any, impl: KeyImplementation) -> Array:
    """Keys of a generator, one for each of the integers.

    Args:
      seeds: an integer, or an array of integers of any shape.
      impl: a result of `define_prng_impl`, or `threefry_prng_impl`, `rbg_prng_impl` or `unsafe_rbg_prng_impl`.

    Returns:
      an array of keys, of the shape of `seeds`.

    Examples:

      >>> from jax.extend import random

      >>> keys = random.random_seed(jnp.array([1, 2, 1]), random.threefry_prng_impl)
      >>> keys.shape, [bool(k == jax.random.key(1)) for k in keys]
      ((3,), [True, False, True])
    """
    seeds = lax.asarray(seeds)
    if not seeds.shape:
        return keys.key(seeds, impl=impl)
    from bedrax.batching import vmap

    out = lambda s: keys.key(s, impl=impl)
    for _ in seeds.shape:
        out = vmap(out)
    return out(seeds)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The Threefry block cipher: two uint32 words of key applied to an array of uint32 counters.

    The first half of the counters are the first words of the blocks, the second half the second ones. An odd number of
    counters is filled up with a zero.

    Args:
      keypair: two words, as a pair or an array ``[2]``; uint32.
      count: uint32, of any shape.

    Returns:
      uint32, of the shape of `count`.

    Raises:
      TypeError: the key is not a pair, or the counters are not uint32.

    Examples:

      >>> from jax.extend import random

      >>> key = jnp.zeros(2, jnp.uint32)
      >>> block = jnp.zeros(2, jnp.uint32)
      >>> [hex(word) for word in random.threefry_2x32(key, block).tolist()]  # the cipher's published result for zeros
      ['0x6b200159', '0x99ba4efe']
    """
    try:
        key1, key2 = keypair
    except ValueError:
        raise TypeError(f"threefry_2x32 takes a pair of uint32 words as key, got {keypair!r}") from None
    count = lax.asarray(count)
    if count.dtype != np.uint32:
        raise TypeError(f"threefry_2x32 hashes uint32, got {count.dtype}")
    flat = lax.reshape(count, (count.size,))
    odd = count.size % 2
    if odd:
        flat = lax.pad(flat, np.uint32(0), [(0, 1, 0)])
    half = flat.shape[0] // 2
    parts = threefry2x32_p.bind(key1, key2, lax.slice_in_dim(flat, 0, half), lax.slice_in_dim(flat, half, 2 * half))
    out = lax.concatenate(list(parts), 0)
    return lax.reshape(lax.slice_in_dim(out, 0, count.size), count.shape)


__all__ = [
    "define_prng_impl",
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry2x32_p",
    "threefry_2x32",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]
