"""Records of the sorting primitives."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from bedrax.lax.primitives import sorting as p
from bedrax.testing.records import OpCase, arg, into

CASES: list[OpCase] = []
_add = into(CASES)


_EDGE = np.float32([3, np.nan, -np.inf, 0, -1, np.inf, -np.nan, 1e-40, -0.0])
_add(p.sort_p, "vector", lambda x: p.sort(x), [arg((7,), distinct=True)], np.sort)
_add(p.sort_p, "front", lambda x: p.sort(x, 0), [arg((5, 3), distinct=True)], lambda x: np.sort(x, 0))
_add(p.sort_p, "edges", lambda x: p.sort(x), [_EDGE], np.sort, grad=())
_add(p.sort_p, "f16", lambda x: p.sort(x), [_EDGE.astype("f2")], np.sort, grad=())
_add(
    p.sort_p, "bf16", lambda x: p.sort(x), [_EDGE.astype(ml_dtypes.bfloat16)], lambda x: np.sort(x.astype("f")), grad=()
)
_add(p.sort_p, "f64", lambda x: p.sort(x), [arg((4, 3), "float64", distinct=True)], np.sort)
_add(p.sort_p, "f8", lambda x: p.sort(x), [arg((6,), "float8_e4m3fn")], lambda x: np.sort(x.astype("f")), grad=())
for _dtype in ("int32", "int8", "uint8", "uint32", "bool"):
    _add(p.sort_p, _dtype, lambda x: p.sort(x), [arg((3, 6), _dtype, 0, 99)], np.sort)
_add(p.sort_p, "int4", lambda x: p.sort(x), [arg((6,), "int4")], lambda x: np.sort(x.astype(int)))
_add(
    p.sort_p,
    "int4 front",
    lambda x, y: p.sort((x, y), 0),
    [arg((5, 3), "int4"), arg((5, 3), "uint2", 0, 3)],
    lambda x, y: tuple(np.take_along_axis(v, np.argsort(x.astype(int), 0, kind="stable"), 0) for v in (x, y)),
)
_add(p.sort_p, "complex", lambda x: p.sort(x), [np.complex64([1 + 2j, 1 + 1j, 5j, -1])], np.sort, grad=())
_add(p.sort_p, "complex derivative", lambda x: p.sort(x), [arg((5,), "complex64", distinct=True)], np.sort)
_add(
    p.sort_p,
    "key and value",
    lambda k, v: p.sort_key_val(k, v),
    [arg((3, 6), distinct=True), arg((3, 6))],
    lambda k, v: (np.sort(k), np.take_along_axis(v, np.argsort(k), 1)),
)
_add(
    p.sort_p,
    "key edges",
    lambda k, v: p.sort_key_val(k, v, 0),
    [_EDGE[:, None], arg((9, 1), "int32", 0, 99)],
    lambda k, v: (np.sort(k, 0), np.take_along_axis(v, np.argsort(k, 0, kind="stable"), 0)),
    grad=(),
)
_add(
    p.sort_p,
    "uint32 key",
    lambda k, v: p.sort_key_val(k, v),
    [np.uint32([2**31, 5, 2**32 - 1, 0]), arg((4,))],
    lambda k, v: (np.sort(k), v[np.argsort(k)]),
)
_add(
    p.sort_p,
    "wide key",
    lambda k, v: p.sort_key_val(k, v),
    [np.int64([2**40, -5, 2**62, 0]), arg((4,))],
    lambda k, v: (np.sort(k), v[np.argsort(k)]),
)
_add(
    p.sort_p,
    "f64 key edges",
    lambda k, v: p.sort_key_val(k, v),
    [np.float64([3, np.nan, -np.inf, 0, -1, np.inf, -0.0]), arg((7,))],
    lambda k, v: (np.sort(k), v[np.argsort(k, kind="stable")]),
    grad=(),
)
_add(
    p.sort_p,
    "complex key",
    lambda k, v: p.sort_key_val(k, v),
    [arg((6,), "complex64"), arg((6,), "int32")],
    lambda k, v: (np.sort(k), v[np.argsort(k, kind="stable")]),
    grad=(),
)
_add(
    p.sort_p,
    "stable",
    lambda k, v: p.sort_key_val(k, v),
    [arg((40,), "int8", 0, 4), np.arange(40, dtype="i4")],
    lambda k, v: (np.sort(k), np.argsort(k, kind="stable")),
)
_add(
    p.sort_p,
    "two keys",
    lambda *xs: p.sort(xs, num_keys=2),
    [arg((20,), "int32", 0, 3), arg((20,), distinct=True), arg((20,))],
    lambda a, b, c: tuple(x[np.lexsort((b, a))] for x in (a, b, c)),
)

_NANS = np.float32([0, -0.0, np.nan, -np.inf, np.inf, 1])
_add(
    p.top_k_p,
    "vector",
    lambda x: p.top_k(x, 3),
    [arg((7,), distinct=True)],
    lambda x: (-np.sort(-x)[:3], np.argsort(-x)[:3]),
)
_add(
    p.top_k_p,
    "front",
    lambda x: p.top_k(x, 2, axis=0),
    [arg((5, 3), distinct=True)],
    lambda x: (-np.sort(-x, 0)[:2], np.argsort(-x, 0)[:2]),
)
_add(
    p.top_k_p, "edges", lambda x: p.top_k(x, 6), [_NANS], lambda x: (x[[2, 4, 5, 0, 1, 3]], [2, 4, 5, 0, 1, 3]), grad=()
)
_add(p.top_k_p, "ties", lambda x: p.top_k(x, 4), [np.int32([1, 2, 2, 1, 2])], lambda x: ([2, 2, 2, 1], [1, 2, 4, 0]))
_add(
    p.top_k_p,
    "any order",
    lambda x: p.top_k(x, 3, is_stable=False),
    [arg((2, 7), distinct=True)],
    lambda x: (-np.sort(-x)[:, :3], np.argsort(-x)[:, :3]),
)
_add(p.top_k_p, "uint8", lambda x: p.top_k(x, 2), [np.uint8([1, 200, 100])], lambda x: ([200, 100], [1, 2]))
_add(p.top_k_p, "bool", lambda x: p.top_k(x, 2), [np.array([False, True, False])], lambda x: ([True, False], [1, 0]))
_add(
    p.top_k_p,
    "bf16",
    lambda x: p.top_k(x, 2),
    [arg((6,), "bfloat16", distinct=True)],
    lambda x: (-np.sort(-x.astype("f"))[:2], np.argsort(-x.astype("f"))[:2]),
    grad=(),
)
_add(p.top_k_p, "none", lambda x: p.top_k(x, 0), [arg((2, 3))], lambda x: (x[:, :0], np.zeros((2, 0))), second=False)

_add(
    p.approx_top_k_p,
    "max",
    lambda x: p.approx_max_k(x, 2),
    [arg((3, 6), distinct=True)],
    lambda x: (-np.sort(-x)[:, :2], np.argsort(-x)[:, :2]),
)
_add(
    p.approx_top_k_p,
    "min",
    lambda x: p.approx_min_k(x, 2, 0),
    [arg((6, 3), distinct=True)],
    lambda x: (np.sort(x, 0)[:2], np.argsort(x, 0)[:2]),
)
_add(
    p.approx_top_k_p,
    "candidates",
    lambda x: p.approx_max_k(x, 1, aggregate_to_topk=False),
    [arg((1, 300), distinct=True)],
    lambda x: (-np.sort(-x)[:, :128], np.argsort(-x)[:, :128]),
    grad=(),
)
