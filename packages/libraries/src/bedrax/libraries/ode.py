"""Ordinary differential equations: `jax.experimental.ode.odeint`.

The pair of Dormand and Prince (1980), of orders 5 and 4, with step control and dense output as in Hairer, Norsett and
Wanner, "Solving Ordinary Differential Equations I", II.4-6. Reverse mode solves the adjoint equation backward in time,
so that its memory does not grow with the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax, pytree
from bedrax.autodiff import closure_convert, custom_vjp, vjp
from bedrax.batching import vmap
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.numpy.flatten_util import ravel_pytree

__all__ = ["odeint"]

NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
WEIGHTS = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_DENSE = (
    -12715105075 / 11282082432,
    0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)


def _combine(weights, slopes):
    return sum(w * k for w, k in zip(weights, slopes, strict=True) if w)


def _step(f, y, slope, t, h):
    """The end of a step, its slope, the estimate of the error, and the coefficients between start and end."""
    slopes = [slope]
    for c, row in zip(NODES, WEIGHTS, strict=True):
        end = y + h * _combine(row, slopes)
        slopes.append(f(end, t + c * h))
    change = end - y
    bend = h * slope - change
    dense = jnp.stack([y, change, bend, change - h * slopes[-1] - bend, h * _combine(_DENSE, slopes)])
    return end, slopes[-1], h * _combine(ERROR, slopes), dense


def _between(dense, share):
    rest = 1 - share
    return dense[0] + share * (dense[1] + rest * (dense[2] + share * (dense[3] + rest * dense[4])))


def _size(x):
    return jnp.sqrt(jnp.mean(abs(x) ** 2))


def _first_step(f, y, slope, t, rtol, atol, hmax):
    """The first step (Hairer, Norsett and Wanner, II.4), from the sizes of the solution and its first two
    derivatives."""
    scale = atol + rtol * abs(y)
    d0, d1 = _size(y / scale), _size(slope / scale)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / jnp.where(d1 == 0, 1, d1))
    d2 = _size((f(y + h0.astype(t.dtype) * slope, t + h0) - slope) / scale) / h0
    most = jnp.maximum(d1, d2)
    h1 = jnp.where(most <= 1e-15, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / jnp.where(most == 0, 1, most)) ** 0.2)
    return jnp.minimum(jnp.minimum(100 * h0, h1), hmax).astype(t.dtype)


def _solve(f, y0, times, rtol, atol, mxstep, hmax):
    """Solutions at increasing `times`; `y0` is the solution at the first one."""
    slope = f(y0, times[0])
    h = _first_step(f, y0, slope, times[0], rtol, atol, hmax)
    dense = jnp.zeros((5, *y0.shape), y0.dtype).at[0].set(y0)
    start = (y0, slope, times[0], times[0], h, dense)

    def to_time(carry, target):
        def unfinished(state):
            n, (_, _, t, _, h, _) = state
            return (t < target) & (n < mxstep) & (h > 0)

        def advance(state):
            n, (y, slope, t, last, h, dense) = state
            h = jnp.minimum(h, hmax)
            new, new_slope, error, new_dense = _step(f, y, slope, t, h)
            ratio = _size(error / (atol + rtol * jnp.maximum(abs(y), abs(new))))
            accept = ratio <= 1
            factor = jnp.clip(0.9 * jnp.where(ratio == 0, 1e-10, ratio) ** -0.2, 0.2, jnp.where(accept, 10.0, 1.0))
            factor = jnp.where(jnp.isfinite(ratio), factor, 0.2)
            pick = lambda a, b: jnp.where(accept, a, b)
            # A step that no longer changes the time ends the search, with NaN.
            h_next = jnp.where(t + h == t, 0, h * factor.astype(h.dtype))
            return n + 1, (
                pick(new, y),
                pick(new_slope, slope),
                pick(t + h, t),
                pick(t, last),
                h_next,
                pick(new_dense, dense),
            )

        _, carry = lax.while_loop(unfinished, advance, (np.int32(0), carry))
        _, _, t, last, _, dense = carry
        length = jnp.where(t == last, 1, t - last)
        value = _between(dense, (target - last) / length)
        return carry, jnp.where(t >= target, value, jnp.nan)

    _, ys = lax.scan(to_time, start, times[1:])
    return jnp.concatenate([y0[None], ys])


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Array,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """The solution of ``dy/dt = func(y, t, *args)`` at given times.

    Args:
      func: its result has the structure of `y0`.
      y0: the solution at ``t[0]``; an array or a pytree of arrays.
      t: increasing times, ``[n]``.
      *args: pytrees of arrays; the result is differentiable with respect to them, to `y0` and to `t`.
      rtol, atol: bounds of the error of a step, relative and absolute.
      mxstep: the maximum number of steps between two times; if it does not suffice, the result is NaN.
      hmax: the longest step.

    Returns:
      A pytree with the structure of `y0`; its arrays have a leading axis of length n.

    Raises:
      TypeError: an argument is not an array.

    Examples:

      >>> from jax.experimental import ode

      >>> times = jnp.array([0., 1., 2.])
      >>> ode.odeint(lambda y, t, rate: -rate * y, jnp.array(1.), times, 0.5).round(3)
      Array([1.        , 0.60700005, 0.36800003], dtype=float32)
    """
    for leaf in pytree.tree_leaves((y0, t, *args)):
        if not hasattr(leaf, "dtype") and not isinstance(leaf, int | float | complex):
            raise TypeError(f"odeint: the arguments must be arrays, got {type(leaf)}; close over others in func.")
    y0 = pytree.tree_map(lambda x: jnp.asarray(x).astype(dtypes.to_inexact_dtype(jnp.asarray(x).dtype)), y0)
    flat, unravel = ravel_pytree(y0)
    t = jnp.asarray(t)
    t = t.astype(dtypes.to_inexact_dtype(t.dtype))
    converted, consts = closure_convert(func, y0, t[0], *args)

    def f(y, t, parameters):
        given, closed = parameters
        return ravel_pytree(converted(unravel(y), t, *given, *closed))[0].astype(y.dtype)

    limit = min(mxstep, np.iinfo(np.int32).max)
    run = _differentiable(f, float(rtol), float(atol), np.int32(limit), float(hmax))
    ys = run(flat, t, (tuple(args), tuple(consts)))
    return vmap(unravel)(ys)


def _differentiable(f, rtol, atol, mxstep, hmax):
    @custom_vjp
    def run(y0, t, parameters):
        return _solve(lambda y, t: f(y, t, parameters), y0, t, rtol, atol, mxstep, hmax)

    def forward(y0, t, parameters):
        ys = run(y0, t, parameters)
        return ys, (ys, t, parameters)

    def backward(residuals, ct):
        ys, t, parameters = residuals
        floats, others, join = _split_inexact(parameters)
        _, unravel = ravel_pytree((ys[0], ys[0], floats))

        def adjoint(state, s):
            """Backward in time s = -t: the solution, its cotangent, and those of the parameters."""
            y, y_bar, _ = unravel(state)
            slope, pull = vjp(lambda y, floats: f(y, -s, join(floats, others)), y, floats)
            y_dot, floats_dot = pull(y_bar)
            return ravel_pytree((-slope, y_dot, floats_dot))[0].astype(state.dtype)

        def interval(carry, i):
            y_bar, floats_bar = carry
            slope = f(ys[i], t[i], parameters)
            t_bar = jnp.real(jnp.sum(ct[i] * slope)).astype(t.dtype)
            start = ravel_pytree((ys[i], y_bar, floats_bar))[0]
            ends = _solve(adjoint, start, jnp.stack([-t[i], -t[i - 1]]), rtol, atol, mxstep, hmax)
            _, y_bar, floats_bar = unravel(ends[1])
            return (y_bar + ct[i - 1], floats_bar), t_bar

        empty = pytree.tree_map(jnp.zeros_like, floats)
        last = ys.shape[0] - 1
        start = (ct[last], empty)
        order = np.arange(last, 0, -1)
        (y_bar, floats_bar), t_bars = lax.scan(interval, start, order)
        # A change of t[0] moves the start along the solution, in the other direction.
        inner = y_bar - ct[0]
        first = -jnp.real(jnp.sum(inner * f(ys[0], t[0], parameters))).astype(t.dtype)
        t_bar = jnp.concatenate([first[None], jnp.flip(t_bars)])
        return y_bar, t_bar, join(floats_bar, [_no_cotangent(x) for x in others])

    run.defvjp(forward, backward)
    return run


def _no_cotangent(x):
    return np.zeros(jnp.shape(x), dtypes.float0)


def _split_inexact(tree):
    """The inexact leaves of a pytree, the other ones, and the function that joins them."""
    leaves, structure = pytree.tree_flatten(tree)
    leaves = [jnp.asarray(x) for x in leaves]
    which = [dtypes.is_inexact(x.dtype) for x in leaves]

    def join(floats, others):
        floats, others = iter(floats), iter(others)
        return pytree.tree_unflatten(structure, [next(floats if w else others) for w in which])

    floats = [x for x, w in zip(leaves, which, strict=True) if w]
    others = [x for x, w in zip(leaves, which, strict=True) if not w]
    return floats, others, join
