"""`jax.scipy.optimize`: minimization of functions by their gradients.

The quasi-Newton method BFGS with a line search for the strong Wolfe conditions (Nocedal and Wright, "Numerical
Optimization", 2nd ed., algorithms 6.1, 3.5 and 3.6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.autodiff import value_and_grad
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import inexact

__all__ = ["OptimizeResults", "minimize"]

_OPTIONS = ("maxiter", "norm", "gtol", "line_search_maxiter")
CONVERGED, OUT_OF_STEPS, LINE_SEARCH_FAILED = 0, 1, 3


class OptimizeResults(NamedTuple):
    """Result of `minimize`.

    Attributes:
      x: the minimum found.
      success: whether the gradient is small enough.
      status: 0: the gradient is small enough; 1: there were too many steps; 3: the line search failed, or the gradient
        is NaN.
      fun, jac: value and gradient at `x`.
      hess_inv: the approximation of the inverse of the Hessian.
      nfev, njev: the numbers of computed values and gradients.
      nit: the number of steps.

    Examples:

      >>> import jax.scipy.optimize

      >>> result = jax.scipy.optimize.minimize(lambda x: jnp.sum(x ** 2), jnp.ones(2), method="BFGS")
      >>> isinstance(result, jax.scipy.optimize.OptimizeResults), bool(result.success)
      (True, True)
    """

    # The public fields, whose names callers use.
    x: Array
    success: bool | Array
    status: int | Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: int | Array
    njev: int | Array
    nit: int | Array


class _Point(NamedTuple):
    """A point of the line: step, value, slope, gradient."""

    step: Array
    value: Array
    slope: Array
    gradient: Array


def _choose(condition, x, y):
    return type(x)(*(jnp.where(condition, a, b) for a, b in zip(x, y, strict=True)))


def _inside(low: _Point, high: _Point):
    """The minimum of the cubic through two points and their slopes (equation 3.59), kept off the ends."""
    gap = high.step - low.step
    safe_gap = jnp.where(gap == 0, 1, gap)
    d1 = low.slope + high.slope - 3 * (low.value - high.value) / -safe_gap
    square = d1 * d1 - low.slope * high.slope
    d2 = jnp.sign(gap) * jnp.sqrt(jnp.maximum(square, 0))
    divisor = high.slope - low.slope + 2 * d2
    trial = high.step - gap * (high.slope + d2 - d1) / jnp.where(divisor == 0, 1, divisor)
    first, last = low.step + 0.1 * gap, high.step - 0.1 * gap
    good = (square >= 0) & (divisor != 0) & ((trial - first) * (last - trial) >= 0)
    return jnp.where(good, trial, low.step + 0.5 * gap)


def _line_search(along: Callable, start: _Point, first_step, limit: int):
    """A step with enough decrease and a flat enough slope.

    The state is the trial step, the best point so far (`low`), the other end (`high`), and the phase of
    the search: extending the interval (0), shrinking it (1), done (2).
    """
    enough, flat = 1e-4, 0.9

    def unfinished(state):
        k, phase, *_ = state
        return (k < limit) & (phase < 2)

    def step(state):
        k, phase, trial, low, high = state
        new = along(trial)
        failed = ~(new.value <= start.value + enough * new.step * start.slope)  # NaN fails
        worse = failed | (new.value >= low.value)
        done = ~worse & (abs(new.slope) <= -flat * start.slope)
        extending = phase == 0
        worse = jnp.where(extending, failed | ((new.value >= low.value) & (k > 0)), worse)
        done = ~worse & done
        turned = jnp.where(extending, new.slope >= 0, new.slope * (high.step - low.step) >= 0)
        # Not worse: the new point is the best; the interval ends at the old best point if the slope changed sign.
        next_low = _choose(worse, low, new)
        next_high = _choose(worse, new, _choose(turned, low, high))
        go_on = extending & ~worse & ~turned
        trial = jnp.where(go_on, 2 * new.step, _inside(next_low, next_high))
        return k + 1, jnp.where(done, 2, jnp.where(go_on, 0, 1)), trial, next_low, next_high

    init = (np.int32(0), jnp.asarray(0), jnp.asarray(first_step, start.value.dtype), start, start)
    k, phase, _, best, _ = lax.while_loop(unfinished, step, init)
    # Without the second condition, a step that decreases the value still counts as found.
    return best, (phase == 2) | (best.step > 0), k


class _State(NamedTuple):
    k: Array
    x: Array
    value: Array
    gradient: Array
    inverse: Array
    evaluations: Array
    failed: Array


def _bfgs(fun: Callable, x0, *, maxiter=None, norm=np.inf, gtol=1e-5, line_search_maxiter=10) -> OptimizeResults:
    n = x0.shape[0]
    limit = 200 * n if maxiter is None else maxiter
    both = value_and_grad(fun)
    dot = lambda x, y: jnp.dot(x, y, precision="highest")
    size = lambda g: jnp.linalg.norm(g, ord=norm)
    eye = jnp.eye(n, dtype=x0.dtype)

    def unfinished(s: _State):
        return (s.k < limit) & ~s.failed & (size(s.gradient) > gtol)

    def step(s: _State):
        direction = -dot(s.inverse, s.gradient)
        slope = dot(s.gradient, direction)

        def along(t):
            value, gradient = both(s.x + t * direction)
            return _Point(t, value, dot(gradient, direction), gradient)

        # The first direction has no scale yet.
        first = jnp.where(s.k == 0, jnp.minimum(1, 1 / jnp.linalg.norm(s.gradient)), 1)
        start = _Point(jnp.zeros_like(s.value), s.value, slope, s.gradient)
        best, moved, evaluations = _line_search(along, start, first, line_search_maxiter)
        ds, dg = best.step * direction, best.gradient - s.gradient
        curvature = dot(ds, dg)
        usable = curvature > 0
        rho = jnp.where(usable, 1 / jnp.where(usable, curvature, 1), 0)
        left = eye - rho * ds[:, None] * dg[None, :]
        updated = dot(left, dot(s.inverse, left.T)) + rho * ds[:, None] * ds[None, :]
        return _State(
            s.k + 1,
            s.x + ds,
            best.value,
            best.gradient,
            jnp.where(usable, updated, s.inverse),
            s.evaluations + evaluations,
            ~moved,
        )

    value, gradient = both(x0)
    count = lambda i: jnp.asarray(i, np.int32)
    start = _State(count(0), x0, value, gradient, eye, count(1), jnp.asarray(False))
    s = lax.while_loop(unfinished, step, start)
    success = size(s.gradient) <= gtol
    lost = s.failed | jnp.isnan(size(s.gradient))
    status = jnp.where(success, CONVERGED, jnp.where(lost, LINE_SEARCH_FAILED, OUT_OF_STEPS))
    return OptimizeResults(s.x, success, status, s.value, s.gradient, s.inverse, s.evaluations, s.evaluations, s.k)


def minimize(
    fun: Callable[..., Array],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A local minimum of a differentiable function.

    Args:
      fun: ``fun(x, *args)`` is a scalar.
      x0: the starting point, of shape ``[n]``.
      args: further arguments of `fun`.
      method: ``"BFGS"``.
      tol: the bound of the gradient's norm, as the option ``gtol``.
      options: ``gtol`` (1e-5), ``norm`` (of the gradient; infinity), ``maxiter`` (200 n), ``line_search_maxiter`` (10).

    Raises:
      TypeError: `args` is not a tuple, or an option is unknown.
      ValueError: another method.

    Examples:

      >>> import jax.scipy.optimize

      >>> def loss(x):
      ...     return jnp.sum((x - jnp.array([1., 2.])) ** 2)
      ...
      >>> result = jax.scipy.optimize.minimize(loss, jnp.zeros(2), method="BFGS")
      >>> result.x.round(3)
      Array([1., 2.], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args is a tuple, got {args!r}")
    if method.lower() == "l-bfgs-experimental-do-not-rely-on-this":
        raise NotImplementedError("minimize: the experimental method L-BFGS is not implemented; use method='BFGS'.")
    if method.lower() != "bfgs":
        raise ValueError(f"minimize: the method is 'BFGS', got {method!r}")
    (x0,) = inexact("minimize", x0)
    if x0.ndim != 1:
        raise ValueError(f"minimize: x0 must have one axis, got shape {x0.shape}; ravel it, and reshape inside of fun.")
    if dtypes.is_complex(x0.dtype):
        raise TypeError("minimize: x0 must be real")
    options = dict(options or {})
    unknown = set(options) - set(_OPTIONS)
    if unknown:
        raise TypeError(f"minimize: the options of 'BFGS' are {', '.join(_OPTIONS)}, got {', '.join(sorted(unknown))}")
    if tol is not None:
        options["gtol"] = tol
    return _bfgs(lambda x: fun(x, *args), x0, **options)
