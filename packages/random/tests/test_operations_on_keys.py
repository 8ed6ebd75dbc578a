"""Operations on keys that are errors, and their types; arrays of keys that are filled with a number."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import lax, random
from bedrax.core import dtypes

ERRORS = {
    "add": (lambda k: k + 1, TypeError),
    "added": (lambda k: 1 + k, TypeError),
    "multiply": (lambda k: k * k, TypeError),
    "negative": (lambda k: -k, TypeError),
    "shift": (lambda k: k << 1, TypeError),
    "sum": (lambda k: jnp.sum(random.split(k)), TypeError),
    "max": (lambda k: jnp.max(random.split(k)), TypeError),
    "scatter_add": (lambda k: random.split(k).at[0].add(k), TypeError),
    "scatter_max": (lambda k: random.split(k).at[0].max(k), TypeError),
    "bincount": (lambda k: jnp.bincount(np.array([0, 1]), weights=random.split(k)), TypeError),
    "sort": (lambda k: jnp.sort(random.split(k)), TypeError),
    "sort by keys": (lambda k: lax.sort((random.split(k), jnp.arange(2)), num_keys=1), TypeError),
    "where": (lambda k: jnp.where(True, k, 0), ValueError),
    "concatenate": (lambda k: jnp.concatenate([random.split(k), jnp.zeros(2, np.uint32)]), ValueError),
    "stack": (lambda k: jnp.stack([k, random.key(0, impl="rbg")]), ValueError),
    "convert": (lambda k: lax.convert_element_type(k, np.int32), ValueError),
    "promote": (lambda k: jnp.promote_types(k.dtype, np.int32), TypeError),
    "result type": (lambda k: jnp.result_type(k, 1), dtypes.TypePromotionError),
}


@pytest.mark.parametrize("name", ERRORS)
def test_arithmetic_of_keys_is_an_error(name):
    call, error = ERRORS[name]
    with pytest.raises(error):
        call(random.key(0))


@pytest.mark.parametrize("value", [0, 3])
def test_keys_are_filled_with_a_number(value):
    key = random.key(0)
    for keys in (jnp.full_like(key, value, shape=(2,)), jnp.full((2,), value, key.dtype)):
        assert keys.dtype == key.dtype and (random.key_data(keys) == value).all()
    assert (random.key_data(jnp.ones_like(key)) == 1).all()
    with pytest.raises(TypeError, match="fill_value"):
        jnp.full_like(key, 1.5)
