"""Data of the roofline model: sums, multiples and sizes are those of upstream 0.12.0.1."""

import numpy as np
import pytest

from bedrax.core.avals import ShapedArray
from bedrax.xla_backend.roofline import RooflineResult, RooflineShape


def test_shapes():
    aval = ShapedArray((2, 3), np.dtype(np.float32))
    shape = RooflineShape.from_aval(aval)
    assert (shape.size, shape.bytes, RooflineShape.total_bytes([aval, aval])) == (6, 24, 48)
    with pytest.raises(TypeError, match="the type of an array"):
        RooflineShape.from_aval(3)


def test_results():
    one = RooflineResult(flops=3, ici_bytes={"x": 2}, peak_hbm_bytes=5)
    two = RooflineResult(flops=1, ici_bytes={"x": 1, "y": 2}, peak_hbm_bytes=7, hbm_bytes=2)
    assert one + two == RooflineResult(flops=4, ici_bytes={"x": 3, "y": 2}, peak_hbm_bytes=7, hbm_bytes=2)
    assert two * 3 == 3 * two == RooflineResult(flops=3, ici_bytes={"x": 3, "y": 6}, peak_hbm_bytes=21, hbm_bytes=6)
    assert RooflineResult.zeros() + one == one
