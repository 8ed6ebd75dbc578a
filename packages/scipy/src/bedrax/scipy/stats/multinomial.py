"""The multinomial distribution."""

from __future__ import annotations

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import array, inexact
from bedrax.scipy.defining import widened
from bedrax.scipy.special import gammaln, xlogy

__all__ = ["logpmf", "pmf"]


def _logpmf(p, x, n):
    # Counts in a narrow dtype may not add up exactly.
    x, n = (lax.convert_element_type(v, p.dtype) for v in (x, n))
    inside = (jnp.sum(x, axis=-1) == n) & jnp.all(x >= 0, axis=-1)
    counts = jnp.where(inside[..., None], x, 0)
    out = gammaln(n + 1) + jnp.sum(xlogy(counts, p) - gammaln(counts + 1), axis=-1)
    return jnp.where(inside, out, -jnp.inf)


def _of_arguments(name: str, formula, x, n, p) -> Array:
    x, n = (array(name, v, i) for i, v in enumerate((x, n)))
    (p, *_) = inexact(name, p, *((x,) if dtypes.is_inexact(x.dtype) else ()))  # counts are no operands of promotion
    return widened(lambda p: formula(p, x, n))(p)


@one_program(everywhere=True)
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability of the counts `x`.

    Args:
      x: counts, with the categories along the last axis; -inf where they do not add up to `n`.
      n: the number of trials.
      p: the probabilities of the categories, along the last axis.

    Examples:

      >>> jax.scipy.stats.multinomial.logpmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5])).round(3)
      Array(-0.98100007, dtype=float32)
    """
    return _of_arguments("multinomial.logpmf", _logpmf, x, n, p)


@one_program(everywhere=True)
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability of the counts `x`; arguments as for `logpmf`.

    Examples:

      >>> jax.scipy.stats.multinomial.pmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5])).round(3)
      Array(0.37500003, dtype=float32)
    """
    return _of_arguments("multinomial.pmf", lambda *args: jnp.exp(_logpmf(*args)), x, n, p)
