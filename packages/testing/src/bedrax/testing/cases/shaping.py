"""Records of the shaping primitives."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from bedrax.lax.primitives import shaping as p
from bedrax.testing.records import OpCase, arg, into

CASES: list[OpCase] = []
_add = into(CASES)


_add(
    p.broadcast_in_dim_p,
    "new axes",
    lambda x: p.broadcast_in_dim(x, (2, 3, 4, 5), (1, 3)),
    [arg((3, 5))],
    lambda x: np.broadcast_to(x[None, :, None, :], (2, 3, 4, 5)),
)
_add(
    p.broadcast_in_dim_p,
    "stretched",
    lambda x: p.broadcast_in_dim(x, (3, 4, 2), (0, 1)),
    [arg((3, 1), "complex64")],
    lambda x: np.broadcast_to(x[..., None], (3, 4, 2)),
)
_add(
    p.broadcast_in_dim_p,
    "scalar",
    lambda x: p.broadcast_in_dim(x, (2, 3), ()),
    [arg((), "bfloat16")],
    lambda x: np.broadcast_to(x, (2, 3)),
)
_add(
    p.broadcast_in_dim_p,
    "bool",
    lambda x: p.broadcast_in_dim(x, (2, 3), (1,)),
    [arg((3,), "bool")],
    lambda x: np.broadcast_to(x, (2, 3)),
)
_add(
    p.broadcast_in_dim_p,
    "empty",
    lambda x: p.broadcast_in_dim(x, (0, 3), (1,)),
    [arg((3,))],
    lambda x: np.zeros((0, 3)),
)

_add(p.reshape_p, "2d", lambda x: p.reshape(x, (2, 6)), [arg((3, 4))], lambda x: x.reshape(2, 6))
_add(
    p.reshape_p,
    "prefix",
    lambda x: p.reshape(x, (2, 3, 2, 2)),
    [arg((2, 3, 4), "int32")],
    lambda x: x.reshape(2, 3, 2, 2),
)
_add(
    p.reshape_p,
    "order",
    lambda x: p.reshape(x, (4, 6), (2, 0, 1)),
    [arg((2, 3, 4))],
    lambda x: x.transpose(2, 0, 1).reshape(4, 6),
)
_add(
    p.reshape_p, "scalar", lambda x: p.reshape(x, ()), [arg((1, 1), "float8_e4m3fn")], lambda x: x.reshape(()), grad=()
)
_add(p.reshape_p, "empty", lambda x: p.reshape(x, (0,)), [arg((2, 0))], lambda x: x.reshape(0))

_add(p.transpose_p, "3d", lambda x: p.transpose(x, (2, 0, 1)), [arg((2, 3, 4))], lambda x: x.transpose(2, 0, 1))
_add(p.transpose_p, "int4", lambda x: p.transpose(x, (1, 0)), [arg((2, 3), "int4")], lambda x: x.T)

_add(p.squeeze_p, "two", lambda x: p.squeeze(x, (0, -1)), [arg((1, 3, 1))], lambda x: x[0, :, 0])
_add(p.squeeze_p, "uint8", lambda x: p.squeeze(x, (1,)), [arg((3, 1, 2), "uint8", 0, 9)], lambda x: x[:, 0])

_add(p.rev_p, "one", lambda x: p.rev(x, (1,)), [arg((2, 3))], lambda x: x[:, ::-1])
_add(p.rev_p, "two", lambda x: p.rev(x, (2, 0)), [arg((2, 3, 4), "complex64")], lambda x: x[::-1, :, ::-1])

_add(p.slice_p, "plain", lambda x: p.slice(x, (1, 0), (3, 2)), [arg((4, 3))], lambda x: x[1:3, :2])
_add(p.slice_p, "strided", lambda x: p.slice(x, (1, 0), (8, 5), (3, 2)), [arg((9, 5))], lambda x: x[1:8:3, :5:2])
_add(p.slice_p, "empty", lambda x: p.slice(x, (2,), (2,), (2,)), [arg((4,), "int32")], lambda x: x[2:2])
_add(
    p.slice_p, "in dim", lambda x: p.slice_in_dim(x, -3, None, 2, -1), [arg((2, 5), "bfloat16")], lambda x: x[:, -3::2]
)
_add(p.slice_p, "index", lambda x: p.index_in_dim(x, -2, 1, keepdims=False), [arg((2, 5))], lambda x: x[:, -2])


def _padded(x, value, config):
    for axis, (low, high, interior) in enumerate(config):
        rows = [row for row in np.moveaxis(x, axis, 0)]
        shape = np.moveaxis(x, axis, 0).shape[1:]
        fill = np.full(shape, value, x.dtype)
        out = []
        for i, row in enumerate(rows):
            out += ([fill] * interior if i else []) + [row]
        out = [fill] * low + out[max(0, -low) :]
        out = out + [fill] * high if high >= 0 else out[: len(out) + high]
        x = np.moveaxis(np.stack(out), 0, axis)
    return x


def _pad_case(name, shape, config, dtype="float32"):
    _add(
        p.pad_p,
        name,
        lambda x, v: p.pad(x, v, config),
        [arg(shape, dtype), arg((), dtype)],
        lambda x, v: _padded(x, v, config),
    )


_pad_case("edges", (2, 3), ((1, 2, 0), (0, 1, 0)))
_pad_case("interior", (2, 3), ((1, 0, 2), (0, 1, 1)))
_pad_case("negative", (3, 5), ((-1, 0, 0), (-1, -2, 0)))
_pad_case("negative interior", (3, 4), ((-2, 1, 1), (2, -3, 2)))
_pad_case("int", (3,), ((1, 1, 1),), "int32")
_pad_case("complex", (3,), ((1, -1, 1),), "complex64")

_add(
    p.concatenate_p,
    "three",
    lambda *xs: p.concatenate(xs, 1),
    [arg((2, 3)), arg((2, 1)), arg((2, 0))],
    lambda *xs: np.concatenate(xs, 1),
)
_add(
    p.concatenate_p,
    "bool",
    lambda *xs: p.concatenate(xs, 0),
    [arg((2,), "bool"), arg((3,), "bool")],
    lambda *xs: np.concatenate(xs),
)
_add(
    p.concatenate_p,
    "int4",
    lambda *xs: p.concatenate(xs, 0),
    [arg((2, 3), "int4"), arg((1, 3), "int4")],
    lambda *xs: np.concatenate(xs),
)
_add(p.stack_p, "middle", lambda *xs: p.stack(xs, 1), [arg((2, 3)), arg((2, 3))], lambda *xs: np.stack(xs, 1))
_add(
    p.stack_p,
    "back",
    lambda *xs: p.stack(xs, -1),
    [arg((2, 3)), arg((2, 3)), arg((2, 3))],
    lambda *xs: np.stack(xs, -1),
)
_add(p.stack_p, "scalars", lambda *xs: p.stack(xs), [arg((), "int32"), arg((), "int32")], lambda *xs: np.stack(xs))
_add(p.unstack_p, "middle", lambda x: p.unstack(x, 1), [arg((2, 3, 4))], lambda x: tuple(np.moveaxis(x, 1, 0)))
_add(
    p.unstack_p, "vector", lambda x: p.unstack(x), [arg((3,), "bfloat16")], lambda x: tuple(map(np.asarray, x)), grad=()
)
_add(p.split_p, "back", lambda x: p.split(x, (1, 0, 3), -1), [arg((2, 4))], lambda x: tuple(np.split(x, (1, 1), 1)))
_add(p.split_p, "front", lambda x: p.split(x, (2, 2), 0), [arg((4, 2), "int32")], lambda x: tuple(np.split(x, 2)))
_add(p.tile_p, "2d", lambda x: p.tile(x, (2, 3)), [arg((3, 2))], lambda x: np.tile(x, (2, 3)))
_add(p.tile_p, "none", lambda x: p.tile(x, (0, 2)), [arg((3, 2), "int32")], lambda x: np.tile(x, (0, 2)))

for _dtype in ("int32", "float32", "bfloat16", "complex64", "uint8", "int4"):
    _add(
        p.iota_p,
        _dtype,
        lambda d=_dtype: p.broadcasted_iota(d, (2, 3), 1),
        [],
        lambda d=_dtype: np.broadcast_to(np.arange(3), (2, 3)).astype(getattr(ml_dtypes, d, d)),
        batch=(),
    )
_add(p.empty_p, "float", lambda: p.empty((2, 3), "float32"), [], None, batch=())
