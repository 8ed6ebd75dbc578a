"""Signatures of functions of the class `ufunc`, and the shape of None."""

import inspect

import numpy as np
import pytest

import bedrax.numpy as jnp

UFUNCS = [x for x in (getattr(jnp, n) for n in jnp.__all__) if isinstance(x, jnp.ufunc)]


@pytest.mark.parametrize("f", UFUNCS, ids=lambda f: f.__name__)
def test_number_of_operands(f):
    parameters = inspect.signature(f).parameters.values()
    assert sum(p.kind is p.POSITIONAL_ONLY for p in parameters) == f.nin
    with pytest.raises(TypeError, match=f"jnp.{f.__name__} takes {f.nin} operands, got 3"):
        f(*[np.ones(2)] * 3)


def test_none_has_a_shape_with_a_warning():
    for f, expected in ((jnp.shape, ()), (jnp.ndim, 0), (jnp.size, 1)):
        with pytest.warns(DeprecationWarning, match="is for arrays and scalars, got NoneType"):
            assert f(None) == expected
    assert jnp.expand_dims(np.ones(3), range(2)).shape == (1, 1, 3)
    assert jnp.ones(()).item() == 1 and jnp.arange(3).item(2) == 2
