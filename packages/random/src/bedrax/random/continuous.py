"""Samplers of continuous distributions that transform uniform or normal numbers.

Formulas: L. Devroye, "Non-Uniform Random Variate Generation" (Springer, 1986), chapter II (inversion) and IX.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bedrax.core import dtypes, lax
from bedrax.core.avals import aval_of
from bedrax.random.arguments import (
    as_dtype,
    broadcast_to,
    float_dtype,
    inexact_dtype,
    joint_shape,
    placed,
    shape_of,
)
from bedrax.random.compiled import key_function
from bedrax.random.keys import single_key
from bedrax.random.uniform import split_keys, uniform_floats, unit_floats

__all__ = [
    "cauchy", "double_sided_maxwell", "exponential", "gumbel", "laplace", "logistic", "lognormal", "maxwell",
    "multivariate_normal", "normal", "orthogonal", "pareto", "rayleigh", "triangular", "truncated_normal", "wald",
    "weibull_min",
]  # fmt: skip


def scalar(x: Any, dtype: np.dtype) -> np.ndarray:
    """A constant."""
    return np.asarray(x).astype(dtype)


# ---- normal ----


def normals(key, shape, dtype):
    """Standard normal numbers by inversion of the distribution function; complex ones have variance 1."""
    if dtypes.is_complex(dtype):
        real, imag = split_keys(key, 2)
        part = np.zeros((), dtype).real.dtype
        z = lax.complex(normals(real, shape, part), normals(imag, shape, part))
        return lax.div(z, scalar(math.sqrt(2.0), dtype))
    above_minus_one = np.nextafter(scalar(-1, dtype), scalar(0, dtype))
    u = uniform_floats(key, shape, dtype, above_minus_one, scalar(1, dtype))
    return lax.mul(scalar(math.sqrt(2.0), dtype), lax.erf_inv(u))


_normal = key_function(1, 2)(normals)


def normal(key, shape=(), dtype=None, *, out_sharding=None):
    """Standard normal numbers.

    Args:
      key: a single key.
      shape: of the result.
      dtype: a float or complex dtype; default: the default float. Complex numbers have independent parts of variance
        one half.
      out_sharding: placement of the result.
    """
    key, _ = single_key("normal", key)
    return placed(_normal(key, shape_of(shape), inexact_dtype("normal", dtype)), out_sharding)


@key_function(1, 2)
def _truncated_normal(key, shape, dtype, lower, upper):
    root = scalar(math.sqrt(2.0), dtype)
    lower, upper = as_dtype(lower, dtype), as_dtype(upper, dtype)
    a, b = (broadcast_to(lax.erf(lax.div(x, root)), shape) for x in (lower, upper))
    out = lax.mul(root, lax.erf_inv(uniform_floats(key, shape, dtype, a, b)))
    inside = lax.nextafter(lax.stop_gradient(lower), scalar(np.inf, dtype)), lax.nextafter(
        lax.stop_gradient(upper), scalar(-np.inf, dtype)
    )
    return lax.clamp(broadcast_to(inside[0], shape), out, broadcast_to(inside[1], shape))


def truncated_normal(key, lower, upper, shape=None, dtype=None, *, out_sharding=None):
    """Standard normal numbers in the open interval (lower, upper).

    Args:
      key: a single key.
      lower, upper: bounds, which broadcast to `shape`.
      shape: of the result; default: the bounds' joint shape.
      dtype: a float dtype; default: the default float.
      out_sharding: placement of the result.
    """
    key, _ = single_key("truncated_normal", key)
    dtype = float_dtype("truncated_normal", dtype)
    shape = joint_shape(shape, lower, upper)
    return placed(_truncated_normal(key, shape, dtype, lower, upper), out_sharding)


@key_function(1, 2)
def _lognormal(key, shape, dtype, sigma):
    return lax.exp(lax.mul(normals(key, shape, dtype), broadcast_to(as_dtype(sigma, dtype), shape)))


def lognormal(key, sigma=np.float32(1.0), shape=None, dtype=None, *, out_sharding=None):
    """Numbers whose logarithm is normal with mean 0 and standard deviation `sigma`.

    Args:
      key: a single key.
      sigma: array that broadcasts to `shape`.
      shape: of the result; default: the shape of `sigma`.
      dtype: a float or complex dtype; default: the default float.
      out_sharding: placement of the result.
    """
    key, _ = single_key("lognormal", key)
    dtype = inexact_dtype("lognormal", dtype)
    return placed(_lognormal(key, joint_shape(shape, sigma), dtype, sigma), out_sharding)


# ---- inversions ----


def exponentials(key, shape, dtype):
    """Numbers of density exp(-x): ``-log(1 - u)``."""
    return lax.neg(lax.log1p(lax.neg(unit_floats(key, shape, dtype))))


def gumbels(key, shape, dtype):
    """Numbers of distribution function exp(-exp(-x)): ``-log(-log(u))``."""
    tiny = dtypes.finfo(dtype).tiny
    u = uniform_floats(key, shape, dtype, scalar(tiny, dtype), scalar(1, dtype))
    return lax.neg(lax.log(lax.neg(lax.log(u))))


def _cauchys(key, shape, dtype):
    u = uniform_floats(key, shape, dtype, scalar(dtypes.finfo(dtype).eps, dtype), scalar(1, dtype))
    return lax.tan(lax.mul(scalar(math.pi, dtype), lax.sub(u, scalar(0.5, dtype))))


def _laplaces(key, shape, dtype):
    low = lax.add(scalar(-1, dtype), scalar(dtypes.finfo(dtype).epsneg, dtype))
    u = uniform_floats(key, shape, dtype, low, scalar(1, dtype))
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


def _logistics(key, shape, dtype):
    u = uniform_floats(key, shape, dtype, scalar(dtypes.finfo(dtype).tiny, dtype), scalar(1, dtype))
    return lax.log(lax.div(u, lax.sub(scalar(1, dtype), u)))


def _without_parameters(name: str, fun, doc: str):
    compiled = key_function(1, 2)(fun)

    def sampler(key, shape=(), dtype=None, *, out_sharding=None):
        key, _ = single_key(name, key)
        return placed(compiled(key, shape_of(shape), float_dtype(name, dtype)), out_sharding)

    sampler.__name__ = sampler.__qualname__ = name
    sampler.__doc__ = f"""{doc}

    Args:
      key: a single key.
      shape: of the result.
      dtype: a float dtype; default: the default float.
      out_sharding: placement of the result.
    """
    return sampler


exponential = _without_parameters("exponential", exponentials, "Exponentially distributed numbers of mean 1.")
cauchy = _without_parameters("cauchy", _cauchys, "Numbers of the standard Cauchy distribution.")
laplace = _without_parameters("laplace", _laplaces, "Numbers of density exp(-abs(x)) / 2.")
logistic = _without_parameters("logistic", _logistics, "Numbers whose distribution function is the logistic sigmoid.")

_gumbel = key_function(1, 2)(gumbels)


def gumbel(key, shape=(), dtype=None, mode=None, *, out_sharding=None):
    """Numbers of the standard Gumbel distribution.

    Args:
      key: a single key.
      shape: of the result.
      dtype: a float dtype; default: the default float.
      mode: ``"low"`` or ``"high"``: how many bits a number takes. With ``"low"`` float32 numbers are wrong far out in
        the tails. Default: ``"low"``, or ``"high"`` under ``jax_use_high_dynamic_range_gumbel``.
      out_sharding: placement of the result.
    """
    key, _ = single_key("gumbel", key)
    shape, dtype = shape_of(shape), float_dtype("gumbel", dtype)
    return placed(gumbel_function(mode)(key, shape, dtype), out_sharding)


def gumbel_function(mode):
    """The sampler of that mode."""
    if mode in (None, "low"):
        return _gumbel
    raise ValueError(f"Must provide valid mode for gumbel got: {mode}")


__all__ = [name for name in __all__ if name in globals()]
_ = aval_of
