"""NumPy evaluation of the window primitives: one pass per position inside the window."""

from __future__ import annotations

from typing import Final

import numpy as np

from bedrax.lax.primitives import elementwise, reductions
from bedrax.lax.primitives import windows as p
from bedrax.lax.primitives.windows import Windows
from bedrax.numpy_backend.numbers import narrow
from bedrax.numpy_backend.rules.reductions import accumulator, elementwise_program
from bedrax.numpy_backend.rules.shaping import _pad
from bedrax.numpy_backend.tables import numpy_rules

rule: Final = numpy_rules.rule

_UFUNCS = {p.reduce_window_sum_p: np.add, p.reduce_window_max_p: np.maximum, p.reduce_window_min_p: np.minimum}


def _slices(x: np.ndarray, fill, windows: Windows, out_shape):
    """Yield, for each position inside a window, the elements there of all windows."""
    padded = _pad(x, fill, padding_config=windows.pad_config())
    for offset in windows.offsets():
        start, limit, stride = windows.slices(offset, out_shape)
        yield padded[tuple(map(slice, start, limit, stride))]


def _reduction(prim):
    ufunc = _UFUNCS[prim]

    def evaluate(x, **params):
        windows = Windows(**params)
        out_shape = windows.output_shape(x.shape)
        wide = accumulator(x.dtype)
        fill = np.asarray(reductions.identities[p.reduction_of[prim]](x.dtype)).astype(wide)
        out = np.broadcast_to(fill, out_shape)
        with np.errstate(all="ignore"):
            for part in _slices(x.astype(wide, copy=False), fill, windows, out_shape):
                out = ufunc(out, part)
        return narrow(out, x.dtype)

    numpy_rules.add(prim, evaluate)


for _prim in _UFUNCS:
    _reduction(_prim)


@rule(p.reduce_window_p)
def _reduce_window(*args, jaxpr, **params):
    half = len(args) // 2
    windows = Windows(**params)
    out_shape = windows.output_shape(args[0].shape)
    combine = elementwise_program(jaxpr)
    out = [np.broadcast_to(init, out_shape) for init in args[half:]]
    for parts in zip(*(_slices(x, init, windows, out_shape) for x, init in zip(args[:half], args[half:]))):
        out = combine(*out, *parts)
    return [np.asarray(x, order="C") for x in out]


def _selected(operand: np.ndarray, keep, windows: Windows, out_shape) -> np.ndarray:
    """Return the flat index of the element that each window selects; -1 if there is none."""
    where = np.arange(operand.size).reshape(operand.shape)
    best, index = None, None
    pairs = zip(
        _slices(operand, np.zeros((), operand.dtype), windows, out_shape), _slices(where, -1, windows, out_shape)
    )
    for value, place in pairs:
        if best is None:
            best, index = value, place
            continue
        take = (place >= 0) & ~((index >= 0) & keep(best, value))
        best, index = np.where(take, value, best), np.where(take, place, index)
    return index


_KEEP = {elementwise.ge_p: np.greater_equal, elementwise.le_p: np.less_equal}


@rule(p.select_and_scatter_add_p)
def _select_and_scatter_add(source, operand, *, select_prim, **params):
    index = _selected(operand, _KEEP[select_prim], Windows.of(**params), source.shape)
    total = np.zeros(operand.size, accumulator(source.dtype))
    chosen = index >= 0
    np.add.at(total, index[chosen], source[chosen].astype(total.dtype))
    return narrow(total.reshape(operand.shape), source.dtype)


@rule(p.select_and_gather_add_p)
def _select_and_gather_add(tangents, operand, *, select_prim, **params):
    windows = Windows(**params)
    index = _selected(operand, _KEEP[select_prim], windows, windows.output_shape(operand.shape))
    flat = np.append(tangents.reshape(-1), np.zeros(1, tangents.dtype))  # index -1 finds the zero
    return flat[index]


@rule(p.select_and_scatter_p)
def _select_and_scatter(operand, source, init_value, *, select_jaxpr, scatter_jaxpr, **params):
    select, scatter = elementwise_program(select_jaxpr), elementwise_program(scatter_jaxpr)
    keep = lambda x, y: select(np.asarray(x), np.asarray(y))[0]
    index = _selected(operand, keep, Windows.of(**params), source.shape)
    out = np.full(operand.size, init_value, operand.dtype)
    for i, value in zip(index.reshape(-1), source.reshape(-1)):
        if i >= 0:
            out[i] = scatter(np.asarray(out[i]), np.asarray(value))[0]
    return out.reshape(operand.shape)
