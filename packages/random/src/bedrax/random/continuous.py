"""Samplers of continuous distributions that transform uniform or normal numbers.

Formulas: L. Devroye, "Non-Uniform Random Variate Generation" (Springer, 1986), chapter II (inversion) and IX.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, DTypeLike, Shape
from bedrax.lax import lattice
from bedrax.lax.choices import one_of
from bedrax.lax.primitives import linalg
from bedrax.lax.primitives.placement import placed
from bedrax.random import flags
from bedrax.random.arguments import as_dtype, broadcast_to, float_dtype, inexact_dtype, parameter, shape_of
from bedrax.random.keys import single_key
from bedrax.random.sampling import sampler
from bedrax.random.uniforms import signs, split_keys, uniform_floats, unit_floats

__all__ = [
    "cauchy",
    "double_sided_maxwell",
    "exponential",
    "gumbel",
    "laplace",
    "logistic",
    "lognormal",
    "maxwell",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "rayleigh",
    "triangular",
    "truncated_normal",
    "wald",
    "weibull_min",
]


def scalar(x: Any, dtype: np.dtype) -> np.ndarray:
    """`x` as a NumPy array of rank 0 of `dtype`."""
    return np.asarray(x).astype(dtype)


# ---- normal ----


def normals(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Standard normal numbers by inversion of the distribution function; complex ones have variance 1."""
    if dtypes.is_complex(dtype):
        real, imag = split_keys(key, 2)
        part = np.zeros((), dtype).real.dtype
        z = lax.complex(normals(real, shape, part), normals(imag, shape, part))
        return lax.div(z, scalar(math.sqrt(2.0), dtype))
    above_minus_one = np.nextafter(scalar(-1, dtype), scalar(0, dtype))
    u = uniform_floats(key, shape, dtype, above_minus_one, scalar(1, dtype))
    return lax.mul(scalar(math.sqrt(2.0), dtype), lax.erf_inv(u))


normal: Final = sampler(
    normals,
    name="normal",
    dtype=inexact_dtype,
    doc="""Standard normal numbers. Complex ones have independent parts of variance one half.

    Examples:

      >>> jax.random.normal(jax.random.key(0), (3,))
      Array([ 1.6226422 ,  2.0252647 , -0.43359444], dtype=float32)
      >>> 5 + 0.1 * jax.random.normal(jax.random.key(1), (2, 2), jnp.bfloat16)
      Array([[5.0625, 4.9375],
             [5, 5.15625]], dtype=bfloat16)
    """,
)


@sampler
def truncated_normal(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], lower: Array, upper: Array) -> Array:
    """Standard normal numbers in the open interval (lower, upper).

    Args:
      lower, upper: bounds, which broadcast to `shape`.

    Examples:

      >>> x = jax.random.truncated_normal(jax.random.key(0), -1., 1., (1000,))
      >>> bool(jnp.all(jnp.abs(x) < 1))
      True
    """
    root = scalar(math.sqrt(2.0), dtype)
    lower, upper = as_dtype(lower, dtype), as_dtype(upper, dtype)
    a, b = (broadcast_to(lax.erf(lax.div(x, root)), shape) for x in (lower, upper))
    out = lax.mul(root, lax.erf_inv(uniform_floats(key, shape, dtype, a, b)))
    inside = (
        lax.nextafter(lax.stop_gradient(lower), scalar(np.inf, dtype)),
        lax.nextafter(lax.stop_gradient(upper), scalar(-np.inf, dtype)),
    )
    return lax.clamp(broadcast_to(inside[0], shape), out, broadcast_to(inside[1], shape))


_UNIT_SIGMA = np.float32(1.0)


@sampler(dtype=inexact_dtype)
def lognormal(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], sigma: Array = _UNIT_SIGMA) -> Array:
    """Numbers whose logarithm is normal with mean 0 and standard deviation `sigma`.

    Args:
      sigma: array that broadcasts to `shape`.

    Examples:

      >>> x = jax.random.lognormal(jax.random.key(0), sigma=2., shape=(1000,))
      >>> jnp.log(x).std().round()
      Array(2., dtype=float32)
    """
    return lax.exp(lax.mul(normals(key, shape, dtype), broadcast_to(as_dtype(sigma, dtype), shape)))


