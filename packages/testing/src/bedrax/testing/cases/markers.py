"""Records of markers."""

import numpy as np

from bedrax import lax
from bedrax.lax.primitives import markers as p
from bedrax.testing.records import OpCase, arg


def _sunk(x):
    lax.dce_sink(lax.sin(x))
    return lax.mul(x, x)


def _by_platform(x):
    return lax.platform_dependent(x, tpu=lax.cos, cpu=lax.sin, default=lax.neg)


CASES = [
    OpCase(p.stage_p, "vector", lambda x: lax.mul(lax.stage(x), x), (arg((3,)),), oracle=np.square),
    OpCase(p.hint_p, "of_a_product", lambda x: p.hint(lax.mul(x, x), (("k", "1"),)), (arg((3,)),), oracle=np.square),
    OpCase(p.dce_sink_p, "unused", _sunk, (arg((3,)),), oracle=np.square),
    OpCase(p.platform_index_p, "of_three", _by_platform, (arg((2, 3)),), oracle=np.sin),
]

UNSAMPLED = {
    p.create_token_p: "a token is not an array; its tests are in core's test_markers.py",
    p.after_all_p: "a token is not an array; its tests are in core's test_markers.py",
}
