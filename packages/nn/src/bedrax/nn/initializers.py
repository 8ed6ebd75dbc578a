"""`jax.nn.initializers`: functions ``(key, shape, dtype)`` for the initial values of parameters."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax, random
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.defining import named
from bedrax.lax.choices import one_of
from bedrax.lax.primitives.placement import placed

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


@runtime_checkable
class Initializer(Protocol):
    """The protocol of initializers: ``init(key, shape, dtype=None, out_sharding=None) -> array``.

    With `out_sharding` (a sharding, a device, or a partition spec of the current mesh) the array is placed there.

    Examples:

      >>> def halves(key, shape, dtype=jnp.float32, out_sharding=None):
      ...     return jnp.full(shape, 0.5, dtype)
      ...
      >>> init: jax.nn.initializers.Initializer = halves
      >>> init(jax.random.key(0), (2,))
      Array([0.5, 0.5], dtype=float32)
    """

    def __call__(self, key: Array, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array: ...


def _dtype(dtype: Any) -> np.dtype:
    return dtypes.default_float_dtype() if dtype is None else dtypes.explicit_dtype(dtype, "initializer")


def zeros(key: Array, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array:
    """An array of zeros; the key is not used.

    Args:
      key: not used.
      shape: sequence of ints.
      dtype: default: the default float dtype.
      out_sharding: optional placement of the result.

    Examples:

      >>> jax.nn.initializers.zeros(jax.random.key(0), (2, 2), jnp.bfloat16)
      Array([[0, 0],
             [0, 0]], dtype=bfloat16)
    """
    return placed(jnp.zeros(shape, _dtype(dtype)), out_sharding)


def ones(key: Array, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array:
    """An array of ones; the key is not used.

    Args:
      key: not used.
      shape: sequence of ints.
      dtype: default: the default float dtype.
      out_sharding: optional placement of the result.

    Examples:

      >>> jax.nn.initializers.ones(jax.random.key(0), (3,))
      Array([1., 1., 1.], dtype=float32)
    """
    return placed(jnp.ones(shape, _dtype(dtype)), out_sharding)


def _initializer(default_dtype: Any, make) -> Initializer:
    """An initializer from ``make(key, shape, dtype)``, with a default dtype."""

    def init(key: Array, shape: Sequence[int], dtype: Any = default_dtype, out_sharding: Any = None) -> Array:
        shape = tuple(shape)
        return placed(make(key, shape, _dtype(default_dtype if dtype is None else dtype)), out_sharding)

    return init


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Arrays filled with a value.

    Args:
      value: a number, or an array that broadcasts to the shape.
      dtype: the default dtype of the result.

    Examples:

      >>> init = jax.nn.initializers.constant(-7)
      >>> init(jax.random.key(0), (2, 2))
      Array([[-7., -7.],
             [-7., -7.]], dtype=float32)
    """
    return _initializer(dtype, lambda key, shape, dtype: jnp.full(shape, value, dtype))


def _scaled(default_dtype: Any, scale: float, draw) -> Initializer:
    """An initializer whose numbers are `scale` times those of ``draw(key, shape, dtype)``."""
    return _initializer(default_dtype, lambda key, shape, dtype: draw(key, shape, dtype) * jnp.asarray(scale, dtype))


def uniform(scale: float = 1e-2, dtype: Any = None) -> Initializer:
    """Uniform in [0, scale).

    Args:
      scale: the upper bound.
      dtype: the default dtype of the result.

    Examples:

      >>> init = jax.nn.initializers.uniform(scale=0.5)
      >>> weights = init(jax.random.key(0), (100,))
      >>> bool(jnp.all((weights >= 0) & (weights < 0.5)))
      True
    """
    return _scaled(dtype, scale, lambda key, shape, dtype: random.uniform(key, shape, dtype))


def normal(stddev: float = 1e-2, dtype: Any = None) -> Initializer:
    """Normal with mean 0.

    Args:
      stddev: the standard deviation.
      dtype: the default dtype of the result.

    Examples:

      >>> init = jax.nn.initializers.normal(stddev=0.1)
      >>> init(jax.random.key(0), (100, 100)).std().round(2)
      Array(0.09999999, dtype=float32)

      >>> from jax.example_libraries import stax

      >>> init = stax.randn(0.5)
      >>> w = init(jax.random.key(0), (100, 100))
      >>> round(float(w.std()), 1), round(abs(float(w.mean())), 1)
      (0.5, 0.0)
    """
    return _scaled(dtype, stddev, lambda key, shape, dtype: random.normal(key, shape, dtype))


def truncated_normal(stddev: float = 1e-2, dtype: Any = None, lower: float = -2.0, upper: float = 2.0) -> Initializer:
    """Normal with mean 0, truncated. The standard deviation of the result is smaller than `stddev`.

    Args:
      stddev: the standard deviation without truncation.
      dtype: the default dtype of the result.
      lower, upper: the bounds, in units of `stddev`.

    Examples:

      >>> init = jax.nn.initializers.truncated_normal(stddev=1., lower=-1., upper=1.)
      >>> bool(jnp.all(jnp.abs(init(jax.random.key(0), (100,))) <= 1))
      True
    """
    return _scaled(dtype, stddev, lambda key, shape, dtype: random.truncated_normal(key, lower, upper, shape, dtype))


