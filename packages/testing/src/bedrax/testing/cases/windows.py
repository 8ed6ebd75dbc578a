"""Records of the window primitives."""

from __future__ import annotations

import itertools
import math

import numpy as np

from bedrax.lax.primitives import elementwise as e
from bedrax.lax.primitives import windows as p
from bedrax.testing.records import OpCase, arg, into

CASES: list[OpCase] = []
_add = into(CASES)


def _loop(reduce, init, window, strides, padding, base=None, dilation=None):
    """The definition, element by element."""
    ones = (1,) * len(window)
    base, dilation = base or ones, dilation or ones

    def oracle(x):
        sizes = [(n - 1) * b + 1 if n else 0 for n, b in zip(x.shape, base)]
        spans = [(n - 1) * d + 1 for n, d in zip(window, dilation)]
        pads = padding
        if padding == "SAME":
            outs = [-(-n // s) for n, s in zip(sizes, strides)]
            totals = [max(0, (o - 1) * s + w - n) for o, s, w, n in zip(outs, strides, spans, sizes)]
            pads = [(t // 2, t - t // 2) for t in totals]
        elif padding == "VALID":
            pads = [(0, 0)] * len(sizes)
        shape = [max(0, (lo + n + hi - w) // s + 1) for (lo, hi), n, w, s in zip(pads, sizes, spans, strides)]
        out = np.empty(shape, x.dtype)
        for at in np.ndindex(*shape):
            values = [init]
            for offset in itertools.product(*map(range, window)):
                place = [a * s + o * d - lo for a, s, o, d, (lo, _) in zip(at, strides, offset, dilation, pads)]
                if all(i >= 0 and i % b == 0 and i // b < n for i, b, n in zip(place, base, x.shape)):
                    values.append(x[tuple(i // b for i, b in zip(place, base))])
            out[at] = reduce(np.array(values))
        return out

    return oracle


_GEOMETRIES = {
    "valid": ((2, 2), (1, 1), "VALID"),
    "same": ((3, 2), (2, 1), "SAME"),
    "strided": ((2, 3), (2, 2), ((1, 0), (2, 1))),
    "dilated": ((2, 2), (1, 2), ((0, 1), (1, 0)), (2, 1), (1, 2)),
    "cropped": ((2, 1), (1, 1), ((-1, 0), (0, -1))),
    "none": ((9, 2), (1, 2), "VALID"),
}
_KNOWN = (
    (p.reduce_window_sum_p, e.add, 0, np.sum),
    (p.reduce_window_max_p, e.max, -np.inf, np.max),
    (p.reduce_window_min_p, e.min, np.inf, np.min),
)
for _prim, _combine, _init, _reduce in _KNOWN:
    for _name, _geometry in _GEOMETRIES.items():
        _add(
            _prim,
            _name,
            lambda x, c=_combine, i=_init, g=_geometry: p.reduce_window(x, i, c, *g),
            [arg((5, 6), distinct=True)],
            _loop(_reduce, _init, *_geometry),
        )
    _add(
        _prim,
        "bf16",
        lambda x, c=_combine, i=_init: p.reduce_window(x, i, c, (3,), (1,), "VALID"),
        [arg((6,), "bfloat16")],
        lambda x, r=_reduce: [r(x[i : i + 3].astype("f")) for i in range(4)],
        grad=(),
    )
    _add(
        _prim,
        "large",
        lambda x, c=_combine, i=_init: p.reduce_window(x, i, c, (35,), (3,), ((0, 2),)),
        [arg((45,), distinct=True)],
        _loop(_reduce, _init, (35,), (3,), ((0, 2),)),
        rtol=1e-5,
    )
    _add(
        _prim,
        "by axis",
        lambda x, c=_combine, i=_init: p.reduce_window(x, i, c, (7, 6), (2, 1), "SAME"),
        [arg((9, 8), distinct=True)],
        _loop(_reduce, _init, (7, 6), (2, 1), "SAME"),
        rtol=1e-5,
        second=False,
    )
_add(
    p.reduce_window_sum_p,
    "int",
    lambda x: p.reduce_window(x, 0, e.add, (2,), (1,), "VALID"),
    [arg((5,), "int32", 0, 9)],
    lambda x: x[1:] + x[:-1],
)
_add(  # windows with gaps between them, and a first element in none
    p.reduce_window_sum_p,
    "apart",
    lambda x: p.reduce_window(x, 0.0, e.add, (2, 1), (3, 2), ((-1, 2), (1, 1))),
    [arg((8, 3))],
    _loop(np.sum, 0.0, (2, 1), (3, 2), ((-1, 2), (1, 1))),
)
for _prim, _combine, _init, _shape, _geometry in (
    (p.reduce_window_sum_p, e.add, 0.0, (5,), ((2,), (2,), "VALID", None, (5,))),
    (p.reduce_window_max_p, e.max, -np.inf, (1, 2, 2, 3), ((1, 3, 3, 1), (1, 2, 2, 1), "VALID")),
    (p.reduce_window_max_p, e.max, -np.inf, (1, 4, 4, 0), ((1, 2, 2, 1), (1, 2, 2, 1), "SAME")),
):
    _add(
        _prim,
        f"no windows {len(_shape)}d of {math.prod(_shape)}",
        lambda x, c=_combine, i=_init, g=_geometry: p.reduce_window(x, i, c, *g),
        [arg(_shape)],
        _loop(np.sum, 0.0, *_geometry),
    )
_add(
    p.reduce_window_sum_p,
    "complex",
    lambda x: p.reduce_window(x, 0, e.add, (2,), (2,), "SAME"),
    [arg((5,), "complex64")],
    lambda x: np.add.reduceat(x, [0, 2, 4]),
)
_add(
    p.reduce_window_max_p,
    "bool",
    lambda x: p.reduce_window(x, False, e.max, (2,), (1,), "VALID"),
    [arg((5,), "bool")],
    lambda x: x[1:] | x[:-1],
)


def _sum_and_product(a, b):
    return e.add(a[0], b[0]), e.mul(a[1], b[1])


for _name in ("same", "dilated"):
    _g = _GEOMETRIES[_name]
    _add(
        p.reduce_window_p,
        _name,
        lambda x, g=_g: p.reduce_window(x, 1.0, e.mul, *g),
        [arg((5, 6))],
        _loop(np.prod, 1, *_g),
    )
_add(
    p.reduce_window_p,
    "pair",
    lambda x, y: p.reduce_window((x, y), (0.0, 1.0), _sum_and_product, (2, 3), (1, 2), "VALID"),
    [arg((3, 5)), arg((3, 5))],
    lambda x, y: (_loop(np.sum, 0, (2, 3), (1, 2), "VALID")(x), _loop(np.prod, 1, (2, 3), (1, 2), "VALID")(y)),
)
_add(
    p.reduce_window_p,
    "init",
    lambda x, i: p.reduce_window(x, i, e.add, (2,), (1,), "VALID"),
    [arg((4,)), arg()],
    lambda x, i: i + x[1:] + x[:-1],
)
_add(
    p.reduce_window_p,
    "scalar",
    lambda x, i: p.reduce_window(x, i, e.add, (), (), "VALID"),
    [arg(), arg()],
    lambda x, i: i + x,
)


def _windows(shape, name):
    return p.make_windows(shape, *_GEOMETRIES[name])


for _name in ("valid", "same", "strided"):
    _w = _windows((5, 6), _name)
    _source = arg(_w.output_shape((5, 6)))
    for _prim in (e.ge_p, e.le_p):
        _add(
            p.select_and_scatter_add_p,
            f"{_name} {_prim}",
            lambda s, x, w=_w, q=_prim: p.select_and_scatter_add(s, x, q, w),
            [_source, arg((5, 6), distinct=True)],
        )
_add(
    p.select_and_scatter_add_p,
    "ties",
    lambda s, x: p.select_and_scatter_add(s, x, e.ge_p, p.make_windows((4,), (2,), (1,), "VALID")),
    [np.float32([1, 2, 4]), np.float32([3, 3, 3, 1])],
    lambda s, x: [1, 2, 4, 0],
    grad=(0,),
)
for _name in _GEOMETRIES:
    _w = _windows((5, 6), _name)
    _add(
        p.select_and_gather_add_p,
        _name,
        lambda t, x, w=_w: p.select_and_gather_add(t, x, e.ge_p, w),
        [arg((5, 6)), arg((5, 6), distinct=True)],
    )
_LARGE = p.make_windows((45,), (35,), (3,), ((0, 2),))
_add(
    p.select_and_gather_add_p,
    "large",
    lambda t, x: p.select_and_gather_add(t, x, e.ge_p, _LARGE),
    [arg((45,)), arg((45,), distinct=True)],
)
_add(
    p.select_and_gather_add_p,
    "least",
    lambda t, x: p.select_and_gather_add(t, x, e.le_p, p.make_windows((4,), (2,), (1,), "VALID")),
    [np.float32([1, 2, 3, 4]), np.float32([3, 1, 2, 0])],
    lambda t, x: [2, 2, 4],
)

_VALID = p.make_windows((4,), (2,), (1,), "VALID")
_add(
    p.select_and_scatter_p,
    "product",
    lambda x, s: p.select_and_scatter(x, e.ge, _VALID, s, 1.0, e.mul),
    [np.float32([3, 5, 4, 1]), np.float32([2, 3, 7])],
    lambda x, s: [1, 6, 7, 1],
    grad=(),
)
_add(
    p.select_and_scatter_p,
    "init",
    lambda x, s, i: p.select_and_scatter(x, e.le, _VALID, s, i, e.max),
    [np.int32([3, 5, 4, 1]), np.int32([2, 3, 7]), np.int32(5)],
    lambda x, s, i: [5, 5, 5, 7],
    grad=(),
)
