"""Records of the cumulative reductions."""

from __future__ import annotations

import numpy as np

from bedrax.lax.primitives import cumulative as p
from bedrax.testing.records import OpCase, arg, into

CASES: list[OpCase] = []
_add = into(CASES)


def _accumulated(ufunc, axis, reverse):
    def oracle(x):
        x = np.flip(x, axis) if reverse else x
        out = ufunc.accumulate(x, axis=axis, dtype=x.dtype)
        return np.flip(out, axis) if reverse else out

    return oracle


_ALL = (
    (p.cumsum_p, p.cumsum, np.add),
    (p.cumprod_p, p.cumprod, np.multiply),
    (p.cummax_p, p.cummax, np.maximum),
    (p.cummin_p, p.cummin, np.minimum),
    (p.cumlogsumexp_p, p.cumlogsumexp, np.logaddexp),
)
for _prim, _fun, _ufunc in _ALL:
    for _name, _shape, _axis, _reverse in (
        ("vector", (7,), 0, False),
        ("reverse", (2, 8), 1, True),
        ("middle", (2, 5, 2), 1, False),
        ("long", (67,), 0, False),
        ("long, reverse", (1, 69), 1, True),
        ("one", (1, 3), 0, False),
        ("empty", (0, 2), 0, True),
    ):
        _add(
            _prim,
            _name,
            lambda x, f=_fun, a=_axis, r=_reverse: f(x, a, r),
            [arg(_shape, low=-1.5, high=1.5, distinct=True)],
            _accumulated(_ufunc, _axis, _reverse),
            second=not _name.startswith("long"),
            grad=() if _name.startswith("long") else None,
            rtol=2e-5,
        )
    _add(
        _prim,
        "bf16",
        lambda x, f=_fun: f(x),
        [arg((9,), "bfloat16", 0.5, 1.5)],
        lambda x, u=_ufunc: u.accumulate(x.astype("f")).astype(x.dtype),
        grad=(),
    )
    if _ufunc is not np.logaddexp:
        _add(_prim, "int8", lambda x, f=_fun: f(x), [arg((9,), "int8", -99, 99)], _accumulated(_ufunc, 0, False))
        _add(
            _prim,
            "complex",
            lambda x, f=_fun: f(x),
            [arg((5,), "complex64")],
            _accumulated(_ufunc, 0, False),
            grad=None if _ufunc in (np.add, np.multiply) else (),
        )

_add(
    p.cumlogsumexp_p,
    "complex",
    lambda x: p.cumlogsumexp(x),
    [arg((5,), "complex64", -1, 1)],
    lambda x: np.log(np.cumsum(np.exp(x))),
)
_add(
    p.cumlogsumexp_p,
    "infinite",
    lambda x: p.cumlogsumexp(x),
    [np.float32([-np.inf, -np.inf, 1, 200, 200])],
    lambda x: [-np.inf, -np.inf, 1, 200, 200 + np.log(2)],
    grad=(),
)
_add(p.cumprod_p, "zeros", lambda x: p.cumprod(x), [np.float32([2, 0, 3, 0, 5])], np.cumprod)
_add(p.cummax_p, "nan", lambda x: p.cummax(x), [np.float32([1, np.nan, 3])], np.maximum.accumulate, grad=())


def _recurrence(axis, reverse):
    def oracle(a, b):
        a, y = np.moveaxis(a, axis, -1), np.moveaxis(b.copy(), axis, -1)
        n = y.shape[-1]
        for k in range(n - 2, -1, -1) if reverse else range(1, n):
            y[..., k] += a[..., k] * y[..., k + 1 if reverse else k - 1]
        return np.moveaxis(y, -1, axis)

    return oracle


for _name, _shape, _axis, _reverse in (
    ("vector", (6,), 0, False),
    ("reverse", (2, 5), 1, True),
    ("middle", (2, 4, 2), 1, False),
    ("one", (1,), 0, True),
):
    _add(
        p.linear_recurrence_p,
        _name,
        lambda a, b, x=_axis, r=_reverse: p.linear_recurrence(a, b, x, r),
        [arg(_shape), arg(_shape)],
        _recurrence(_axis, _reverse),
    )
_add(
    p.linear_recurrence_p,
    "complex",
    lambda a, b: p.linear_recurrence(a, b, 0),
    [arg((4,), "complex64"), arg((4,), "complex64")],
    _recurrence(0, False),
)
_add(
    p.linear_recurrence_p,
    "unused infinity",
    lambda a, b: p.linear_recurrence(a, b, 0),
    [np.float32([np.inf, 2, 3]), np.float32([1, 1, 1])],
    lambda a, b: [1, 3, 10],
    grad=(),
)
