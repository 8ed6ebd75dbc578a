"""The gamma distribution, and distributions whose numbers are made of gamma numbers.

G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000): with x normal and
``v = (1 + c x)^3``, ``d v`` is gamma distributed with parameter ``a = d + 1/3 >= 1`` after a rejection that accepts more
than 95 of 100. For a < 1, the number for a + 1 times ``u^(1/a)``.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from bedrax import lax
from bedrax.autodiff.tables import Zero, jvp_rules, transpose_rules
from bedrax.batching import vmap
from bedrax.batching.tables import batch_rules, to_front
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.one_program import one_program
from bedrax.core.tables import print_rules
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.lax.primitives.placement import placed
from bedrax.lax.tables import decompositions
from bedrax.random.arguments import as_dtype, broadcast_to, float_dtype, parameter, shape_of
from bedrax.random.continuous import exponentials, normals, scalar
from bedrax.random.key_array import FAMILY, KeyDType
from bedrax.random.keys import single_key
from bedrax.random.primitives import eager, random_split_p, random_wrap_p, without_implementation
from bedrax.random.sampling import sampler
from bedrax.random.uniforms import signs, split_keys, unit_floats

__all__ = [
    "ball",
    "beta",
    "chisquare",
    "dirichlet",
    "f",
    "gamma",
    "generalized_normal",
    "loggamma",
    "random_gamma_p",
    "t",
]

random_gamma_p: Final = Primitive("random_gamma", FAMILY)
print_rules.add(random_gamma_p, without_implementation)


@random_gamma_p.abstract
def _gamma_type(keys, a, *, impl, log_space):
    if not isinstance(keys.dtype, KeyDType) or keys.shape != a.shape:
        raise TypeError(f"random_gamma needs one key for each parameter, got {keys.str_short()} and {a.str_short()}")
    if not dtypes.is_floating(a.dtype):
        raise TypeError(f"random_gamma needs a float parameter, got {a.str_short()}")
    return ShapedArray(a.shape, a.dtype)


def _one(key, a, log_space: bool):
    """One number, of one key and one parameter of rank 0."""
    dtype = aval_of(a).dtype
    one, third = scalar(1, dtype), scalar(1 / 3, dtype)
    small = lax.lt(a, one)
    d = lax.sub(lax.select(small, lax.add(a, one), a), third)
    c = lax.div(third, lax.sqrt(d))
    key, for_boost = split_keys(key, 2)

    def propose(state):
        key, _, _ = state
        key, sub = split_keys(key, 2)
        x = normals(sub, (), dtype)
        return key, x, lax.add(one, lax.mul(x, c))

    def rejected(state):
        _, x2, v, u = state
        squeeze = lax.ge(u, lax.sub(one, lax.mul(scalar(0.0331, dtype), lax.square(x2))))
        bound = lax.add(lax.mul(x2, scalar(0.5, dtype)), lax.mul(d, lax.add(lax.sub(one, v), lax.log(v))))
        return lax.bitwise_and(squeeze, lax.ge(lax.log(u), bound))

    def step(state):
        key, for_x, for_u = split_keys(state[0], 3)
        zero = lax.full((), 0, dtype)
        _, x, v = lax.while_loop(lambda s: lax.le(s[2], zero), propose, (for_x, zero, lax.full((), -1, dtype)))
        return key, lax.square(x), lax.mul(v, lax.square(v)), unit_floats(for_u, (), dtype)

    start = (key, lax.full((), 0, dtype), lax.full((), 1, dtype), lax.full((), 2, dtype))  # this start is rejected
    _, _, v, _ = lax.while_loop(rejected, step, start)
    u = unit_floats(for_boost, (), dtype)
    # log(1 - u) / a: the contribution of u^(1/a)
    log_boost = lax.select(small, lax.div(lax.log1p(lax.neg(u)), a), lax.full((), 0, dtype))
    if log_space:
        return lax.add(lax.add(lax.log(d), lax.log(v)), log_boost)
    return lax.mul(lax.mul(d, v), lax.exp(log_boost))


def _on_base(base, a, *, impl, log_space):
    shape = aval_of(a).shape
    n = math.prod(shape)
    rank = len(impl.key_shape)
    keys = random_wrap_p.bind(
        lax.reshape(base, (n, *aval_of(base).shape[len(aval_of(base).shape) - rank :])), impl=impl
    )
    out = vmap(lambda key, a: _one(key, a, log_space))(keys, lax.reshape(a, (n,)))
    return lax.reshape(out, shape)


decompositions.add(random_gamma_p, _on_base)
eager(random_gamma_p, _on_base, ("impl", "log_space"), keys=False)


@batch_rules.rule(random_gamma_p)
def _batch(axis, args, dims, **params):
    return random_gamma_p.bind(*(to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)), **params), 0


@jvp_rules.rule(random_gamma_p)
def _jvp(primals, tangents, *, impl, log_space):
    # The number as a function of its parameter at a fixed value of the distribution function (M. Figurnov,
    # S. Mohamed, A. Mnih, "Implicit reparameterization gradients", NeurIPS 2018).
    keys, a = primals
    out = random_gamma_p.bind(keys, a, impl=impl, log_space=log_space)
    t = tangents[1]
    if type(t) is Zero:
        return out, Zero.of(out)
    if not log_space:
        return out, lax.mul(t, lax.random_gamma_grad(a, out))
    # Below `limit` the distribution function is x^a / gamma(a + 1) to working precision, so that
    # d(log x)/da = (digamma(a + 1) - log x) / a, which does not need x.
    shape, dtype = aval_of(a).shape, aval_of(a).dtype
    limit = scalar(dtypes.finfo(dtype).eps, dtype)
    x = lax.exp(out)
    tiny = lax.lt(x, limit)
    safe = lax.select(tiny, lax.full(shape, 1, dtype), x)
    far = lax.div(lax.sub(lax.digamma(lax.add(a, lax.full(shape, 1, dtype))), out), a)
    slope = lax.select(tiny, far, lax.div(lax.random_gamma_grad(a, safe), safe))
    return out, lax.mul(t, slope)


transpose_rules.absent(random_gamma_p, why="it is not linear in its parameter")


_STEPS = 6


def _approximate(key, shape, dtype, a):
    """Logarithms of gamma numbers without a loop.

    The quantile of parameter ``a + 6`` is expanded about a normal number (E. A. Cornish, R. A. Fisher, "Moments and
    cumulants in the specification of distributions", Review of the International Statistical Institute 5 (1938)), up to
    the power -3/2 of the parameter: that errs by less than 1e-4 in total variation. Six uniform numbers, each to the
    power ``1 / (a + k)``, then lead down to parameter `a` without further error (Devroye, IX.3.5).
    """
    work = dtype if dtypes.itemsize_bits(dtype) >= 32 else np.dtype(np.float32)
    for_normal, for_steps = split_keys(key, 2)
    a = lax.convert_to(a, work)
    z = normals(for_normal, shape, work)
    u = unit_floats(for_steps, (_STEPS, *shape), work)
    above = a + _STEPS
    root = lax.sqrt(above)
    square = z * z
    x = above + z * root + (square - 1) / 3 + z * (square - 7) / (36 * root)
    x = x - ((3 * square + 7) * square - 16) / (810 * above)
    x = x + z * ((9 * square + 256) * square - 433) / (38880 * above * root)
    out = lax.log(lax.max(x, lax.full(shape, dtypes.finfo(work).tiny, work)))
    for k in range(_STEPS):
        out = out + lax.log1p(-lax.index_in_dim(u, k, keepdims=False)) / (a + k)
    infinite = lax.full(shape, np.inf, work)
    out = lax.select(a >= infinite, infinite, lax.select(lax.eq(a, lax.full(shape, 0, work)), -infinite, out))
    return lax.select(a >= 0, out, lax.full(shape, np.nan, work))


def gammas(
    key: ArrayLike,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    a: ArrayLike,
    log_space: bool = False,
    method: str = "exact",
) -> Array:
    """Gamma numbers (or their logarithms) of parameter `a`, which broadcasts to `shape`."""
    impl = aval_of(key).dtype.implementation
    a = broadcast_to(as_dtype(a, dtype), shape)
    if method == "approximate":
        logs = _approximate(key, shape, dtype, a)
        return lax.convert_to(logs if log_space else lax.exp(logs), dtype)
    keys = random_split_p.bind(key, impl=impl, shape=shape)
    return random_gamma_p.bind(keys, a, impl=impl, log_space=log_space)


@sampler
def gamma(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], a: Array, *, method: str = "exact") -> Array:
    """Numbers of density proportional to ``x ** (a - 1) * exp(-x)``.

    The derivative with respect to `a` is implicit: the distribution function of the number stays constant. The method
    ``"approximate"`` differentiates its formula instead, and its derivatives differ.

    Args:
      a: positive; broadcasts to `shape`.

    Examples:

      >>> x = jax.random.gamma(jax.random.key(0), 3., (2000,))
      >>> x.mean().round()
      Array(3., dtype=float32)
    """
    return gammas(key, shape, dtype, a, method=method)


@sampler
def loggamma(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], a: Array, *, method: str = "exact") -> Array:
    """Logarithms of gamma numbers, exact also where these are too small for the dtype.

    Args:
      a: parameter of the gamma numbers, positive; broadcasts to `shape`.

    Examples:

      >>> jax.random.loggamma(jax.random.key(0), 1e-6, (2,)) < -1000
      Array([ True,  True], dtype=bool)
    """
    return gammas(key, shape, dtype, a, True, method)


@sampler
def beta(
    key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], a: Array, b: Array, *, method: str = "exact"
) -> Array:
    """Numbers in [0, 1] of density proportional to ``x ** (a - 1) * (1 - x) ** (b - 1)``.

    Args:
      a, b: positive; broadcast to `shape`.

    Examples:

      >>> x = jax.random.beta(jax.random.key(0), 2., 2., (1000,))
      >>> x.mean().round(1)
      Array(0.5, dtype=float32)
    """
    first, second = split_keys(key, 2)
    x, y = gammas(first, shape, dtype, a, True, method), gammas(second, shape, dtype, b, True, method)
    most = lax.max(x, y)
    x, y = lax.exp(lax.sub(x, most)), lax.exp(lax.sub(y, most))
    return lax.div(x, lax.add(x, y))


@one_program(static=("shape", "dtype"), everywhere=True)
def _dirichlet(key, shape, dtype, alpha):
    n = aval_of(alpha).shape[-1]
    full = (*shape, n)
    logs = gammas(key, full, dtype, alpha, True)
    axis = len(shape)
    kept = tuple(range(axis))
    most = lax.stop_gradient(lax.reduce_max(logs, (axis,)))
    x = lax.exp(lax.sub(logs, lax.broadcast_in_dim(most, full, kept)))
    return lax.div(x, lax.broadcast_in_dim(lax.reduce_sum(x, (axis,)), full, kept))


def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Vectors of positive numbers with sum 1, of the Dirichlet distribution.

    Args:
      key: a single key.
      alpha: positive, of shape ``(..., n)``.
      shape: of the batch, without the last axis; default: ``alpha.shape[:-1]``.
      dtype: a float dtype; default: the default float.
      out_sharding: placement of the result.

    Returns:
      An array of shape ``(*shape, n)``.

    Examples:

      >>> x = jax.random.dirichlet(jax.random.key(0), jnp.array([1., 2., 3.]))
      >>> x.sum().round(3)
      Array(1., dtype=float32)
    """
    key, _ = single_key("dirichlet", key)
    dtype = float_dtype("dirichlet", dtype)
    alpha = parameter("dirichlet", alpha)
    own = aval_of(alpha).shape
    if not own:
        raise ValueError("dirichlet: alpha has an axis at least, that of the categories; got a scalar")
    batch = tuple(own[:-1])
    shape = batch if shape is None else shape_of(shape)
    if lax.broadcast_shapes(shape, batch) != shape:
        raise ValueError(f"the batch shape of alpha, {batch}, does not broadcast to {shape}")
    return placed(_dirichlet(key, shape, dtype, alpha), out_sharding)


@sampler
def chisquare(
    key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], df: Array, *, method: str = "exact"
) -> Array:
    """Sums of the squares of `df` standard normal numbers; `df` need not be whole.

    Args:
      df: degrees of freedom; broadcasts to `shape`.

    Examples:

      >>> x = jax.random.chisquare(jax.random.key(0), df=3, shape=(2000,))
      >>> x.mean().round()
      Array(3., dtype=float32)
    """
    two = scalar(2, dtype)
    half = lax.div(as_dtype(df, dtype), two)
    return lax.mul(two, lax.exp(gammas(key, shape, dtype, half, True, method)))


