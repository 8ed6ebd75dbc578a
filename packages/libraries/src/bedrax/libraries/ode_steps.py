"""The parts of a solver of differential equations: the other names of `jax.experimental.ode` besides `odeint`.

The pair of Dormand and Prince (1980) with the interpolant of Shampine (1986): a polynomial of degree 4 through the
values and slopes at both ends, and the value in the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bedrax.numpy as jnp
from bedrax.core.array import Array
from bedrax.core.typing import ArrayLike
from bedrax.libraries.ode import ERROR, NODES, WEIGHTS
from bedrax.numpy.flatten_util import ravel_pytree

__all__ = [
    "abs2",
    "fit_4th_order_polynomial",
    "initial_step_size",
    "interp_fit_dopri",
    "mean_error_ratio",
    "optimal_step_size",
    "ravel_first_arg",
    "ravel_first_arg_",
    "runge_kutta_step",
]

# Half a step: the value in the middle, as a combination of the slopes.
_MIDDLE = (
    6025192743 / 30085553152 / 2,
    0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)


def ravel_first_arg(f: Callable[..., Any], unravel: Callable[..., Any], debug_info: Any = None) -> Callable[..., Any]:
    """``f(y, *args)`` of pytrees as a function of a vector `y`, with a vector as result.

    Args:
      unravel: converts a vector to the first argument.
      debug_info: names for messages; the names of the function are used.

    Examples:

      >>> from jax.experimental import ode

      >>> from jax.flatten_util import ravel_pytree
      >>> state = {"place": jnp.array([1., 2.]), "speed": jnp.array(3.)}
      >>> def moved(state, t):
      ...     return {"place": state["place"] + t * state["speed"], "speed": state["speed"]}
      ...
      >>> vector, unravel = ravel_pytree(state)
      >>> ode.ravel_first_arg(moved, unravel)(vector, 2.)
      Array([7., 8., 3.], dtype=float32)
    """
    return lambda y, *args: ravel_pytree(f(unravel(y), *args))[0]


def ravel_first_arg_(fun: Any, unravel: Callable[..., Any]) -> Any:
    """`ravel_first_arg` of a `WrappedFun`; the result is a `WrappedFun`, too.

    Args:
      fun: a `WrappedFun` (`jax.extend.linear_util`) whose first argument and result are pytrees of one structure.
      unravel: from a vector to that pytree, as `ravel_pytree` returns it.

    Returns:
      The function with a vector as its first argument and as its result.

    Examples:

      >>> from jax.experimental import ode

      >>> from jax.extend.linear_util import wrap_init
      >>> from jax.flatten_util import ravel_pytree
      >>> vector, unravel = ravel_pytree((jnp.array([1., 2.]), jnp.array(3.)))
      >>> fun = wrap_init(lambda pair, factor: (factor * pair[0], pair[1]))
      >>> ode.ravel_first_arg_(fun, unravel).call_wrapped(vector, 10.)
      Array([10., 20.,  3.], dtype=float32)
    """
    return fun.wrap(lambda inner, unravel, y, *args: ravel_first_arg(inner, unravel)(y, *args), (unravel,), None)


def runge_kutta_step(
    func: Callable[..., Any], y0: ArrayLike, f0: ArrayLike, t0: ArrayLike, dt: ArrayLike
) -> tuple[Any, ...]:
    """One step of ``dy/dt = func(y, t)``.

    Args:
      y0, f0: the solution at `t0`, and its slope; ``[n]``.
      dt: the length of the step.

    Returns:
      (solution and slope at the end, the estimate of the error, the slopes of all stages ``[7, n]``).

    Examples:

      >>> from jax.experimental import ode

      >>> def slope(y, t):
      ...     return -y
      ...
      >>> y0 = jnp.array([1., 2.])
      >>> y1, slope1, error, slopes = ode.runge_kutta_step(slope, y0, slope(y0, 0.), 0., 0.5)
      >>> print(y1.round(3), (y0 * np.exp(-0.5)).round(3))
      [0.607 1.213] [0.607 1.213]
      >>> bool(jnp.all(jnp.abs(error) < 1e-3)), slopes.shape, bool(jnp.all(slopes[-1] == slope1))
      (True, (7, 2), True)
    """
    slopes = [f0]
    for node, row in zip(NODES, WEIGHTS, strict=True):
        y1 = y0 + dt * sum(w * k for w, k in zip(row, slopes, strict=True))
        slopes.append(func(y1, t0 + dt * node))
    error = dt * sum(w * k for w, k in zip(ERROR, slopes, strict=True))
    return y1, slopes[-1], error, jnp.stack(slopes)


def fit_4th_order_polynomial(
    y0: ArrayLike, y1: ArrayLike, y_mid: ArrayLike, dy0: ArrayLike, dy1: ArrayLike, dt: ArrayLike
) -> tuple[Any, ...]:
    """The polynomial in the fraction of a step, highest power first, from values at its ends and in the middle, and
    slopes.

    Args:
      y0, y1, y_mid: values at the start, at the end, and in the middle; ``[n]`` or scalars.
      dy0, dy1: slopes (in time, not in fractions) at the start and at the end.
      dt: the length of the step.

    Returns:
      five coefficients, each of the shape of `y0`: ``jnp.polyval`` takes them, with 0 for the start and 1 for the end.

    Examples:

      >>> from jax.experimental import ode

      >>> def f(t):
      ...     return t**4 - t
      ...
      >>> start, end = 1., 3.
      >>> slopes = 4 * start**3 - 1, 4 * end**3 - 1
      >>> p = ode.fit_4th_order_polynomial(f(start), f(end), f(2.), *slopes, end - start)
      >>> float(np.polyval(p, 0.25)), f(1.5)
      (3.5625, 3.5625)
    """
    s0, s1 = dt * dy0, dt * dy1
    return (
        -2 * s0 + 2 * s1 - 8 * y0 - 8 * y1 + 16 * y_mid,
        5 * s0 - 3 * s1 + 18 * y0 + 14 * y1 - 32 * y_mid,
        -4 * s0 + s1 - 11 * y0 - 5 * y1 + 16 * y_mid,
        s0,
        y0,
    )


def interp_fit_dopri(y0: ArrayLike, y1: ArrayLike, k: Array, dt: ArrayLike) -> Array:
    """Return the polynomial that interpolates a step of `runge_kutta_step`.

    Args:
      y0, y1: the solution at the start and at the end of the step, ``[n]``.
      k: the slopes of all stages, ``[7, n]``, as `runge_kutta_step` returns them.
      dt: the length of the step, a scalar.

    Returns:
      The coefficients of `fit_4th_order_polynomial`, ``[5, n]``, highest power first.

    Examples:

      >>> from jax.experimental import ode

      >>> def slope(y, t):
      ...     return -y
      ...
      >>> y0, step = jnp.array([1., 2.]), 0.5
      >>> y1, _, _, slopes = ode.runge_kutta_step(slope, y0, slope(y0, 0.), 0., step)
      >>> halfway = jnp.polyval(ode.interp_fit_dopri(y0, y1, slopes, step), 0.5)
      >>> print(halfway.round(3), (y0 * np.exp(-0.25)).round(3))
      [0.779 1.558] [0.779 1.558]
    """
    middle = y0 + dt * sum(w * slope for w, slope in zip(_MIDDLE, k, strict=True))
    return jnp.asarray(fit_4th_order_polynomial(y0, y1, middle, k[0], k[-1], dt))


def abs2(x: ArrayLike) -> Array:
    """The square of the absolute value: real, also for complex `x`.

    Examples:

      >>> from jax.experimental import ode

      >>> ode.abs2(jnp.array([3. + 4.j, 2.j]))
      Array([25.,  4.], dtype=float32)
    """
    return x.real**2 + x.imag**2 if jnp.iscomplexobj(x) else x**2


def mean_error_ratio(error_estimate: ArrayLike, rtol: float, atol: float, y0: ArrayLike, y1: ArrayLike) -> Array:
    """The root mean square of errors in units of the tolerance. A step is accepted if it is at most 1.

    Args:
      error_estimate: the error of each component; ``[n]``.
      rtol, atol: the tolerance of each component is ``atol + rtol * max(abs(y0), abs(y1))``.
      y0, y1: the solution at both ends of the step; ``[n]``.

    Examples:

      >>> from jax.experimental import ode

      >>> error, y0, y1 = jnp.array([2e-3, 2e-3]), jnp.ones(2), jnp.ones(2)
      >>> print(ode.mean_error_ratio(error, rtol=1e-3, atol=1e-3, y0=y0, y1=y1).round(4))
      1.0
      >>> print(ode.mean_error_ratio(error, rtol=0., atol=1e-3, y0=y0, y1=y1).round(4))
      2.0
    """
    tolerated = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(abs2(error_estimate / tolerated)))


def optimal_step_size(
    last_step: float,
    mean_error_ratio: float,
    safety: float = 0.9,
    ifactor: float = 10.0,
    dfactor: float = 0.2,
    order: float = 5.0,
) -> Array:
    """The length of the next step, from that of the last one and its error.

    Args:
      last_step, mean_error_ratio: scalars; see the function `mean_error_ratio`.
      safety: the factor relative to the longest sufficient step.
      ifactor, dfactor: the greatest and the least ratio to the length of the last step. After a step with a sufficient
        accuracy, the least ratio is 1.
      order: the error is proportional to this power of the length.

    Examples:

      >>> from jax.experimental import ode

      >>> for ratio in (0., 0.5, 1., 32., 1e9):
      ...     print(ratio, ode.optimal_step_size(1., jnp.array(ratio)).round(3))
      0.0 10.0
      0.5 1.034
      1.0 0.9
      32.0 0.45
      1000000000.0 0.2
    """
    least = jnp.where(mean_error_ratio < 1, 1.0, dfactor)
    factor = safety * jnp.where(mean_error_ratio == 0, 1.0, mean_error_ratio) ** (-1 / order)
    return last_step * jnp.where(mean_error_ratio == 0, ifactor, jnp.clip(factor, least, ifactor))


def initial_step_size(
    fun: Callable[..., Any], t0: float, y0: ArrayLike, order: int, rtol: float, atol: float, f0: ArrayLike
) -> Array:
    """The length of the first step: Hairer, Norsett and Wanner, "Solving Ordinary Differential Equations I", II.4.

    Args:
      fun: ``(y, t) -> dy/dt``.
      t0, y0, f0: the start: time, solution and slope ``[n]``.
      order: the order of the method.
      rtol, atol: the tolerance; see `mean_error_ratio`.

    Examples:

      >>> from jax.experimental import ode

      >>> def first_step(rate):
      ...     return float(ode.initial_step_size(lambda y, t: -rate * y, 0., y0, 4, 1e-3, 1e-3, -rate * y0))
      ...
      >>> y0 = jnp.array([1., 2.])
      >>> round(first_step(1.), 3), round(first_step(100.), 3)  # what falls fast needs short steps
      (0.104, 0.01)
    """
    scale = atol + jnp.abs(y0) * rtol
    d0, d1 = jnp.linalg.norm(y0 / scale), jnp.linalg.norm(f0 / scale)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / jnp.where(d1 == 0, 1.0, d1))
    d2 = jnp.linalg.norm((fun(y0 + h0 * f0, t0 + h0) - f0) / scale) / h0
    most = jnp.maximum(d1, d2)
    small = (d1 <= 1e-15) & (d2 <= 1e-15)
    h1 = jnp.where(small, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / jnp.where(small, 1.0, most)) ** (1 / (order + 1)))
    return jnp.minimum(100 * h0, h1)