# ---- inversions ----


def exponentials(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Numbers of density exp(-x): ``-log(1 - u)``."""
    return lax.neg(lax.log1p(lax.neg(unit_floats(key, shape, dtype))))


exponential: Final = sampler(
    exponentials,
    name="exponential",
    doc="""Exponentially distributed numbers of mean 1.

    Examples:

      >>> jax.random.exponential(jax.random.key(0), (3,))
      Array([2.950128  , 3.8434246 , 0.40390354], dtype=float32)
    """,
)


def gumbels(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Numbers of distribution function exp(-exp(-x)): ``-log(-log(u))``."""
    tiny = dtypes.finfo(dtype).tiny
    u = uniform_floats(key, shape, dtype, scalar(tiny, dtype), scalar(1, dtype))
    return lax.neg(lax.log(lax.neg(lax.log(u))))


@sampler
def cauchy(key: ArrayLike, shape: Shape, dtype: DTypeLike) -> Any:
    """Numbers of the standard Cauchy distribution.

    Examples:

      >>> jax.random.cauchy(jax.random.key(0), (3,))
      Array([ 6.0274944 , 14.837895  , -0.58172226], dtype=float32)
    """
    u = uniform_floats(key, shape, dtype, scalar(dtypes.finfo(dtype).eps, dtype), scalar(1, dtype))
    return lax.tan(lax.mul(scalar(math.pi, dtype), lax.sub(u, scalar(0.5, dtype))))


@sampler
def laplace(key: ArrayLike, shape: tuple[Any, ...], dtype: np.dtype[Any]) -> Array:
    """Numbers of density exp(-abs(x)) / 2.

    Examples:

      >>> jax.random.laplace(jax.random.key(0), (3,))
      Array([-2.2569816 , -3.1502788 ,  0.40859544], dtype=float32)
    """
    low = lax.add(scalar(-1, dtype), scalar(dtypes.finfo(dtype).epsneg, dtype))
    u = uniform_floats(key, shape, dtype, low, scalar(1, dtype))
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


@sampler
def logistic(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Numbers whose distribution function is the logistic sigmoid.

    Examples:

      >>> jax.random.logistic(jax.random.key(0), (3,))
      Array([ 2.8963761 ,  3.8217716 , -0.69783914], dtype=float32)
    """
    u = uniform_floats(key, shape, dtype, scalar(dtypes.finfo(dtype).tiny, dtype), scalar(1, dtype))
    return lax.log(lax.div(u, lax.sub(scalar(1, dtype), u)))


@one_program(static=("formula", "shape", "dtype"), everywhere=True)
def _gumbel(key, formula, shape, dtype):
    return formula(key, shape, dtype)


def gumbel(
    key: ArrayLike,
    shape: tuple[int, ...] = (),
    dtype: type | None = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Numbers of the standard Gumbel distribution.

    Args:
      key: a single key.
      shape: of the result.
      dtype: a float dtype; default: the default float.
      mode: ``"low"`` or ``"high"``: the number of bits of a sample. With ``"low"`` float32 numbers are wrong far out in
        the tails. Default: ``"low"``, or ``"high"`` under ``jax_high_dynamic_range_gumbel``.
      out_sharding: placement of the result.

    Examples:

      >>> jax.random.gumbel(jax.random.key(0), (3,))
      Array([ 2.9233725 ,  3.8326178 , -0.09689324], dtype=float32)
    """
    key, _ = single_key("gumbel", key)
    shape, dtype = shape_of(shape), float_dtype("gumbel", dtype)
    return placed(_gumbel(key, gumbel_function(mode), shape, dtype), out_sharding)


def _gumbels_high(key, shape, dtype):
    # 1 - u is a coarse number plus a fine one below its spacing, so that it can be as small as the square of that
    work = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    both = unit_floats(key, (2, *shape), dtype)
    if work != dtype:
        both = lax.convert_element_type(both, work)
    coarse, fine = (lax.index_in_dim(both, i, 0, keepdims=False) for i in range(2))
    rest = lax.add(coarse, lax.mul(fine, scalar(dtypes.finfo(dtype).eps, work)))
    one = scalar(1, work)
    rest = lax.clamp(scalar(dtypes.finfo(work).tiny, work), rest, np.nextafter(one, scalar(0, work)))
    out = lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(rest)))))
    return out if work == dtype else lax.convert_element_type(out, dtype)


