"""Unsupported names can be imported and used with isinstance; other uses raise."""

import importlib

import numpy as np
import pytest

from bedrax.extend import refused, unsupported

# Declarations: libraries derive from these and register them when they are imported.
DECLARED: set = set()


@pytest.mark.parametrize("name", sorted(set(unsupported.reasons) - DECLARED))
def test_the_use_of_an_unsupported_name_raises_the_reason(name):
    thing = getattr(unsupported, name)
    with pytest.raises(NotImplementedError) as error:
        thing(np.ones(3))
    assert str(error.value) == f"{name}: {unsupported.reasons[name]}"


def test_every_name_of_the_table_exists():
    assert all(hasattr(unsupported, name) for name in unsupported.reasons)


@pytest.mark.parametrize("path", sorted(refused.reasons))
def test_the_use_of_a_name_of_a_refused_module_raises_the_reason(path):
    module, _, name = path.rpartition(".")
    home = importlib.import_module(f"bedrax.extend.refused.{module.rpartition('.')[2]}")
    thing = getattr(home, name)
    assert thing is getattr(home, name) and thing.__name__ == name and name in home.__all__
    assert isinstance(thing, type) == name[0].isupper()
    with pytest.raises(NotImplementedError) as error:
        thing(np.ones(3), option=1)
    assert str(error.value) == f"{path}: {refused.reasons[path]}" and unsupported.why(path) == refused.reasons[path]


def test_reasons_hold_for_patterns_of_places():
    assert "attention" in unsupported.why("jax.experimental.pallas.ops.gpu.attention.mha")
    assert unsupported.why("jax.numpy.sin") is None
    with pytest.raises(AttributeError, match="nothing"):
        importlib.import_module("bedrax.extend.refused.thunky").nothing
