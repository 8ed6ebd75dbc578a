"""Samplers of counts: Poisson, binomial, multinomial and geometric numbers.

W. Hoermann, "The transformed rejection method for generating Poisson random variables", Insurance: Mathematics and
Economics 12 (1993), and "The generation of binomial random variates", Journal of Statistical Computation and Simulation
46 (1993): algorithms PTRS and BTRS, for large means. Small means take Knuth's product of uniform numbers, and sums of
geometric numbers (Devroye, chapter X).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.random.arguments import as_dtype, broadcast_to, int_dtype, joint_shape, parameter
from bedrax.random.continuous import normals, scalar
from bedrax.random.keys import single_key
from bedrax.random.primitives import random_clone_p, random_split_p
from bedrax.random.sampling import sampler
from bedrax.random.uniforms import split_keys, unit_floats

__all__ = ["binomial", "geometric", "multinomial", "poisson"]

_SMALL_MEAN = 10  # above, rejection is faster


# ---- Poisson ----


def _knuth(key, shape, dtype, rate):
    """The number of uniform numbers that can be multiplied before the product falls below ``exp(-rate)``."""
    count_dtype = dtypes.default_int_dtype()

    def step(state):
        key, count, log_product = state
        key, sub = split_keys(key, 2)
        count = lax.select(log_product > -rate, count + 1, count)
        return key, count, log_product + lax.log(unit_floats(sub, shape, dtype))

    start = (key, lax.full(shape, 0, count_dtype), lax.full(shape, 0, dtype))
    _, count, _ = lax.while_loop(lambda s: _any(s[2] > -rate), step, start)
    return count - 1


def _any(x):
    return lax.reduce_or(x, tuple(range(len(aval_of(x).shape))))


def _transformed_rejection(key, shape, dtype, propose):
    """Repeat proposals ``propose(u, v) -> (number, accepted)``, u in [-1/2, 1/2), until one is accepted per element.

    An element keeps its last accepted number. Proposals are independent, so the last is distributed as the first.
    """

    def step(state):
        key, out, done = state
        key, for_u, for_v = split_keys(key, 3)
        u = unit_floats(for_u, shape, dtype) - scalar(0.5, dtype)
        number, accepted = propose(u, unit_floats(for_v, shape, dtype))
        return key, lax.select(accepted, number, out), done | accepted

    start = (key, lax.full(shape, -1, dtype), lax.full(shape, False, np.dtype(bool)))
    return lax.while_loop(lambda s: _any(~s[2]), step, start)[1]


def _ptrs(key, shape, dtype, rate):
    log_rate = lax.log(rate)
    b = 0.931 + 2.53 * lax.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def propose(u, v):
        us = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / us + b) * u + rate + 0.43)
        inside = (us >= 0.07) & (v <= v_r)
        outside = (k < 0) | ((us < 0.013) & (v > us))
        left = lax.log(v * inverse_alpha / (a / (us * us) + b))
        return k, inside | (~outside & (left <= k * log_rate - rate - lax.lgamma(k + 1)))

    return _transformed_rejection(key, shape, dtype, propose)


# Up to this rate the approximate sampler inverts the distribution function term by term: beyond the last term there is
# a probability of less than 1e-9. Above, its expansion errs by less than 6e-5 in total variation.
_TABLE_RATE, _TERMS = 15, 44


def _inverted(key, shape, dtype, rate):
    """The number of values of the distribution function, from the first on, that a uniform number has reached."""
    u = unit_floats(key, shape, dtype)
    term = total = lax.exp(-rate)
    count = lax.full(shape, 0, dtype)
    for k in range(1, _TERMS + 1):
        count = count + lax.convert_element_type(u >= total, dtype)
        term = term * rate / k
        total = total + term
    return count


def _expanded(key, shape, dtype, rate):
    """Poisson numbers minus their rate, not yet rounded down: an expansion of the quantile about a normal number.

    M. B. Giles, "Algorithm 955: approximation of the inverse Poisson cumulative distribution function", ACM TOMS 42
    (2016): the expansion in powers of the root of the rate, up to the power -1 of the rate.
    """
    z = normals(key, shape, dtype)
    root, square = lax.sqrt(rate), z * z
    out = z * root + (square + 2) / 6 - z * (square + 2) / (72 * root)
    return out + ((3 * square + 7) * square - 16) / (810 * rate)


def _approximate_poisson(key, shape, dtype, work, rate):
    full = lambda x: lax.full(shape, x, work)
    by_table = (rate > 0) & (rate < _TABLE_RATE)
    by_expansion = (rate >= _TABLE_RATE) & (rate < np.inf)
    for_small, for_large = split_keys(key, 2)
    small = _inverted(for_small, shape, work, lax.select(by_table, rate, full(1)))
    mean = lax.select(by_expansion, rate, full(_TABLE_RATE))
    # The rate and the number added to it are summed as integers: a float may be too coarse for their sum.
    whole = lax.floor(mean)
    more = lax.floor(mean - whole + _expanded(for_large, shape, work, mean))
    convert = lambda x: lax.convert_element_type(x, dtype)
    room = float(dtypes.iinfo(dtype).max) / 4
    large = lax.select(whole < room, convert(lax.min(whole, full(room))) + convert(more), convert(whole + more))
    out = lax.select(by_table, convert(small), large)
    return lax.select(rate < np.inf, out, convert(full(np.inf)))


@sampler(dtype=int_dtype)
def poisson(
    key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], lam: ArrayLike, *, method: str = "exact"
) -> Array:
    """Numbers with Poisson's distribution. The method ``"exact"`` needs a key of the implementation ``threefry2x32``.

    Args:
      lam: rate, the mean; broadcasts to `shape`. Where it is negative or NaN the result is -1.

    Examples:

      >>> x = jax.random.poisson(jax.random.key(0), lam=4., shape=(2000,))
      >>> x.mean().round()
      Array(4., dtype=float32)
    """
    work = np.dtype(np.float32)  # under x64, too: users rely on these streams
    if method == "approximate":
        work = _parameter_dtype(lam)
    rate = broadcast_to(as_dtype(lam, work), shape)
    if method == "approximate":
        out = _approximate_poisson(key, shape, dtype, work, rate)
    else:
        out = _exact_poisson(key, shape, dtype, work, rate)
    out = lax.select(rate > 0, out, lax.full(shape, 0, dtype))
    invalid = lax.full(shape, np.asarray(-1).astype(dtype), dtype)
    return lax.select(rate >= 0, out, invalid)


def _exact_poisson(key, shape, dtype, work, rate):
    name = aval_of(key).dtype.implementation.name
    if name != "threefry2x32":
        raise NotImplementedError(
            f"poisson draws by method='exact' with keys of threefry2x32, got one of {name}; method='approximate' takes it"
        )
    full = lambda x: lax.full(shape, x, work)
    by_product = (rate > 0) & (rate < _SMALL_MEAN)
    by_rejection = (rate >= _SMALL_MEAN) & (rate < np.inf)
    # the rates that the other algorithm takes are replaced by some that end its loop soon
    counts = _knuth(key, shape, work, lax.select(by_product, rate, full(0)))
    key = random_clone_p.bind(key)  # of each number, one of the two is taken
    large = _ptrs(key, shape, work, lax.select(by_rejection, rate, full(1e4)))
    large = lax.select(rate < np.inf, large, full(np.inf))
    return lax.select(by_product, lax.convert_element_type(counts, dtype), lax.convert_element_type(large, dtype))


def _parameter_dtype(*parameters) -> np.dtype:
    """The float dtype to draw in: that of the widest parameter, or float32, as fewer bits would cut the tails."""
    types = [aval_of(p) for p in parameters]
    strong = [a.dtype for a in types if not a.weak_type] or [a.dtype for a in types]
    found = [d for d in strong if dtypes.is_inexact(d)] or strong
    width = max(dtypes.to_real_dtype(dtypes.to_inexact_dtype(d)).itemsize for d in found)
    return np.dtype(np.float64 if width > 4 else np.float32)


# ---- geometric ----


@sampler(dtype=int_dtype)
def geometric(key: ArrayLike, shape: tuple[Any, ...], dtype: np.dtype[Any], p: Array) -> Array:
    """The number of independent trials, each successful with probability `p`, up to the first success: 1, 2, ...

    Args:
      p: in (0, 1]; broadcasts to `shape`.

    Examples:

      >>> x = jax.random.geometric(jax.random.key(0), 0.5, (1000,))
      >>> bool(jnp.all(x >= 1))
      True
    """
    work = _parameter_dtype(p)
    u = unit_floats(key, shape, work)
    u = lax.max(u, lax.full(shape, dtypes.finfo(work).tiny, work))
    trials = lax.floor(lax.log(u) / lax.log1p(-broadcast_to(as_dtype(p, work), shape))) + 1
    return lax.convert_element_type(trials, dtype)


# ---- binomial ----


def _waiting_times(key, shape, dtype, n, p):
    """The number of successes in n trials, found by adding up waiting times, which are geometric."""
    log_failure = lax.log1p(-p)

    def step(state):
        key, successes, trials = state
        sub, key = split_keys(key, 2)
        u = unit_floats(sub, shape, dtype)
        trials = trials + lax.ceil(lax.log(u) / log_failure)
        return key, lax.select(trials <= n, successes + 1, successes), trials

    start = (key, lax.full(shape, 0, dtype), lax.full(shape, 0, dtype))
    return lax.while_loop(lambda s: _any(s[2] <= n), step, start)[1]


def _stirling_tail(k):
    """``log(k!) - log(sqrt(2 pi)) - (k + 1/2) log(k + 1) + (k + 1)``: ten values, then the series."""
    table = [
        math.lgamma(i + 1) - ((i + 0.5) * math.log(i + 1) - (i + 1) + 0.5 * math.log(2 * math.pi)) for i in range(10)
    ]
    inverse = 1 / (k + 1)
    square = inverse * inverse
    out = (1 / 12 - (1 / 360 - square / 1260) * square) * inverse
    for i, value in enumerate(table):
        shape, dtype = aval_of(k).shape, aval_of(k).dtype
        out = lax.select(lax.eq(k, lax.full(shape, i, dtype)), lax.full(shape, value, dtype), out)
    return out


def _btrs(key, shape, dtype, n, p):
    q = 1 - p
    deviation = lax.sqrt(n * p * q)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / q
    alpha = (2.83 + 5.1 / b) * deviation
    mode = lax.floor((n + 1) * p)

    def propose(u, v):
        us = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / us + b) * u + c)
        inside = (us >= 0.07) & (v <= v_r)
        outside = (k < 0) | (k > n)
        left = lax.log(v * alpha / (a / (us * us) + b))
        right = (
            (mode + 0.5) * lax.log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * lax.log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * lax.log(odds * (n - k + 1) / (k + 1))
            + _stirling_tail(mode)
            + _stirling_tail(n - mode)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        return k, inside | (~outside & (left <= right))

    return _transformed_rejection(key, shape, dtype, propose)


def binomials(key: ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], n: Array, p: Array) -> Array:
    """Binomial numbers, as floats; `n` and `p` broadcast to `shape`."""
    n, p = (broadcast_to(as_dtype(x, dtype), shape) for x in (n, p))
    full = lambda x: lax.full(shape, x, dtype)
    flipped = p >= 0.5
    q = lax.select(flipped, 1 - p, p)  # as many failures as the rarer outcome's successes
    valid = (n > 0) & (n < np.inf) & (q > 0) & (q <= 0.5)
    by_waiting = valid & (n * q <= _SMALL_MEAN)
    by_rejection = valid & ~by_waiting
    small = _waiting_times(key, shape, dtype, lax.select(by_waiting, n, full(0)), lax.select(by_waiting, q, full(0.5)))
    key = random_clone_p.bind(key)  # of each number, one of the two is taken
    large = _btrs(key, shape, dtype, lax.select(by_rejection, n, full(1e4)), lax.select(by_rejection, q, full(0.5)))
    out = lax.select(by_waiting, small, large)
    out = lax.select(flipped, n - out, out)
    # the certain cases, and parameters without a distribution
    none, every = (n >= 0) & ((p <= 0) | (n <= 0)), (n > 0) & (p >= 1)
    out = lax.select(none, full(0), lax.select(every, n, out))
    infinite = (n >= np.inf) & (p > 0)
    out = lax.select(infinite, full(np.inf), out)
    good = (n >= 0) & (p >= 0) & (p <= 1)
    return lax.select(good, out, full(np.nan))


def _binomial(key, shape, dtype, n, p):
    return lax.convert_element_type(binomials(key, shape, _parameter_dtype(p), n, p), dtype)


binomial: Final = sampler(
    _binomial,
    name="binomial",
    placement=False,
    doc="""Numbers of successes in `n` independent trials of probability `p`.

    Args:
      n: number of trials, a whole number; broadcasts to `shape`.
      p: in [0, 1]; broadcasts to `shape`. Where a parameter is out of its range the result is NaN.

    Examples:

      >>> x = jax.random.binomial(jax.random.key(0), n=10, p=0.5, shape=(1000,))
      >>> x.mean().round()
      Array(5., dtype=float32)
    """,
)


# ---- multinomial ----


@one_program(static=("shape", "dtype", "unroll"), everywhere=True)
def _multinomial(key, shape, dtype, unroll, n, p):
    batch, categories = shape[:-1], shape[-1]
    work = _parameter_dtype(n, p)
    p = broadcast_to(as_dtype(p, work), shape)
    rank = len(shape)
    columns = lax.transpose(p, (rank - 1, *range(rank - 1)))
    # the probability of each category relative to the sum of it and the following ones
    rest = lax.cumsum(columns, 0, reverse=True)
    zero, one = lax.full(columns.shape, 0, work), lax.full(columns.shape, 1, work)
    share = lax.select(rest > 0, columns / lax.select(rest > 0, rest, one), zero)
    share = lax.clamp(zero, share, one)
    keys = random_split_p.bind(key, impl=aval_of(key).dtype.implementation, shape=(categories,))

    def step(left, inputs):
        key, share = inputs
        drawn = binomials(key, batch, work, left, share)
        return left - drawn, drawn

    n = broadcast_to(as_dtype(n, work), batch)
    _, counts = lax.scan(step, n, (keys, share), unroll=unroll)
    counts = lax.transpose(counts, (*range(1, rank), 0))
    return counts if work == dtype else lax.convert_element_type(counts, dtype)


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: tuple[int, ...] | None = None,
    dtype: DTypeLike | None = None,
    unroll: int = 1,
) -> Array:
    """The number of times that each category is drawn in `n` independent draws.

    Each category in turn takes a binomial number of the draws that are left.

    Args:
      key: a single key.
      n: number of draws; array that broadcasts to the batch.
      p: probabilities of the categories along the last axis; the other axes broadcast to the batch.
      shape: of the batch, without the axis of the categories; default: the joint shape of `n` and ``p[..., 0]``.
      dtype: of the result; default: the default float.
      unroll: the number of categories to draw in one step of the loop over them.

    Returns:
      An array of shape ``(*batch, p.shape[-1])``.

    Examples:

      >>> counts = jax.random.multinomial(jax.random.key(0), 10., jnp.array([0.2, 0.8]))
      >>> counts.sum()
      Array(10., dtype=float32)
    """
    key, _ = single_key("multinomial", key)
    dtype = dtypes.default_float_dtype() if dtype is None else dtypes.explicit_dtype(dtype, "multinomial")
    n, p = (parameter("multinomial", x) for x in (n, p))
    n_shape, p_shape = aval_of(n).shape, aval_of(p).shape
    if not p_shape:
        raise ValueError("multinomial: p has an axis at least, that of the categories; got a scalar")
    batch = lax.broadcast_shapes(n_shape, p_shape[:-1]) if shape is None else joint_shape(shape, n)
    return _multinomial(key, joint_shape((*batch, p_shape[-1]), p), dtype, unroll, n, p)