def gumbel_function(mode: str | None) -> Callable[..., Any]:
    """The sampler of a mode (None: of the option): a function of a key, a shape and a dtype."""
    if mode is None:
        mode = "high" if flags.high_dynamic_range_gumbel.value else "low"
    if mode == "low":
        return gumbels
    if mode == "high":
        return _gumbels_high
    raise ValueError(f"gumbel: mode is 'low' or 'high', got {mode!r}")


# ---- with parameters ----


@sampler
def pareto(key: ArrayLike, shape: Shape, dtype: DTypeLike, b: ArrayLike) -> Any:
    """Numbers of density ``b / x ** (b + 1)`` on [1, inf).

    Args:
      b: positive exponent; broadcasts to `shape`.

    Examples:

      >>> bool(jnp.all(jax.random.pareto(jax.random.key(0), 2., (1000,)) >= 1))
      True
    """
    return lax.exp(lax.div(exponentials(key, shape, dtype), broadcast_to(as_dtype(b, dtype), shape)))


@sampler
def rayleigh(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], scale: Array) -> Array:
    """Lengths of vectors of two independent normal numbers of standard deviation `scale`.

    Args:
      scale: broadcasts to `shape`.

    Examples:

      >>> bool(jnp.all(jax.random.rayleigh(jax.random.key(0), 2., (100,)) > 0))
      True
    """
    u = uniform_floats(key, shape, dtype, scalar(dtypes.finfo(dtype).tiny, dtype), scalar(1, dtype))
    radius = lax.sqrt(lax.mul(scalar(-2, dtype), lax.log(u)))
    return lax.mul(radius, broadcast_to(as_dtype(scale, dtype), shape))


@sampler
def wald(key: ArrayLike, shape: Shape, dtype: DTypeLike, mean: ArrayLike) -> Any:
    """Numbers of the Wald (inverse Gaussian) distribution of the given mean and shape parameter 1.

    Args:
      mean: positive; broadcasts to `shape`.

    Examples:

      >>> bool(jnp.all(jax.random.wald(jax.random.key(0), 1., (100,)) > 0))
      True
    """
    # J. R. Michael, W. R. Schucany, R. W. Haas, "Generating random variates using transformations with multiple
    # roots", The American Statistician 30 (1976): with y chi-square of 1 degree, the smaller root x of
    # (x - m)^2 / (m^2 x) = y, or else m^2 / x.
    for_normal, for_choice = split_keys(key, 2)
    mean = broadcast_to(as_dtype(mean, dtype), shape)
    y = lax.square(normals(for_normal, shape, dtype))
    choice = unit_floats(for_choice, shape, dtype)
    two, four = scalar(2, dtype), scalar(4, dtype)
    my = lax.mul(mean, y)
    root = lax.sqrt(lax.add(lax.mul(four, my), lax.square(my)))
    half = lax.div(mean, two)
    x = lax.sub(lax.add(mean, lax.mul(half, my)), lax.mul(half, root))
    return lax.select(lax.le(choice, lax.div(mean, lax.add(mean, x))), x, lax.div(lax.square(mean), x))


@sampler(shape=(), placement=False)
def weibull_min(key: ArrayLike, shape: Shape, dtype: DTypeLike, scale: ArrayLike, concentration: ArrayLike) -> Any:
    """Numbers whose survival function is ``exp(-(x / scale) ** concentration)``.

    Args:
      scale, concentration: broadcast to `shape`.

    Examples:

      >>> bool(jnp.all(jax.random.weibull_min(jax.random.key(0), 1., 2., (100,)) > 0))
      True
    """
    scale, concentration = (broadcast_to(as_dtype(x, dtype), shape) for x in (scale, concentration))
    return lax.mul(lax.pow(exponentials(key, shape, dtype), lax.div(lax.full(shape, 1, dtype), concentration)), scale)


