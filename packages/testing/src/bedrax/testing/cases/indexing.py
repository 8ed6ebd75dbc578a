"""Records of indexing."""

from __future__ import annotations

from typing import Final

import numpy as np

from bedrax import lax
from bedrax.lax.primitives import indexing as p
from bedrax.testing.records import OpCase, arg

G, S = p.GatherDimensionNumbers, p.ScatterDimensionNumbers

ROWS = G((1,), (0,), (0,))  # rows of a matrix
POINTS = G((), (0, 1), (1, 0))  # elements, by column and row
WINDOWS = G((0, 2), (1,), (2, 0))  # x[a,b,c]: windows in a and c; indices address c, then a
PAIRED = G((2,), (1,), (1,), (0,), (1,))  # dimension 0 of the operand with dimension 1 of the indices


def _gather(numbers, sizes, **options):
    return lambda x, i: p.gather(x, i, numbers, sizes, **options)


def _rows_oracle(x, i):
    return x[np.clip(i[..., 0], 0, len(x) - 1)]


def _filled_rows(fill):
    def oracle(x, i):
        i = i[..., 0]
        good = (i >= 0) & (i < len(x))
        return np.where(good[..., None], x[np.where(good, i, 0)], np.asarray(fill).astype(x.dtype))

    return oracle


def _paired_oracle(x, i):
    i = np.clip(i[..., 0], 0, x.shape[1] - 1)
    return np.stack([np.stack([x[b, i[n, b]] for b in range(i.shape[1])]) for n in range(i.shape[0])])


def _scatter(function, numbers, **options):
    return lambda x, i, u: function(x, i, u, S(*numbers), **options)


def _loop(combine):
    """Rows of a matrix updated one after another; those out of bounds are dropped."""

    def oracle(x, i, u):
        x = x.copy()
        for n, row in enumerate(i[:, 0]):
            if 0 <= row < len(x):
                x[row] = combine(x[row], u[n])
        return x

    return oracle


rows: Final = arg((4, 1), "int32", -1, 4)  # out of bounds, and repeated
some_rows: Final = np.array([[2], [0]], np.int32)
SCATTERS = {
    p.scatter_p: (p.scatter, lambda x, u: u),
    p.scatter_add_p: (p.scatter_add, np.add),
    p.scatter_sub_p: (p.scatter_sub, np.subtract),
    p.scatter_mul_p: (p.scatter_mul, np.multiply),
    p.scatter_min_p: (p.scatter_min, np.minimum),
    p.scatter_max_p: (p.scatter_max, np.maximum),
}


def _scatter_cases():
    for prim, (function, combine) in SCATTERS.items():
        yield OpCase(
            prim,
            "rows",
            _scatter(function, ROWS),
            (arg((3, 2), distinct=True), rows, arg((4, 2), low=-1.9, distinct=True)),
            oracle=_loop(combine),
            grad=(0,) if prim is p.scatter_mul_p else None,
        )
        yield OpCase(
            prim,
            "unique",
            _scatter(function, ROWS, unique_indices=True, mode="promise_in_bounds"),
            (arg((3, 2), distinct=True), some_rows, arg((2, 2), low=-1.8, distinct=True)),
            oracle=_loop(combine),
            batch=(0, 2),
        )
        yield OpCase(
            prim,
            "clipped_windows",
            _scatter(function, WINDOWS, mode="clip"),
            (arg((3, 2, 4), distinct=True), arg((2, 2), "int32", -1, 5), arg((2, 2, 2), low=-1.95, distinct=True)),
            grad=() if prim is p.scatter_mul_p else None,
        )
        yield OpCase(
            prim,
            "paired",
            _scatter(function, PAIRED),
            (arg((2, 4, 3), "int32", -9, 9), arg((3, 2, 1), "uint8", 0, 5), arg((3, 2, 3), "int32", -9, 9)),
        )


