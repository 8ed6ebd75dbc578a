"""Arrays of float0, the tangents of integers: they have a shape and no bits."""

import numpy as np
import pytest

import bedrax.xla_backend as xla
from bedrax.core import avals, dtypes
from bedrax.core.jitting import jit

ZEROS = np.zeros((2, 3), dtypes.float0)
PLACES = {
    "no place": lambda x: xla.device_put(x),
    "a device": lambda x: xla.device_put(x, xla.devices()[0]),
    "a tree": lambda x: xla.device_put({"x": x}, xla.devices()[0])["x"],
    "a copy": lambda x: xla.device_put(x, may_alias=False),
    "a result": jit(lambda x: x),
    "one of two results": lambda x: jit(lambda x, y: (x, y))(x, np.float32(1))[0],
    "the host": xla.device_get,
}


@pytest.mark.parametrize("how", PLACES)
def test_an_array_of_float0_stays_one(how):
    found = PLACES[how](ZEROS)
    assert (type(found), found.dtype, found.shape) == (np.ndarray, dtypes.float0, (2, 3))


def test_the_name_of_the_type():
    assert avals.ShapedArray((2,), dtypes.float0).str_short() == "float0[2]"
