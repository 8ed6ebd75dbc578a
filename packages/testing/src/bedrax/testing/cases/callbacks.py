"""Records of callbacks."""

import numpy as np

from bedrax import lax
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.lax.primitives import callbacks as p
from bedrax.testing.records import OpCase, arg


def _on_host(x):
    x = np.asarray(x)
    return np.sin(x), x.sum(-1)


def _pure(vmap_method):
    def fun(x):
        types = (ShapeDtypeStruct(x.shape, x.dtype), ShapeDtypeStruct(x.shape[:-1], x.dtype))
        return p.pure_callback(_on_host, types, x, vmap_method=vmap_method)

    return fun


def _io(x):
    return p.io_callback(lambda x: np.asarray(x) * 2, ShapeDtypeStruct(x.shape, x.dtype), x)


def _watched(x):
    y = lax.sin(x)
    p.debug_callback(lambda v: np.asarray(v), y)
    return y


CASES = [
    OpCase(p.pure_callback_p, "sequential", _pure("sequential"), (arg((3,)),), oracle=_on_host, grad=()),
    OpCase(p.pure_callback_p, "batches", _pure("broadcast_all"), (arg((3,)),), oracle=_on_host, grad=()),
    OpCase(p.io_callback_p, "unordered", _io, (arg((3,)),), oracle=lambda x: x * 2, grad=()),
    OpCase(p.debug_callback_p, "unordered", _watched, (arg((3,)),), oracle=np.sin),
]
