"""Records of placement."""

import numpy as np

from bedrax import lax
from bedrax.lax.primitives import placement as p
from bedrax.testing.records import OpCase, arg


def _there_and_back(x):
    for kind in ("pinned_host", "device"):
        x = p.reshard_p.bind(x, to=p.Memory(kind), src=p.Memory("device"))
    return x


def _alike(x, y):
    return tuple(p.shard_alike_p.bind(lax.sin(x), y))


CASES = [
    OpCase(p.shard_alike_p, "two", _alike, (arg((3,)), arg((3,))), oracle=lambda x, y: (np.sin(x), y)),
    OpCase(p.reshard_p, "memories", lambda x: _there_and_back(lax.sin(x)), (arg((3,)),), oracle=np.sin),
    OpCase(
        p.reshard_p,
        "anywhere",
        lambda x: p.reshard_p.bind(x, to=p.anywhere, src=None),
        (arg((2, 3), "int32"),),
        oracle=lambda x: x,
    ),
]

UNSAMPLED = {p.inspect_sharding_p: "it has no results; its tests are in xla_backend's test_pictures.py"}