def maxwells(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Lengths of vectors of three independent standard normal numbers."""
    return lax.sqrt(lax.reduce_sum(lax.square(normals(key, (*shape, 3), dtype)), (len(shape),)))


maxwell: Final = sampler(
    maxwells,
    name="maxwell",
    doc="""Numbers of the standard Maxwell distribution: speeds in a gas.

    Examples:

      >>> x = jax.random.maxwell(jax.random.key(0), (1000,))
      >>> bool(jnp.all(x > 0))
      True
    """,
)


@sampler(shape=(), placement=False)
def double_sided_maxwell(key: ArrayLike, shape: Shape, dtype: DTypeLike, loc: ArrayLike, scale: ArrayLike) -> Any:
    """Numbers ``loc + scale * sign * m`` with `m` of the Maxwell distribution and a random sign.

    Args:
      loc, scale: broadcast to `shape`.

    Examples:

      >>> x = jax.random.double_sided_maxwell(jax.random.key(0), loc=5., scale=1., shape=(2000,))
      >>> x.mean().round()
      Array(5., dtype=float32)
    """
    loc, scale = (broadcast_to(as_dtype(x, dtype), shape) for x in (loc, scale))
    for_size, for_sign = split_keys(key, 2)
    size = lax.mul(scale, maxwells(for_size, shape, dtype))
    return lax.add(loc, lax.mul(size, signs(for_sign, shape, dtype)))


@sampler
def triangular(
    key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], left: Array, mode: Array, right: Array
) -> Array:
    """Numbers whose density rises linearly from `left` to `mode` and falls linearly to `right`.

    Args:
      left, mode, right: broadcast to `shape`.

    Examples:

      >>> x = jax.random.triangular(jax.random.key(0), 0., 1., 5., (2000,))
      >>> x.mean().round()
      Array(2., dtype=float32)
    """
    left, mode, right = (broadcast_to(as_dtype(x, dtype), shape) for x in (left, mode, right))
    u = unit_floats(key, shape, dtype)
    width, rise, fall = lax.sub(right, left), lax.sub(mode, left), lax.sub(right, mode)
    one = lax.full(shape, 1, dtype)
    lower = lax.add(left, lax.sqrt(lax.mul(lax.mul(u, width), rise)))
    upper = lax.sub(right, lax.sqrt(lax.mul(lax.mul(lax.sub(one, u), width), fall)))
    return lax.select(lax.lt(u, lax.div(rise, width)), lower, upper)


# ---- vectors and matrices ----


@one_program(static=("shape", "dtype", "method"), everywhere=True)
def _multivariate_normal(key, shape, dtype, method, mean, cov):
    work = _decomposed(dtype)
    mean, cov = as_dtype(mean, work), as_dtype(cov, work)
    factor = covariance_factor(cov, method)
    n = aval_of(mean).shape[-1]
    z = lax.convert_element_type(normals(key, (*shape, n), dtype), work)
    factor = broadcast_to(factor, (*shape, n, n))
    rank = len(shape)
    batch = tuple(range(rank))
    moved = lax.dot_general(factor, z, (((rank + 1,), (rank,)), (batch, batch)), precision="highest")
    return lax.convert_element_type(lax.add(broadcast_to(mean, (*shape, n)), moved), dtype)


def _decomposed(dtype):
    """The dtype to decompose matrices in: decompositions have 32 bits at least."""
    return np.dtype(np.float32) if dtypes.finfo(dtype).bits < 32 else dtype


def covariance_factor(cov: Array, method: str) -> Array:
    """A matrix A with ``A @ A.T == cov``."""
    if method == "cholesky":
        return linalg.cholesky(cov)
    if method == "eigh":
        vectors, values = linalg.eigh(cov)
    else:
        vectors, values, _ = linalg.svd(cov)
    shape = aval_of(vectors).shape
    roots = lax.broadcast_in_dim(lax.sqrt(values), shape, (*range(len(shape) - 2), len(shape) - 1))
    return lax.mul(vectors, roots)


def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Array:
    """Normal vectors of the given mean and covariance.

    Args:
      key: a single key.
      mean: array of shape ``(..., n)``.
      cov: array of shape ``(..., n, n)``, positive definite (or semidefinite, except for ``"cholesky"``).
      shape: of the batch, without the last axis; default: the joint batch shape of `mean` and `cov`.
      dtype: a float dtype; default: the joint dtype of `mean` and `cov`, if that is a float.
      method: how `cov` is factored: ``"cholesky"``, ``"svd"`` or ``"eigh"``.
      out_sharding: placement of the result.

    Returns:
      An array of shape ``(*shape, n)``.

    Examples:

      >>> mean, cov = jnp.array([5., 0.]), jnp.array([[1., 0.9], [0.9, 1.]])
      >>> x = jax.random.multivariate_normal(jax.random.key(0), mean, cov, (2000,))
      >>> jnp.cov(x.T).round(1)
      Array([[1.        , 0.90000004],
             [0.90000004, 1.        ]], dtype=float32)
    """
    key, _ = single_key("multivariate_normal", key)
    one_of("multivariate_normal", "method", method, ("svd", "eigh", "cholesky"))
    mean, cov = (parameter("multivariate_normal", x) for x in (mean, cov))
    if dtype is None:
        dtype = dtypes.to_inexact_dtype(lattice.result_type(mean, cov))
    dtype = float_dtype("multivariate_normal", dtype)
    m, c = aval_of(mean).shape, aval_of(cov).shape
    if not m:
        raise ValueError("multivariate_normal: mean has an axis at least, got a scalar")
    if len(c) < 2:
        raise ValueError(f"multivariate_normal: cov holds matrices, got rank {len(c)}")
    n = m[-1]
    if c[-2:] != (n, n):
        raise ValueError(f"multivariate_normal: cov has shape [..., {n}, {n}], as mean has {n} elements; got {c}")
    batch = lax.broadcast_shapes(m[:-1], c[:-2])
    if shape is None:
        shape = batch
    else:
        shape = shape_of(shape)
        if lax.broadcast_shapes(shape, batch) != shape:
            raise ValueError(f"the batch shapes of mean and cov, {m[:-1]} and {c[:-2]}, do not broadcast to {shape}")
    return placed(_multivariate_normal(key, shape, dtype, method, mean, cov), out_sharding)


@one_program(static=("shape", "dtype", "n", "m"), everywhere=True)
def _orthogonal(key, shape, dtype, n, m):
    # F. Mezzadri, "How to generate random matrices from the classical compact groups", Notices of the AMS 54 (2007):
    # the Q of a normal matrix, with the phases of R's diagonal, is uniform.
    work = _decomposed(dtype)
    z = lax.convert_element_type(normals(key, (*shape, max(n, m), min(n, m)), dtype), work)
    q, r = linalg.qr(z, full_matrices=False)
    rank, k = len(shape) + 2, min(n, m)
    same = lax.eq(*(lax.broadcasted_iota(np.dtype(np.int32), (*shape, k, k), rank - i) for i in (1, 2)))
    diagonal = lax.reduce_sum(lax.select(same, r, lax.full((*shape, k, k), 0, work)), (rank - 2,))
    phase = lax.sign(diagonal)
    q = lax.mul(q, lax.broadcast_in_dim(phase, aval_of(q).shape, (*range(rank - 2), rank - 1)))
    q = lax.convert_element_type(q, dtype)
    return q if n >= m else lax.transpose(q, (*range(rank - 2), rank - 1, rank - 2))


def orthogonal(
    key: ArrayLike,
    n: int,
    shape: tuple[int, ...] = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniformly distributed orthogonal (or unitary) matrices.

    Args:
      key: a single key.
      n: number of rows.
      shape: of the batch.
      dtype: a float dtype, or a complex one for unitary matrices; default: the default float.
      m: number of columns; default: `n`. The shorter side is orthonormal.
      out_sharding: placement of the result.

    Returns:
      An array of shape ``(*shape, n, m)``.

    Examples:

      >>> q = jax.random.orthogonal(jax.random.key(0), 3)
      >>> jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5)
      Array(True, dtype=bool)
    """
    key, _ = single_key("orthogonal", key)
    n = dims.integer(n, "n")
    m = n if m is None else dims.integer(m, "m")
    return placed(_orthogonal(key, shape_of(shape), inexact_dtype("normal", dtype), n, m), out_sharding)