def _axes(axis: int | Sequence[int], ndim: int, name: str) -> tuple[int, ...]:
    axes = tuple(axis) if isinstance(axis, Collection) else (axis,)
    for a in axes:
        if not -ndim <= a < ndim:
            raise ValueError(f"{name}={axis} is out of bounds for a weight of rank {ndim}")
    return tuple(a % ndim for a in axes)


def _fans(shape: tuple, in_axis, out_axis, batch_axis) -> tuple[float, float]:
    """Inputs and outputs of one unit: products of sizes; other axes (the receptive field) count for both."""
    ndim = len(shape)
    if ndim < 2 and not (isinstance(in_axis, Collection) and isinstance(out_axis, Collection)):
        raise ValueError(
            f"a weight of shape {shape} has no distinct axes of inputs and outputs: it needs two axes, or in_axis and"
            " out_axis as tuples"
        )
    ins, outs, batch = (
        _axes(a, ndim, name) for a, name in ((in_axis, "in_axis"), (out_axis, "out_axis"), (batch_axis, "batch_axis"))
    )
    size = lambda axes: math.prod(shape[a] for a in axes)
    # A quotient, so that an axis named as both (embeddings name only the outputs' axis) counts according to the
    # formula.
    field = math.prod(shape) / (size(ins) * size(outs) * size(batch) or 1)
    return size(ins) * field, size(outs) * field


# The standard deviation of a standard normal truncated at two of them, real and complex (radius).
_TRUNCATED = 0.87962566103423978
_TRUNCATED_COMPLEX = 0.95311164380491208


def _complex_polar(key, shape, dtype, radius):
    """Complex numbers with random phase; `radius` makes their radius from uniform numbers."""
    key_radius, key_phase = random.split(key)
    real = dtypes.to_real_dtype(dtype)
    r = radius(random.uniform(key_radius, shape, real)).astype(dtype)
    phase = (2 * np.pi * random.uniform(key_phase, shape, real)).astype(real)
    return r * lax.complex(jnp.cos(phase), jnp.sin(phase)).astype(dtype)


def _complex_truncated(key, shape, dtype, limit):
    # The squared radius of a complex normal is exponential; truncate its distribution function and invert.
    share = 1 - math.exp(-limit * limit)
    return _complex_polar(key, shape, dtype, lambda u: jnp.sqrt(-jnp.log(1 - jnp.asarray(share, u.dtype) * u)))


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: Any = None,
) -> Initializer:
    """Random numbers of variance ``scale / n``, where n counts the connections of a unit.

    Args:
      scale: positive number.
      mode: the meaning of n: ``"fan_in"`` inputs, ``"fan_out"`` outputs, ``"fan_avg"`` their mean, ``"fan_geo_avg"``
        their geometric mean.
      distribution: ``"truncated_normal"`` (at two standard deviations), ``"normal"`` or ``"uniform"``.
      in_axis, out_axis: the axes of inputs and of outputs; the others are the receptive field.
      batch_axis: axes over which independent weights are stacked.
      dtype: the default dtype of the result.

    Raises:
      ValueError: an unknown mode or distribution, or a weight of too low a rank.

    Examples:

      >>> init = jax.nn.initializers.variance_scaling(1., mode="fan_in", distribution="normal")
      >>> init(jax.random.key(0), (400, 100)).std().round(2)
      Array(0.05, dtype=float32)
    """

    def make(key, shape, dtype):
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        counts = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }
        one_of("variance_scaling", "mode", mode, counts)
        one_of("variance_scaling", "distribution", distribution, ("truncated_normal", "normal", "uniform"))
        if not math.prod(shape):
            return jnp.zeros(shape, dtype)  # the array is empty, and may have no connections
        variance = np.asarray(scale / counts[mode], dtypes.to_real_dtype(dtype))
        is_complex = dtypes.is_complex(dtype)
        number = lambda x: np.asarray(x, dtype)
        if distribution == "normal":
            return random.normal(key, shape, dtype) * number(np.sqrt(variance))
        if distribution == "uniform":
            if is_complex:  # on a disk
                return _complex_polar(key, shape, dtype, jnp.sqrt) * number(np.sqrt(2 * variance))
            return random.uniform(key, shape, dtype, -1) * number(np.sqrt(3 * variance))
        if is_complex:
            stddev = np.sqrt(variance) / _TRUNCATED_COMPLEX
            return _complex_truncated(key, shape, dtype, 2) * number(stddev)
        return random.truncated_normal(key, -2, 2, shape, dtype) * number(np.sqrt(variance) / _TRUNCATED)

    return _initializer(dtype, make)


# name: (scale, mode, distribution, source)
_NAMED = {
    "glorot_normal": (1.0, "fan_avg", "truncated_normal", "Glorot & Bengio 2010"),
    "glorot_uniform": (1.0, "fan_avg", "uniform", "Glorot & Bengio 2010"),
    "he_normal": (2.0, "fan_in", "truncated_normal", "He et al. 2015"),
    "he_uniform": (2.0, "fan_in", "uniform", "He et al. 2015"),
    "lecun_normal": (1.0, "fan_in", "truncated_normal", "LeCun et al. 1998"),
    "lecun_uniform": (1.0, "fan_in", "uniform", "LeCun et al. 1998"),
}


