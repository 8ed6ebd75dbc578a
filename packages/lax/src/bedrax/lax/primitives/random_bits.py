"""Random bits: the Threefry hash, XLA's bit generators, and the stateful uniform generator.

`bedrax.random` builds keys and samplers on these. Threefry and Philox are the counter-based generators of Salmon,
Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray
from bedrax.core.tables import families_on_bases
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike, DTypeLike, Shape
from bedrax.lax.primitives.elementwise import joined, result_shape
from bedrax.lax.primitives.placement import placed

families_on_bases.add("random_bits")

__all__ = [
    "RandomAlgorithm",
    "rng_bit_generator",
    "rng_bit_generator_p",
    "rng_uniform",
    "rng_uniform_p",
    "threefry2x32",
    "threefry2x32_p",
]

_FAMILY = "random_bits"
_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)
_GENERATED = (np.dtype(np.uint8), np.dtype(np.uint16), _U32, _U64)

threefry2x32_p: Final = Primitive("threefry2x32", _FAMILY, multiple_results=True)
rng_bit_generator_p: Final = Primitive("rng_bit_generator", _FAMILY, multiple_results=True)
rng_uniform_p: Final = Primitive("rng_uniform", _FAMILY)


class RandomAlgorithm(enum.IntEnum):
    """The generator of `rng_bit_generator`; the default is the backend's choice.

    Examples:

      >>> state, bits = lax.rng_bit_generator(
      ...     jnp.zeros(4, jnp.uint32), (3,), algorithm=lax.RandomAlgorithm.RNG_PHILOX
      ... )
      >>> bits.shape
      (3,)
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


@threefry2x32_p.abstract
def _threefry_types(*avals):
    if any(aval.dtype != _U32 for aval in avals):
        raise TypeError(f"threefry2x32 takes keys and counts of uint32, got {', '.join(a.str_short() for a in avals)}")
    out = joined(avals, result_shape("threefry2x32", avals), _U32, False)
    return [out, out]


@rng_bit_generator_p.abstract
def _bit_generator_types(key, *, shape, dtype, algorithm):
    if dtype not in _GENERATED:
        raise TypeError(f"rng_bit_generator: no bits of dtype {dtype}; there are {', '.join(map(str, _GENERATED))}")
    if (key.dtype, key.shape) not in ((_U32, (4,)), (_U64, (2,))):
        raise TypeError(f"rng_bit_generator: the key is uint32[4] or uint64[2], got {key.str_short()}")
    return [key.strip_weak_type(), ShapedArray(shape, dtype)]


@rng_uniform_p.abstract
def _uniform_type(a, b, *, shape):
    if a.dtype != b.dtype:
        raise ValueError(f"rng_uniform: the bounds have one dtype, got {a.dtype} and {b.dtype}")
    if a.shape or b.shape:
        raise ValueError(f"rng_uniform: the bounds are scalars, got shapes {a.shape} and {b.shape}")
    if not (dtypes.is_integer(a.dtype) or dtypes.is_floating(a.dtype)):
        raise TypeError(f"rng_uniform draws integers or floats, got bounds of {a.dtype}")
    return ShapedArray(shape, a.dtype)


def threefry2x32(key1: ArrayLike, key2: ArrayLike, x1: ArrayLike, x2: ArrayLike) -> list[Any]:
    """The Threefry-2x32 hash with 20 rounds.

    Args:
      key1, key2: the halves of the key.
      x1, x2: the halves of the counter. All four are uint32, of equal shape or scalars.

    Returns:
      The two halves of the hash, as a list.
    """
    return threefry2x32_p.bind(key1, key2, x1, x2)


def rng_bit_generator(
    key: ArrayLike,
    shape: Shape,
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> list[Array]:
    """Uniform random bits from XLA's generator.

    Args:
      key: the state, of type uint32[4] or uint64[2].
      shape: of the bits.
      dtype: uint8, uint16, uint32 or uint64.
      algorithm: a `RandomAlgorithm`; the numbers of the default depend on the platform.
      out_sharding: placement of the bits.

    Returns:
      ``[new_key, bits]``.

    Examples:

      >>> state, bits = lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (2, 3))
      >>> bits.shape, bits.dtype
      ((2, 3), dtype('uint32'))
    """
    new_key, bits = rng_bit_generator_p.bind(
        key,
        shape=dims.canonical_shape(shape),
        dtype=dtypes.explicit_dtype(dtype, "rng_bit_generator"),
        algorithm=RandomAlgorithm(algorithm),
    )
    return [new_key, placed(bits, out_sharding)]


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Shape) -> Array:
    """Uniform random numbers in [a, b), from a generator with hidden state.

    Each call gives other numbers, which are not reproducible. Use `bedrax.random` for reproducible ones.

    Args:
      a, b: scalars of equal dtype, integers or floats.
      shape: of the result.

    Examples:

      >>> x = lax.rng_uniform(2., 3., (5,))
      >>> bool(jnp.all((x >= 2) & (x < 3)))
      True
    """
    return rng_uniform_p.bind(a, b, shape=dims.canonical_shape(shape))


# ---- the hash, in terms of any array functions ---------------------------------------------------

# Table 2 of the paper, for 2 words of 32 bits: four rotations, then four others, in turn.
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA  # the constant in the third word of the key schedule


def threefry_hash(
    keys: tuple[Any, ...],
    x0: np.ndarray[Any, Any],
    x1: np.ndarray[Any, Any],
    add: Callable[..., Any],
    xor: Callable[..., Any],
    rotate_left: Callable[..., Any],
    word: type,
) -> tuple[Any, ...]:
    """Threefry-2x32 with 20 rounds, written with the given functions of uint32 arrays; `word` makes a constant."""
    keys = (*keys, xor(xor(*keys), word(PARITY)))
    x0, x1 = add(x0, keys[0]), add(x1, keys[1])
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x0 = add(x0, x1)
            x1 = xor(rotate_left(x1, r), x0)
        x0 = add(x0, keys[(i + 1) % 3])
        x1 = add(x1, add(keys[(i + 2) % 3], word(i + 1)))
    return x0, x1