@sampler
def f(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], dfnum: Array, dfden: Array) -> Array:
    """Numbers of the F distribution: quotients of chi-square numbers over their degrees of freedom.

    Args:
      dfnum, dfden: degrees of freedom; broadcast to `shape`.

    Examples:

      >>> jax.random.f(jax.random.key(0), dfnum=4., dfden=6., shape=(2,)).shape
      (2,)
    """
    for_den, for_num = split_keys(key, 2)
    two = scalar(2, dtype)

    def mean_square(key, df):
        df = broadcast_to(as_dtype(df, dtype), shape)
        return lax.div(lax.mul(two, lax.exp(gammas(key, shape, dtype, lax.div(df, two), True))), df)

    return lax.div(mean_square(for_num, dfnum), mean_square(for_den, dfden))


@sampler
def t(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], df: Array) -> Array:
    """Numbers of Student's t distribution.

    Args:
      df: degrees of freedom; broadcasts to `shape`.

    Examples:

      >>> jax.random.t(jax.random.key(0), df=5., shape=(2,)).shape
      (2,)
    """
    for_normal, for_gamma = split_keys(key, 2)
    half = broadcast_to(lax.div(as_dtype(df, dtype), scalar(2, dtype)), shape)
    return lax.mul(normals(for_normal, shape, dtype), lax.sqrt(lax.div(half, gammas(for_gamma, shape, dtype, half))))


