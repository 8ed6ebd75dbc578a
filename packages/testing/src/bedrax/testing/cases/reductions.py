"""Records of the reductions."""

from __future__ import annotations

import numpy as np

from bedrax.lax.primitives import elementwise as e
from bedrax.lax.primitives import reductions as p
from bedrax.testing.records import OpCase, arg, into

CASES: list[OpCase] = []
_add = into(CASES)


def _reduction(prim, fun, ufunc, samples):
    for name, axes, spec, kw in samples:
        oracle = lambda x, axes=axes: ufunc.reduce(x, axis=axes, dtype=x.dtype)
        _add(prim, name, lambda x, axes=axes: fun(x, axes), [spec], oracle, **kw)


_numbers = [
    ("all", (0, 1), arg((3, 4)), {}),
    ("middle", (1,), arg((2, 3, 4)), {}),
    ("outer", (0, 2), arg((2, 3, 2), "complex64"), {}),
    ("none", (), arg((3,)), {}),
    ("empty", (1,), arg((2, 0)), {}),
    ("int8", (0,), arg((40,), "int8", -100, 100), {}),
    ("uint32", (0,), arg((9, 2), "uint32", 0, 9), {}),
]
_reduction(p.reduce_sum_p, p.reduce_sum, np.add, _numbers)
_reduction(p.reduce_prod_p, p.reduce_prod, np.multiply, _numbers)
for _prim, _fun, _ufunc in ((p.reduce_sum_p, p.reduce_sum, np.add), (p.reduce_prod_p, p.reduce_prod, np.multiply)):
    _add(
        _prim,
        "bf16",
        lambda x, f=_fun: f(x, (0,)),
        [arg((30, 2), "bfloat16", 0.9, 1.1)],
        lambda x, u=_ufunc: u.reduce(x.astype("f"), 0).astype(x.dtype),
        grad=(),
    )
_add(
    p.reduce_prod_p,
    "zeros",
    lambda x: p.reduce_prod(x, (1,)),
    [np.float32([[0, 2, 3], [0, 0, 3], [1, 2, 3]])],
    lambda x: x.prod(1),
)

_ordered = [
    ("all", (0, 1), arg((3, 4), distinct=True), {}),
    ("middle", (1,), arg((2, 3, 4), distinct=True), {}),
    ("nan", (0,), np.float32([[1, np.nan], [2, 0]]), {"grad": ()}),
    ("complex", (0,), np.complex64([[1 + 5j, 2], [2 + 1j, 1], [2, 0]]), {"grad": ()}),
    ("bool", (1,), arg((4, 3), "bool"), {}),
    ("int32", (0,), arg((4, 3), "int32", -99, 99), {}),
    ("uint8", (0,), arg((4,), "uint8", 0, 255), {}),
    ("bf16", (0,), arg((5, 2), "bfloat16"), {"grad": ()}),
]
_reduction(p.reduce_max_p, p.reduce_max, np.maximum, _ordered)
_reduction(p.reduce_min_p, p.reduce_min, np.minimum, _ordered)
_add(p.reduce_max_p, "empty", lambda x: p.reduce_max(x, (0,)), [arg((0, 2), "int32")], lambda x: [-(2**31)] * 2)
_add(p.reduce_min_p, "empty", lambda x: p.reduce_min(x, (0,)), [arg((0, 2))], lambda x: [np.inf] * 2, grad=())
_add(
    p.reduce_max_p,
    "empty complex",
    lambda x: p.reduce_max(x, (0,)),
    [arg((0, 2), "complex64")],
    lambda x: np.complex64([-np.inf] * 2),
    grad=(),
)
_add(
    p.reduce_max_p,
    "int4",
    lambda x: p.reduce_max(x, (0,)),
    [arg((5,), "int4")],
    lambda x: x.astype(int).max().astype(x.dtype),
)

_bits = [
    ("bool", (0,), arg((3, 4), "bool"), {}),
    ("int32", (0, 1), arg((3, 4), "int32", -99, 99), {}),
    ("uint8", (1,), arg((3, 4), "uint8", 0, 255), {}),
    ("empty", (0,), arg((0, 2), "bool"), {}),
    ("empty int32", (0,), arg((0, 2), "int32"), {}),
    ("empty uint8", (0,), arg((0, 2), "uint8"), {}),
]
_reduction(p.reduce_and_p, p.reduce_and, np.bitwise_and, _bits)
_reduction(p.reduce_or_p, p.reduce_or, np.bitwise_or, _bits)
_reduction(p.reduce_xor_p, p.reduce_xor, np.bitwise_xor, _bits)

for _prim, _fun, _find in ((p.argmax_p, p.argmax, np.argmax), (p.argmin_p, p.argmin, np.argmin)):
    for _name, _axis, _spec in (
        ("2d", 1, arg((3, 4), distinct=True)),
        ("front", 0, arg((5, 2, 2), "int32", -3, 3)),
        ("nan", 0, np.float32([1, np.nan, 3, np.nan])),
        ("ties", 0, np.float32([1, 3, -2, 3, -2])),
        ("bool", 0, np.array([[False, True], [True, False]])),
        ("bf16", 0, arg((5,), "bfloat16")),
        ("infinite", 0, np.float32([np.inf, -np.inf, np.inf, -np.inf])),
    ):
        _add(
            _prim,
            _name,
            lambda x, f=_fun, a=_axis: f(x, a, np.int32),
            [_spec],
            lambda x, f=_find, a=_axis: f(x, a).astype("i4"),
            second=False,
        )
    _add(
        _prim,
        "uint8 index",
        lambda x, f=_fun: f(x, 0, np.uint8),
        [arg((200,), "int32", -99, 99)],
        lambda x, f=_find: f(x).astype("u1"),
    )


def _plain(x, y):
    return e.add(y, x)


def _larger_of_pairs(a, b):
    first = e.ge(a[0], b[0])
    return e.select(first, a[0], b[0]), e.select(first, a[1], b[1])


_add(p.reduce_p, "sum", lambda x: p.reduce(x, 0.0, _plain, (0, 2)), [arg((2, 3, 3))], lambda x: x.sum((0, 2)))
_add(p.reduce_p, "init", lambda x, i: p.reduce(x, i, e.mul, (1,)), [arg((2, 3)), arg()], lambda x, i: i * x.prod(1))
_add(p.reduce_p, "one", lambda x, i: p.reduce(x, i, e.mul, (1,)), [arg((2, 1)), arg()], lambda x, i: i * x[:, 0])
_add(p.reduce_p, "no_axis", lambda x, i: p.reduce(x, i, e.mul, ()), [arg((2,)), arg()], lambda x, i: i * x)
_add(
    p.reduce_p,
    "pairs",
    lambda x, y: p.reduce((x, y), (np.float32(-np.inf).astype(x.dtype), 0), _larger_of_pairs, (0,)),
    [arg((4, 2), distinct=True), arg((4, 2), "int32", 0, 9)],
    lambda x, y: (x.max(0), np.take_along_axis(y, x.argmax(0)[None], 0)[0]),
)
_add(
    p.reduce_p,
    "int",
    lambda x: p.reduce(x, 7, e.bitwise_xor, (0,)),
    [arg((5,), "int32", 0, 99)],
    lambda x: np.bitwise_xor.reduce(x) ^ 7,
)
