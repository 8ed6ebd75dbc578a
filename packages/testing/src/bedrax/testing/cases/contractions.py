"""Records of contractions."""

import numpy as np

from bedrax import lax
from bedrax.lax.primitives import contractions as p
from bedrax.testing.records import OpCase, arg


def _dot(numbers, **options):
    return lambda x, y: p.dot_general(x, y, numbers, **options)


MATRIX = (((1,), (0,)), ((), ()))
LAYOUT = (((3, 0), (1, 2)), ((1,), (3,)))  # x[a,b,c,d], y[e,d,a,b] -> [b,c,e]
OUTER = (((), ()), ((), ()))

RAGGED = p.RaggedDotDimensionNumbers
# x[b,m,k], y[g,b,k,n], groups of rows; x[m,k], y[k,n], groups of summands; groups of examples
ROWS = RAGGED((((2,), (2,)), ((0,), (1,))), (1,), (0,))
SUMMANDS = RAGGED((((1,), (0,)), ((), ())), (1,), ())
EXAMPLES = RAGGED((((2,), (1,)), ((0,), (0,))), (0,), ())


def _ragged(numbers):
    return lambda x, y, sizes: p.ragged_dot_general(x, y, sizes, numbers)


def _rows_oracle(x, y, sizes):
    out = np.zeros((x.shape[0], x.shape[1], y.shape[3]))
    for b in range(x.shape[0]):
        start = 0
        for g, n in enumerate(sizes[b] if sizes.ndim == 2 else sizes):
            out[b, start : start + n] = x[b, start : start + n] @ y[g, b]
            start += n
    return out


def _summands_oracle(x, y, sizes):
    ends = np.cumsum(sizes)
    return np.stack([x[:, e - n : e] @ y[e - n : e] for n, e in zip(sizes, ends, strict=True)])


