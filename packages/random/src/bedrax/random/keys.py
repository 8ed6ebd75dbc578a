"""Making keys, splitting them, and conversions between keys and their numbers."""

from __future__ import annotations

import operator
import warnings
from typing import Any, NewType

import numpy as np

from bedrax import lax
from bedrax.core import config, dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded
from bedrax.core.public import public
from bedrax.core.tracing import Tracer
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.lax.primitives.placement import placed
from bedrax.random import flags, implementations
from bedrax.random.arguments import shape_of
from bedrax.random.implementations import KeyImplementation
from bedrax.random.key_array import KeyArray, KeyDType
from bedrax.random.primitives import (
    check_key_data,
    random_bits_p,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)

__all__ = [
    "Key",
    "PRNGKey",
    "bits",
    "clone",
    "fold_in",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "split",
    "wrap_key_data",
]

Key = NewType("Key", Array)
Key.__doc__ = """The type of a typed key, or of an array of them, in annotations; a call returns its argument.

Examples:

  >>> def draw(key: jax.random.Key) -> jax.Array:
  ...     return jax.random.bits(key, (), jnp.uint8)
  >>> draw(jax.random.key(0))
  Array(167, dtype=uint8)
"""

_U32 = np.dtype(np.uint32)
_UINTS = tuple(np.dtype(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64))


# ---- reading arguments ----


def is_keys(x: Any) -> bool:
    """Whether `x` is an array of typed keys."""
    return type(x) is KeyArray or (isinstance(x, Tracer) and isinstance(x.aval.dtype, KeyDType))


def typed_keys(keys: Any) -> tuple[Any, bool]:
    """`keys` as an array of typed keys, and whether they were untyped: a uint32 array of key data.

    Raises:
      TypeError: they are neither.
    """
    if is_keys(keys):
        return keys, False
    if keys is None:
        raise TypeError(coded("BX-KEY", f"a key is needed, made by jax.random.key, got {keys}"))
    if hasattr(keys, "__jax_array__"):
        return typed_keys(keys.__jax_array__())
    for name in ("ndim", "shape", "dtype"):
        if not hasattr(keys, name):
            raise TypeError(
                coded("BX-KEY", f"a key is needed, made by jax.random.key, got {keys!r} of type {type(keys)}")
            )
    mode = flags.legacy_prng_key.value
    if mode != "allow":
        message = public(
            "an untyped key, an array of uint32, was passed to jax.random; make typed ones with jax.random.key"
        )
        if mode == "error":
            raise ValueError(message)
        warnings.warn(message, UserWarning, stacklevel=4)
    implementation = implementations.find()
    check_key_data(keys.shape, keys.dtype, implementation)
    return random_wrap_p.bind(keys, impl=implementation), True


def single_key(name: str, key: Any) -> tuple[Any, bool]:
    """`typed_keys` of one key. Raises ValueError, which names the function `name`, if `key` is an array of keys."""
    if type(key) is KeyArray and not key.aval.shape:
        return key, False
    typed, untyped = typed_keys(key)
    if aval_of(typed).shape:
        raise ValueError(
            public(f"{name} takes one key, got shape {aval_of(typed).shape}; map it over keys with jax.vmap")
        )
    return typed, untyped


def implementation_of(keys: Any) -> KeyImplementation:
    """The implementation of typed keys."""
    return aval_of(keys).dtype.implementation


# ---- making keys ----


def _seed(name: str, seed: Any, implementation: KeyImplementation):
    shape = aval_of(seed).shape if not isinstance(seed, int) else ()
    if shape:
        raise TypeError(public(f"{name} takes one seed, got shape {shape}; map it over them with jax.vmap"))
    if isinstance(seed, (int, np.bool_)):
        seed = _python_seed(int(seed))
    if not dtypes.is_integer(aval_of(seed).dtype):
        raise TypeError(coded("BX-SEED", f"a seed is an integer, got {seed!r}"))
    offset = flags.random_seed_offset.value
    if offset:
        seed = lax.add(seed, np.asarray(offset).astype(aval_of(seed).dtype))
    return random_seed_p.bind(seed, impl=implementation)


