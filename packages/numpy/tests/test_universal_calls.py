"""What functions of the class `ufunc` say of themselves."""

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