def _scaled_oracle(x, y, xs, ys):
    return (x * np.repeat(xs, x.shape[1] // xs.shape[1], 1)) @ (y * np.repeat(ys, y.shape[0] // ys.shape[0], 0))


CASES = [
    OpCase(p.dot_general_p, "matrix", _dot(MATRIX), (arg((3, 4)), arg((4, 2))), oracle=np.matmul),
    OpCase(
        p.dot_general_p, "layout", _dot(LAYOUT), (arg((2, 3, 2, 4)), arg((2, 4, 2, 3))),
        oracle=lambda x, y: np.einsum("abcd,edab->bce", x, y),
    ),
    OpCase(p.dot_general_p, "outer", _dot(OUTER), (arg((3,)), arg((2, 2))), oracle=lambda x, y: np.multiply.outer(x, y)),
    OpCase(p.dot_general_p, "complex", _dot(MATRIX), (arg((2, 3), "complex64"), arg((3, 2), "complex64")), oracle=np.matmul),
    OpCase(p.dot_general_p, "mixed", _dot(MATRIX), (arg((2, 3), "complex64"), arg((3, 2))), oracle=np.matmul),
    OpCase(p.dot_general_p, "int_float", _dot(MATRIX), (arg((2, 3), "int32"), arg((3, 2))), oracle=np.matmul),
    OpCase(p.dot_general_p, "int8_wraps", _dot(MATRIX), (arg((2, 30), "int8", -100, 100), arg((30, 2), "int8", -100, 100)),
           oracle=lambda x, y: (x.astype(np.int32) @ y.astype(np.int32)).astype(np.int8)),
    OpCase(p.dot_general_p, "int8_to_int32", _dot(MATRIX, preferred_element_type=np.int32),
           (arg((2, 30), "int8", -100, 100), arg((30, 2), "int8", -100, 100)),
           oracle=lambda x, y: x.astype(np.int32) @ y.astype(np.int32)),
    OpCase(p.dot_general_p, "uint8_int8", _dot(MATRIX, preferred_element_type=np.int32),
           (arg((2, 3), "uint8", 0, 200), arg((3, 2), "int8", -100, 100)),
           oracle=lambda x, y: x.astype(np.int32) @ y.astype(np.int32)),
    OpCase(p.dot_general_p, "int32", _dot(MATRIX), (arg((2, 3), "int32", -2**31, 2**31 - 1), arg((3, 2), "int32", -9, 9)),
           oracle=np.matmul),
    OpCase(p.dot_general_p, "int4", _dot(MATRIX), (arg((2, 3), "int4", -8, 8), arg((3, 2), "int4", -2, 2)),
           oracle=lambda x, y: ((x.astype(np.int32) @ y.astype(np.int32)) + 8) % 16 - 8),
    OpCase(p.dot_general_p, "bool", _dot(MATRIX), (arg((2, 3), "bool"), arg((3, 2), "bool")), oracle=np.matmul),
    OpCase(p.dot_general_p, "bfloat16", _dot(MATRIX), (arg((2, 64), "bfloat16", 0, 2), arg((64, 2), "bfloat16", 0, 2)),
           oracle=lambda x, y: x.astype(np.float32) @ y.astype(np.float32), rtol=2e-2),
    OpCase(p.dot_general_p, "bfloat16_to_float32", _dot(MATRIX, preferred_element_type=np.float32),
           (arg((2, 64), "bfloat16"), arg((64, 2), "bfloat16")), oracle=lambda x, y: x.astype(np.float32) @ y.astype(np.float32),
           grad=()),
    OpCase(p.dot_general_p, "float8", _dot(MATRIX), (arg((2, 8), "float8_e4m3fn"), arg((8, 2), "float8_e5m2")),
           oracle=lambda x, y: x.astype(np.float32) @ y.astype(np.float32)),
    OpCase(p.dot_general_p, "narrowed", _dot(MATRIX, preferred_element_type="bfloat16"), (arg((2, 8)), arg((8, 2))),
           oracle=np.matmul, grad=()),
    OpCase(p.dot_general_p, "highest", _dot(MATRIX, precision="highest"), (arg((2, 3)), arg((3, 2))), oracle=np.matmul),
    OpCase(p.dot_general_p, "algorithm", _dot(MATRIX, precision="BF16_BF16_F32"), (arg((2, 3)), arg((3, 2))), grad=(),
           rtol=2e-2),
    OpCase(p.dot_general_p, "empty", _dot(MATRIX), (arg((2, 0)), arg((0, 3))), oracle=np.matmul),
    OpCase(p.ragged_dot_general_p, "rows", _ragged(ROWS), (arg((2, 6, 3)), arg((3, 2, 3, 2)), arg((3,), "int32", 0, 3)),
           oracle=_rows_oracle),
    OpCase(p.ragged_dot_general_p, "rows_each", _ragged(ROWS),
           (arg((2, 6, 3)), arg((3, 2, 3, 2)), arg((2, 3), "int32", 0, 3)), oracle=_rows_oracle),
    OpCase(p.ragged_dot_general_p, "summands", _ragged(SUMMANDS), (arg((2, 6)), arg((6, 4)), arg((3,), "int32", 0, 3)),
           oracle=_summands_oracle),
    OpCase(p.ragged_dot_general_p, "examples", _ragged(EXAMPLES),
           (arg((4, 2, 3)), arg((4, 3, 2)), np.array([1, 3], np.int32)), oracle=lambda x, y, s: x @ y),
    OpCase(p.ragged_dot_general_p, "offset",
           lambda x, y, s, o: p.ragged_dot(x, y, s, group_offset=o),
           (arg((6, 3)), arg((2, 3, 2)), np.array([2, 1, 3], np.int32), np.array([1], np.int32)), batch=(0, 1, 2), grad=(0,),
           oracle=lambda x, y, s, o: np.concatenate([np.zeros((2, 2)), x[2:3] @ y[0], x[3:] @ y[1]])),
    OpCase(p.scaled_dot_p, "blocks",
           lambda x, y, xs, ys: p.scaled_dot(x, y, lhs_scale=xs, rhs_scale=ys, preferred_element_type=np.float32),
           (arg((2, 8)), arg((8, 3)), arg((2, 2)), arg((4, 3))), oracle=_scaled_oracle, grad=()),
    OpCase(p.scaled_dot_p, "float8",
           lambda x, y, xs: lax.scaled_dot(x, y, lhs_scale=xs),
           (arg((2, 8), "float8_e4m3fn"), arg((8, 3), "float8_e4m3fn"), np.full((2, 2), 4, "float8_e8m0fnu")), grad=(),
           oracle=lambda x, y, xs: 4 * (x.astype(np.float32) @ y.astype(np.float32)), batch=(0, 1), rtol=3e-2),
]  # fmt: skip