def _python_seed(seed: int) -> np.ndarray:
    """A Python int as an array: its low 32 bits, or all 64 under x64."""
    if not -(2**63) <= seed < 2**63:
        raise OverflowError(f"a seed must fit into 64 bits, got {seed}: Python int too large to convert to C long")
    if config.enable_x64.value:
        return np.asarray(seed, np.int64)
    return np.asarray(seed & 0xFFFFFFFF, np.uint32)


def _implementation(impl: Any, dtype: Any) -> KeyImplementation:
    if dtype is None:
        return implementations.find(impl)
    if impl is not None:
        raise ValueError("pass impl or dtype, not both: each of them names the implementation of the key")
    if isinstance(dtype, str):
        return implementations.find(dtype)
    if not isinstance(dtype, KeyDType):
        raise TypeError(
            public(f"dtype must be one of keys (see jax.random.key_dtype) or a generator's name, got {dtype!r}")
        )
    return dtype.implementation


def key(seed: ArrayLike, *, impl: KeyImplementation | str | None = None, dtype: DTypeLike | None = None) -> Array:
    """A key from an integer.

    Args:
      seed: integer of rank 0. The low 64 bits count (without x64: the low 32 bits of a Python int).
      impl: name of the generator: ``"threefry2x32"``, ``"rbg"``, ``"unsafe_rbg"``, ``"threefry4x32"``, ``"philox4x32"``,
        ``"philox2x32"``; default: that of the configuration option ``jax_default_prng_impl``.
      dtype: the dtype of the key, or the generator's name: another way to choose the generator.

    Returns:
      An array of rank 0 whose dtype is a `jax.dtypes.prng_key`.

    Examples:

      >>> key = jax.random.key(7)
      >>> key.dtype
      key<fry>
      >>> jax.random.normal(key)
      Array(0.45123515, dtype=float32)
    """
    return _seed("key", seed, _implementation(impl, dtype))


def PRNGKey(seed: ArrayLike, *, impl: Any = None) -> Array:
    """Make an untyped key: an array of uint32 with the numbers that a typed key (see `key`) is made of.

    Functions of this module take untyped keys, too. They read them by the option ``jax_default_prng_impl``. New programs
    should use `key`.

    Args:
      seed: an integer. Equal seeds give equal keys.
      impl: the name of a generator. Default: that of ``jax_default_prng_impl``.

    Returns:
      An array of uint32, of shape (2,) for the default generator. With ``jax_enable_custom_prng``, a typed key.

    Raises:
      TypeError: the seed is not an integer, or several.
      OverflowError: the seed has more than 64 bits.

    Examples:

      >>> jax.random.PRNGKey(7)
      Array([0, 7], dtype=uint32)
    """
    typed = _seed("PRNGKey", seed, implementations.find(impl))
    return typed if flags.enable_custom_prng.value else random_unwrap_p.bind(typed)


def key_dtype(impl_spec: str | None = None) -> KeyDType:
    """The dtype of keys of the named (or default) implementation.

    Examples:

      >>> jax.random.key_dtype("rbg")
      key<rbg>
    """
    return KeyDType(implementations.find(impl_spec))


