"""Names of the interface that are objects of NumPy, ml_dtypes or jaxlib: they take our arrays and dtypes."""

import jax
import jax.numpy as jnp
import pytest


def test_numpy_prints_arrays():
    x = jnp.array([1, 2])
    assert jnp.array_str(x) == "[1 2]" and jnp.array_repr(x) == "ArrayImpl([1, 2], dtype=int32)"


def test_options_of_printing_are_those_of_numpy():
    before = jnp.get_printoptions()
    with jnp.printoptions(precision=2):
        assert str(jnp.array([1 / 3])) == "[0.33]"
    try:
        jnp.set_printoptions(precision=3)
        assert repr(jnp.array([1 / 3])) == "Array([0.333], dtype=float32)"
    finally:
        jnp.set_printoptions(**before)
    assert jnp.get_printoptions() == before


def test_limits_of_dtypes():
    assert jnp.finfo(jnp.bfloat16).eps == 0.0078125 and jax.dtypes.finfo(jnp.bfloat16).bits == 16
    assert jnp.iinfo(jnp.int16).max == 32767 and jax.dtypes.iinfo(jnp.int4).max == 7
    assert repr(jnp.ones(2, jax.dtypes.bfloat16)) == "Array([1, 1], dtype=bfloat16)"


def test_classes_of_jaxlib():
    assert isinstance(jax.devices()[0], jax.Device)
    x = jnp.ones(2)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1
    assert issubclass(jax.errors.JaxRuntimeError, RuntimeError)
