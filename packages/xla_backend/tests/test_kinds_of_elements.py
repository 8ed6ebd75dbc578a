"""Arrays hold numbers and booleans: other NumPy arrays are TypeErrors, wherever they are passed."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.jitting import jit
from bedrax.xla_backend.placement import device_put

OTHERS = {
    "texts": np.array(["a", "b"]),
    "bytes": np.array([b"a"]),
    "objects": np.array([None, 1], object),
    "dates": np.array(["2020-01-01"], "datetime64[D]"),
    "records": np.zeros(2, [("a", "f4")]),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("use", [device_put, lax.asarray, jit(lambda x: x)], ids=["device_put", "asarray", "jit"])
def test_other_arrays_are_errors(name, use):
    with pytest.raises(TypeError):
        use(OTHERS[name])


def test_the_order_of_bytes_is_no_kind():
    for dtype in (">f4", "<i2", ">c8", "?"):
        assert device_put(np.ones(2, dtype)).tolist() == [1, 1]
