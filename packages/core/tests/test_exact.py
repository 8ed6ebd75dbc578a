"""Keys made of values are equal only if types and bits are equal."""

import pickle

import numpy as np
import pytest

from bedrax.core.exact import exact, exact_items

NAN = float("nan")
DIFFERENT = [
    (1, True, 1.0, 1 + 0j, np.int32(1), np.int64(1), np.float32(1), np.bool_(True), (1,), None),
    (0.0, -0.0, 0, False, complex(0, -0.0), complex(-0.0, 0)),
    (complex(NAN, 1), complex(NAN, 2), complex(3, NAN)),
    ((1, (0.0,)), (1, (-0.0,)), (1.0, (0.0,)), (True, (0.0,))),
    ((np.int32(5),), (np.uint32(5),), (b"\5\0\0\0",), (np.int64(5),), (5,)),
    ((1, (np.float32(1),)), (1, (np.int32(0x3F800000),)), (1, ("s",)), (1, (b"s",))),
]


@pytest.mark.parametrize("values", DIFFERENT)
def test_different_values_have_different_keys(values):
    assert len({exact(v) for v in values}) == len(values)
    assert len({exact_items({"a": v}) for v in values}) == len(values)


@pytest.mark.parametrize("value", [v for values in DIFFERENT for v in values] + [NAN, np.float32(NAN), "a"])
def test_equal_values_have_equal_keys(value):
    again = pickle.loads(pickle.dumps(value))
    assert exact(again) == exact(value)
    assert hash(exact(again)) == hash(exact(value))


def test_payloads_of_nans_count():
    a, b = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    assert exact(a) != exact(b)


def test_the_hash_of_an_unhashable_value_is_an_error():
    with pytest.raises(TypeError):
        hash(exact((1, [2])))
