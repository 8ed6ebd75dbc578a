"""Records of convolutions."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np

from bedrax.lax.primitives import convolution as p
from bedrax.testing.records import OpCase, arg

prim: Final = p.conv_general_dilated_p


def _oracle(strides, padding, lhs_dilation, rhs_dilation, groups=1, batch_groups=1):
    """The definition in standard order, element by element."""

    def oracle(x, k):
        n = len(strides)
        dtype = np.result_type(x.dtype, np.float32) if x.dtype.kind == "V" else x.dtype
        x, k = x.astype(dtype), k.astype(dtype)
        spans = [(s - 1) * d + 1 for s, d in zip(k.shape[2:], rhs_dilation, strict=True)]
        sizes = [(s - 1) * d + 1 for s, d in zip(x.shape[2:], lhs_dilation, strict=True)]
        places = [(s + lo + hi - w) // t + 1 for s, w, t, (lo, hi) in zip(sizes, spans, strides, padding, strict=True)]
        batch, outs = x.shape[0] // batch_groups, k.shape[0]
        out = np.zeros((batch, outs, *places), dtype)
        for b, o, *at in itertools.product(range(batch), range(outs), *map(range, places)):
            g, bg = o // (outs // groups), o // (outs // batch_groups)
            for i, *e in itertools.product(*map(range, k.shape[1:])):
                where = [at[d] * strides[d] - padding[d][0] + e[d] * rhs_dilation[d] for d in range(n)]
                if all(w % lhs_dilation[d] == 0 and 0 <= w < sizes[d] for d, w in enumerate(where)):
                    source = tuple(w // lhs_dilation[d] for d, w in enumerate(where))
                    out[(b, o, *at)] += x[(bg * batch + b, g * k.shape[1] + i, *source)] * k[(o, i, *e)]
        return out

    return oracle


def _case(
    name, x, k, strides, padding, lhs_dilation=None, rhs_dilation=None, groups=1, batch_groups=1, dtype="float32", **kw
):
    n = len(strides)
    lhs_dilation, rhs_dilation = lhs_dilation or (1,) * n, rhs_dilation or (1,) * n
    extra = {key: kw.pop(key) for key in ("precision", "preferred_element_type") if key in kw}

    def fun(a, b):
        return p.conv_general_dilated(
            a, b, strides, padding, lhs_dilation, rhs_dilation, None, groups, batch_groups, **extra
        )

    low, high = (-20, 20) if "int" in dtype else (-2, 2)
    kw.setdefault("oracle", _oracle(strides, padding, lhs_dilation, rhs_dilation, groups, batch_groups))
    return OpCase(prim, name, fun, (arg(x, dtype, low, high), arg(k, dtype, low, high)), **kw)


def _layout(x, k):
    return p.conv_general_dilated(x, k, (2, 1), "SAME", dimension_numbers=("NHWC", "WHIO", "CNWH"))


def _layout_oracle(x, k):
    # Spatial dimensions in the kernel's order: W with stride 2, H with stride 1.
    y = _oracle((2, 1), ((0, 1), (1, 1)), (1, 1), (1, 1))(x.transpose(0, 3, 2, 1), k.transpose(3, 2, 0, 1))
    return y.transpose(1, 0, 2, 3)


CASES = [
    _case("plain", (2, 3, 5, 4), (2, 3, 3, 2), (1, 1), ((1, 1), (0, 1))),
    _case("strided", (2, 2, 6, 5), (3, 2, 2, 3), (2, 3), ((0, 1), (2, 0))),
    _case("dilated", (1, 2, 4, 4), (2, 2, 2, 2), (2, 1), ((1, 2), (3, 0)), (2, 3), (3, 2)),
    _case("negative_pads", (1, 1, 6), (2, 1, 2), (2,), ((-1, -2),), (2,)),
    _case("grouped", (2, 4, 5), (6, 2, 3), (2,), ((1, 1),), groups=2, rhs_dilation=(2,)),
    _case("depthwise", (2, 3, 4, 4), (3, 1, 2, 2), (1, 1), ((0, 1), (0, 1)), groups=3),
    _case("batch_groups", (4, 2, 5), (6, 2, 3), (1,), ((1, 0),), batch_groups=2),
    _case("many_groups", (2, 80, 3), (40, 2, 2), (1,), ((0, 0),), groups=40, second=False),
    _case("depthwise_multiplied", (2, 2, 4), (6, 1, 2), (2,), ((2, -1),), (2,), (2,), groups=2, dtype="bfloat16", rtol=2e-2),
    _case("no_space", (3, 4), (2, 4), (), ()),
    _case("complex", (1, 2, 4), (3, 2, 2), (1,), ((1, 0),), dtype="complex64"),
    _case("int8", (1, 2, 4), (3, 2, 2), (1,), ((1, 0),), dtype="int8"),
    _case("int8_to_int32", (1, 2, 4), (3, 2, 2), (1,), ((1, 0),), dtype="int8", preferred_element_type=np.int32,
          oracle=lambda x, k: _oracle((1,), ((1, 0),), (1,), (1,))(x.astype(np.int32), k.astype(np.int32))),
    _case("bfloat16", (1, 2, 4), (3, 2, 2), (1,), ((1, 0),), dtype="bfloat16", precision="highest", rtol=2e-2),
    _case("float8", (1, 2, 4), (3, 2, 2), (1,), ((1, 0),), dtype="float8_e5m2", rtol=0.3),
    _case("empty", (0, 2, 4), (3, 2, 2), (1,), ((1, 0),)),
    _case("three_dimensions", (1, 2, 3, 3, 3), (2, 2, 2, 2, 2), (1, 2, 1), ((0, 0), (1, 0), (0, 1)), second=False),
    OpCase(prim, "layout", _layout, (arg((2, 4, 5, 3)), arg((2, 3, 3, 2))),
           oracle=_layout_oracle),
    OpCase(prim, "transpose", lambda x, k: p.conv_transpose(x, k, (2, 2), "SAME", transpose_kernel=True),
           (arg((1, 3, 2, 2)), arg((3, 2, 4, 2)))),
    OpCase(prim, "patches", lambda x: p.conv_general_dilated_patches(x, (2, 3), (1, 2), "VALID"), (arg((2, 2, 4, 5)),),
           oracle=lambda x: np.stack([np.stack([x[:, :, i : i + 2, j : j + 3].reshape(2, 12) for j in (0, 2)], -1)
                                      for i in range(3)], -2)),
    OpCase(prim, "local", lambda x, k: p.conv_general_dilated_local(x, k, (1,), "VALID", (2,)),
           (arg((2, 2, 4)), arg((3, 4, 3))),
           oracle=lambda x, k: np.stack([x[:, :, i : i + 2].reshape(2, 4) @ k[:, :, i].T for i in range(3)], -1)),
]  # fmt: skip
