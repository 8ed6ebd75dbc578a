"""Derivatives of the window primitives.

The maximum of a window has the tangent of its selected element (the first one that attains it), so
max pooling's transpose scatters cotangents to where the selected elements were.
"""

import numpy as np

from bedrax.autodiff.forward import jvp_flat
from bedrax.autodiff.tables import absent, jvp, jvp_rules, linear, not_transposable
from bedrax.batching.rules.reductions import over_arrays
from bedrax.core import dims
from bedrax.core.avals import aval_of
from bedrax.lax.filling import zeros_like
from bedrax.lax.primitives import windows as p
from bedrax.lax.primitives.elementwise import ge_p, le_p, select
from bedrax.lax.primitives.placement import placed_as
from bedrax.lax.primitives.shaping import broadcast_in_dim, pad, reshape
from bedrax.lax.primitives.windows import Windows


def _sum_transpose(ct, x, **params):
    return [placed_as(x.aval, _spread_sums, ct, shape=x.aval.shape, windows=Windows(**params))]


def _spread_sums(ct, *, shape, windows):
    """A window sum again: of the cotangents at distance `stride`, over the reversed windows."""
    w, config = windows, []
    if w.apart():
        return _spread(ct, shape, w)
    for n, m, size, stride, (low, _), base, dilation in zip(shape, aval_of(ct).shape, *w):
        span = (size - 1) * dilation
        before = span - low
        after = dims.dilate_dim(n, base) + span - dims.dilate_dim(m, stride) - before
        config.append((before, after, stride - 1))
    spread = pad(ct, np.zeros((), aval_of(ct).dtype), config)
    none = ((0, 0),) * len(config)
    reverse = Windows(w.window_dimensions, w.base_dilation, none, (1,) * len(config), w.window_dilation)
    return p.reduce_window_sum_p.bind(spread, **reverse._asdict())


def _spread(ct, shape, w: Windows):
    """Each element of `ct` at all positions of its window, for windows that do not overlap."""
    doubled, places, gaps = [], [], []
    for m, size, stride in zip(aval_of(ct).shape, w.window_dimensions, w.window_strides):
        places.append(len(doubled))
        doubled += [m] if stride == 1 else [m, size]
        gaps += [(0, 0, 0)] if stride == 1 else [(0, 0, 0), (0, stride - size, 0)]
    zero = np.zeros((), aval_of(ct).dtype)
    spread = pad(broadcast_in_dim(ct, tuple(doubled), tuple(places)), zero, gaps)
    spread = reshape(spread, [m * stride for m, stride in zip(aval_of(ct).shape, w.window_strides)])
    ends = zip(shape, aval_of(spread).shape, w.padding)
    return pad(spread, zero, [(-low, n - m + low, 0) for n, m, (low, _) in ends])


linear(p.reduce_window_sum_p, _sum_transpose)


def _extreme(select_prim):
    return lambda t, ans, x, **params: p.select_and_gather_add(t, x, select_prim, Windows(**params))


jvp(p.reduce_window_max_p, _extreme(ge_p))
jvp(p.reduce_window_min_p, _extreme(le_p))
not_transposable(p.reduce_window_p)


def _gather_transpose(ct, tangents, operand, *, select_prim, **params):
    windows = Windows(**params)
    if max((*windows.base_dilation, *windows.window_dilation), default=1) == 1:
        return [p.select_and_scatter_add(ct, operand, select_prim, windows), None]
    # StableHLO's scatter has no dilation: each cotangent goes to one of the positions in its window.
    zeros = zeros_like(ct)
    parts = [select(mask, ct, zeros) for mask in p.selected_masks(operand, select_prim, windows)]
    return [p.add_slices(parts, windows, aval_of(operand).shape), None]


def _scatter_transpose(ct, source, operand, *, select_prim, **params):
    return [p.select_and_gather_add(ct, operand, select_prim, Windows.of(**params)), None]


# Both selections are linear in their first operand and piecewise constant in the second.
jvp(
    p.select_and_gather_add_p,
    lambda t, ans, x, operand, **params: p.select_and_gather_add_p.bind(t, operand, **params),
    None,
    transpose=_gather_transpose,
)
jvp(
    p.select_and_scatter_add_p,
    lambda t, ans, source, operand, **params: p.select_and_scatter_add_p.bind(t, operand, **params),
    None,
    transpose=_scatter_transpose,
)


@jvp_rules.rule(p.reduce_window_p)
def _reduce_window_jvp(primals, tangents, *, jaxpr, **params):
    """Folding slices one after the other is differentiable step by step."""
    combine = over_arrays(jaxpr)
    half = len(primals) // 2
    return jvp_flat(lambda *xs: p.fold_windows(combine, xs[:half], xs[half:], Windows(**params)), primals, tangents)


absent(p.select_and_scatter_p, why="its selection and combination are arbitrary functions; use select_and_scatter_add")