def _named(name: str, example: str):
    scale, mode, distribution, source = _NAMED[name]

    def make(
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: Any = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    text = f'``variance_scaling({scale}, "{mode}", "{distribution}")`` ({source}); arguments as for `variance_scaling`.'
    return named(make, name, __name__, text, example)


glorot_normal: Final = _named(
    "glorot_normal",
    example="""
    >>> init = jax.nn.initializers.glorot_normal()
    >>> init(jax.random.key(0), (300, 100)).std().round(2)
    Array(0.07, dtype=float32)
    """,
)
glorot_uniform: Final = _named(
    "glorot_uniform",
    example="""
    >>> init = jax.nn.initializers.glorot_uniform()
    >>> weights = init(jax.random.key(0), (3, 3))
    >>> bool(jnp.all(jnp.abs(weights) <= 1))
    True
    """,
)
he_normal: Final = _named(
    "he_normal",
    example="""
    >>> init = jax.nn.initializers.he_normal()
    >>> init(jax.random.key(0), (200, 100)).std().round(2)
    Array(0.09999999, dtype=float32)
    """,
)
he_uniform: Final = _named(
    "he_uniform",
    example="""
    >>> init = jax.nn.initializers.he_uniform()
    >>> weights = init(jax.random.key(0), (6, 3))
    >>> bool(jnp.all(jnp.abs(weights) <= 1))
    True
    """,
)
lecun_normal: Final = _named(
    "lecun_normal",
    example="""
    >>> init = jax.nn.initializers.lecun_normal()
    >>> init(jax.random.key(0), (400, 100)).std().round(2)
    Array(0.05, dtype=float32)
    """,
)
lecun_uniform: Final = _named(
    "lecun_uniform",
    example="""
    >>> init = jax.nn.initializers.lecun_uniform()
    >>> weights = init(jax.random.key(0), (3, 8))
    >>> bool(jnp.all(jnp.abs(weights) <= 1))
    True
    """,
)
xavier_normal: Final = glorot_normal
xavier_uniform: Final = glorot_uniform
kaiming_normal: Final = he_normal
kaiming_uniform: Final = he_uniform


def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Matrices with orthonormal rows or columns (the fewer ones), uniformly distributed.

    Args:
      scale: factor.
      column_axis: the axis of the columns; the others make the rows.
      dtype: the default dtype of the result.

    Raises:
      ValueError: a shape of rank below 2.

    Examples:

      >>> init = jax.nn.initializers.orthogonal()
      >>> q = init(jax.random.key(0), (3, 3))
      >>> jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5)
      Array(True, dtype=bool)
    """

    def make(key, shape, dtype):
        if len(shape) < 2:
            raise ValueError(f"orthogonal makes matrices, got shape {shape}")
        (axis,) = _axes(column_axis, len(shape), "column_axis")
        n = shape[axis]
        m = math.prod(shape) // n if n else 0
        long, short = max(m, n), min(m, n)
        q, r = jnp.linalg.qr(random.normal(key, (long, short), dtype))
        # With the phases of R's diagonal moved into Q, the distribution is uniform (Mezzadri 2007).
        diagonal = jnp.diagonal(r)
        size = abs(diagonal)
        q = q * (diagonal / jnp.where(size == 0, 1, size).astype(dtype))[None, :]
        if m < n:
            q = q.T
        q = q.reshape(*(s for d, s in enumerate(shape) if d != axis), n)
        return jnp.moveaxis(q, -1, axis) * jnp.asarray(scale, dtype)

    return _initializer(dtype, make)


def delta_orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Convolution kernels that are an orthogonal matrix in the middle and 0 elsewhere (Xiao et al. 2018).

    Args:
      scale: factor.
      column_axis: the axis of the columns of the matrix.
      dtype: the default dtype of the result.

    Raises:
      ValueError: a shape of rank other than 3, 4 or 5, or with fewer outputs than inputs.

    Examples:

      >>> init = jax.nn.initializers.delta_orthogonal()
      >>> kernel = init(jax.random.key(0), (3, 2, 2))
      >>> bool(jnp.all(kernel[0] == 0))
      True
      >>> jnp.allclose(kernel[1].T @ kernel[1], jnp.eye(2), atol=1e-5)
      Array(True, dtype=bool)
    """

    def make(key, shape, dtype):
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"delta_orthogonal makes kernels of rank 3, 4 or 5, got shape {shape}")
        if shape[-1] < shape[-2]:
            raise ValueError(f"delta_orthogonal needs as many outputs as inputs or more, got shape {shape}")
        matrix = orthogonal(scale, column_axis)(key, shape[-2:], dtype)
        middle = tuple((s - 1) // 2 for s in shape[:-2])
        return jnp.zeros(shape, dtype).at[middle].set(matrix)

    return _initializer(dtype, make)