def wrap_key_data(key_bits_array: Array, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Keys from the numbers they are made of; `key_data` undoes it.

    Args:
      key_bits_array: uint32 array of shape ``(..., *key_shape)``.
      impl, dtype: the implementation, as for `key`.

    Returns:
      An array of keys of shape ``(...)``.

    Examples:

      >>> data = jax.random.key_data(jax.random.key(7))
      >>> jax.random.wrap_key_data(data) == jax.random.key(7)
      Array(True, dtype=bool)
    """
    implementation = _implementation(impl, dtype)
    aval = aval_of(key_bits_array)
    check_key_data(aval.shape, aval.dtype, implementation)
    return random_wrap_p.bind(key_bits_array, impl=implementation)


def key_data(keys: Array) -> Array:
    """The numbers that keys are made of: a uint32 array of shape ``(*keys.shape, *key_shape)``.

    Examples:

      >>> jax.random.key_data(jax.random.key(7))
      Array([0, 7], dtype=uint32)
    """
    if type(keys) is KeyArray:
        return keys.base
    return random_unwrap_p.bind(typed_keys(keys)[0])


def key_impl(keys: Array) -> str:
    """The name of the keys' implementation (or the implementation itself if it is not registered).

    Examples:

      >>> str(jax.random.key_impl(jax.random.key(0)))
      'threefry2x32'
    """
    implementation = implementation_of(typed_keys(keys)[0])
    if implementations.implementations.get(implementation.name) is implementation:
        return implementation.name
    return implementation


def clone(key: ArrayLike) -> Array:
    """The same key. Key-reuse checks treat it as a new one.

    Examples:

      >>> key = jax.random.key(0)
      >>> bool(jax.random.bits(key) == jax.random.bits(jax.random.clone(key)))
      True
    """
    typed, untyped = typed_keys(key)
    out = random_clone_p.bind(typed)
    return random_unwrap_p.bind(out) if untyped else out


# ---- keys from keys ----


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """New keys made of a key.

    Args:
      key: a single key.
      num: the number of keys, an int, or their shape.

    Returns:
      An array of `num` keys (of key data if `key` is untyped). `key` should not be used again.

    Examples:

      >>> key = jax.random.key(0)
      >>> key, subkey = jax.random.split(key)
      >>> jax.random.uniform(subkey)
      Array(0.00729382, dtype=float32)
      >>> jax.random.split(key, 3).shape
      (3,)
    """
    typed, untyped = single_key("split", key)
    shape = (num,) if type(num) is int else _shape_of(num)
    for n in shape:
        if dims.is_constant_dim(n) and n < 0:
            raise ValueError(f"split: the number of keys must not be negative, got {num}")
    out = random_split_p.bind(typed, impl=typed.aval.dtype.implementation, shape=shape)
    return random_unwrap_p.bind(out) if untyped else out


def _shape_of(num) -> tuple:
    try:
        return (operator.index(num),)
    except TypeError:
        return dims.canonical_shape(num)


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """The key for a number, given a key: a way to number keys without splitting.

    Args:
      key: a single key.
      data: integer of rank 0; its low 32 bits count.

    Returns:
      A key.

    Examples:

      >>> key = jax.random.key(0)
      >>> [int(jax.random.randint(jax.random.fold_in(key, step), (), 0, 100)) for step in range(3)]
      [91, 22, 59]
    """
    typed, untyped = single_key("fold_in", key)
    if isinstance(data, int) and not isinstance(data, bool):
        if not 0 <= data < 2**32:
            raise OverflowError(f"fold_in: Python integer {data} out of bounds for uint32")
        data = np.asarray(data, np.uint32)
    else:
        shape = aval_of(data).shape
        if shape:
            raise TypeError(public(f"fold_in takes one integer, got shape {shape}; map it over them with jax.vmap"))
        data = lax.convert_element_type(data, _U32)
    out = random_fold_in_p.bind(typed, data, impl=typed.aval.dtype.implementation)
    return random_unwrap_p.bind(out) if untyped else out


def bits(key: ArrayLike, shape: tuple[int, ...] = (), dtype: str | None = None, *, out_sharding: Any = None) -> Array:
    """Uniformly distributed bits.

    Args:
      key: a single key.
      shape: of the result.
      dtype: unsigned integer type; default ``uint`` (uint32 without x64).
      out_sharding: placement of the result.

    Returns:
      An array of unsigned integers.

    Examples:

      >>> jax.random.bits(jax.random.key(0), (3,), jnp.uint8)
      Array([167, 146,  40], dtype=uint8)
    """
    typed, _ = single_key("bits", key)
    dtype = dtypes.default_uint_dtype() if dtype is None else dtypes.explicit_dtype(dtype, "bits")
    if dtype not in _UINTS:
        raise ValueError(f"bits: dtype is an unsigned integer dtype, got {dtype}")
    return placed(raw_bits(typed, dtype.itemsize * 8, shape_of(shape)), out_sharding)


def raw_bits(key: ArrayLike, bit_width: int, shape: tuple[Any, ...]) -> Array:
    """Bits of one typed key; `bits` without checks."""
    return random_bits_p.bind(key, impl=key.aval.dtype.implementation, bit_width=bit_width, shape=shape)