CASES = [
    OpCase(p.gather_p, "rows", _gather(G((2,), (0,), (0,)), (1, 2), mode="clip"),
           (arg((3, 2)), arg((2, 3, 1), "int32", -2, 5)),
           oracle=_rows_oracle),
    OpCase(p.gather_p, "filled", _gather(ROWS, (1, 2), mode="fill"), (arg((3, 2)), arg((5, 1), "int32", -2, 5)),
           oracle=_filled_rows(np.nan), grad=()),
    OpCase(p.gather_p, "filled_with", _gather(ROWS, (1, 2), mode="fill", fill_value=7),
           (arg((3, 2)), arg((5, 1), "int8", -2, 5)), oracle=_filled_rows(7)),
    OpCase(p.gather_p, "filled_int", _gather(ROWS, (1, 2), mode="fill"), (arg((3, 2), "uint8", 0, 9), arg((5, 1), "uint32", 0, 5)),
           oracle=_filled_rows(255)),
    OpCase(p.gather_p, "points", _gather(POINTS, (1, 1)), (arg((3, 2), "complex64"), arg((4, 2), "int32", 0, 2)),
           oracle=lambda x, i: x[i[:, 1], i[:, 0]]),
    OpCase(p.gather_p, "windows", _gather(WINDOWS, (2, 1, 3), mode="fill", fill_value=0.0),
           (arg((3, 2, 4)), arg((2, 2), "int32", -1, 3))),
    OpCase(p.gather_p, "paired", _gather(PAIRED, (1, 1, 3), mode="clip"), (arg((2, 4, 3)), arg((3, 2, 1), "int32", -1, 5)),
           oracle=_paired_oracle),
    OpCase(p.gather_p, "no_batch", _gather(G((0, 1), (), (1,)), (3, 1), mode="clip"), (arg((3, 4), "bfloat16"), arg((1,), "int32", 0, 4)),
           oracle=lambda x, i: x[:, i[0] : i[0] + 1]),
    OpCase(
        p.gather_p, "one_element", _gather(G((), (0,), (0,)), (1,)), (arg((3,)), arg((1,), "int32", 0, 3)),
        oracle=lambda x, i: x[i[0]],
    ),
    OpCase(
        p.scatter_add_p, "at_the_origin", _scatter(p.scatter_add, G((1,), (), ())),
        (arg((3,)), np.zeros((2, 0), np.int32), arg((2, 2))), oracle=lambda x, i, u: x + np.append(u.sum(0), 0),
    ),
    *_scatter_cases(),
    OpCase(p.scatter_p, "apply", lambda x, i: p.scatter_apply(x, i, lambda v: lax.mul(v, v), S(*ROWS), update_shape=(4, 2)),
           (arg((3, 2)), rows), grad=(), oracle=lambda x, i: _loop(lambda v, u: v * v)(x, i, np.zeros((4, 2)))),
    OpCase(p.dynamic_slice_p, "static", lambda x: lax.dynamic_slice(x, (1, -3), (2, 2)), (arg((3, 4)),),
           oracle=lambda x: x[1:3, 1:3]),
    OpCase(p.dynamic_slice_p, "clamped", lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)),
           (arg((3, 4)), arg((), "int32", -5, 5), arg((), "int32", -5, 5)),
           oracle=lambda x, i, j: x[min(max(i + 3 * (i < 0), 0), 1) :, min(max(j + 4 * (j < 0), 0), 1) :][:2, :3]),
    OpCase(p.dynamic_slice_p, "narrow_index", lambda x, i: lax.dynamic_slice_in_dim(x, i, 2), (arg((300,), "int32"), arg((), "int8", -128, 127)),
           oracle=lambda x, i: x[int(i) :][:2] if i >= 0 else x[min(300 + int(i), 298) :][:2]),
    OpCase(p.dynamic_slice_p, "index", lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False),
           (arg((3, 4), "bool"), arg((), "uint8", 0, 4)), oracle=lambda x, i: x[:, i]),
    OpCase(p.dynamic_update_slice_p, "clamped", lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)),
           (arg((3, 4)), arg((2, 2)), arg((), "int32", -5, 5), arg((), "int32", -5, 5))),
    OpCase(p.dynamic_update_slice_p, "empty", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i)),
           (arg((3, 4)), arg((2, 0)), arg((), "int32", -5, 5))),
    OpCase(p.dynamic_update_slice_p, "index", lambda x, u, i: lax.dynamic_update_index_in_dim(x, u, i, 1),
           (arg((2, 3)), arg((2,)), arg((), "int32", -3, 3))),
    OpCase(p.gather_p, "index_take", lambda x, i, j: p.index_take(x, (i, j), (0, 2)),
           (arg((3, 2, 4)), arg((5,), "int32", -6, 6), arg((5,), "int32", -6, 6)),
           oracle=lambda x, i, j: x[i % 3, :, j % 4]),
]  # fmt: skip