def generalized_normals(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], p: float) -> Array:
    """Numbers of density proportional to ``exp(-abs(x) ** p)``."""
    for_gamma, for_sign = split_keys(key, 2)
    power = scalar(1 / p, dtype)
    size = lax.pow(gammas(for_gamma, shape, dtype, power), lax.full(shape, power, dtype))
    return lax.mul(signs(for_sign, shape, dtype), size)


_generalized_normal = one_program(generalized_normals, static=("shape", "dtype", "p"), everywhere=True)


def generalized_normal(
    key: ArrayLike, p: float, shape: tuple[int, ...] = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Numbers of density proportional to ``exp(-abs(x) ** p)``.

    Args:
      key: a single key.
      p: a Python float.
      shape: of the result.
      dtype: a float dtype; default: the default float.
      out_sharding: placement of the result.

    Examples:

      >>> x = jax.random.generalized_normal(jax.random.key(0), p=1., shape=(2000,))
      >>> jnp.abs(x).mean().round()
      Array(1., dtype=float32)
    """
    key, _ = single_key("generalized_normal", key)
    shape, dtype = shape_of(shape), float_dtype("generalized_normal", dtype)
    return placed(_generalized_normal(key, shape, dtype, float(p)), out_sharding)


@one_program(static=("shape", "dtype", "d", "p"), everywhere=True)
def _ball(key, shape, dtype, d, p):
    # F. Barthe, O. Guedon, S. Mendelson, A. Naor, "A probabilistic approach to the geometry of the l_p^n-ball", Annals
    # of Probability 33 (2005): d generalized normal numbers over the p-norm of these and an exponential number.
    for_direction, for_radius = split_keys(key, 2)
    g = generalized_normals(for_direction, (*shape, d), dtype, p)
    e = exponentials(for_radius, shape, dtype)
    total = lax.add(lax.reduce_sum(lax.pow(lax.abs(g), lax.full((*shape, d), p, dtype)), (len(shape),)), e)
    norm = lax.pow(total, lax.full(shape, 1 / p, dtype))
    return lax.div(g, lax.broadcast_in_dim(norm, (*shape, d), range(len(shape))))


def ball(
    key: ArrayLike,
    d: int,
    p: int = 2,
    shape: tuple[int, ...] = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Points uniform in the unit ball of the p-norm.

    Args:
      key: a single key.
      d: dimension of the ball.
      p: the p of the norm; a Python number.
      shape: of the batch.
      dtype: a float dtype; default: the default float.
      out_sharding: placement of the result.

    Returns:
      An array of shape ``(*shape, d)``.

    Examples:

      >>> points = jax.random.ball(jax.random.key(0), d=3, shape=(100,))
      >>> bool(jnp.all(jnp.linalg.norm(points, axis=-1) <= 1))
      True
    """
    key, _ = single_key("ball", key)
    return placed(_ball(key, shape_of(shape), float_dtype("ball", dtype), int(d), float(p)), out_sharding)
