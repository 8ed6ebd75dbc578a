"""Sharding rules without devices: the column, and its error for a missing rule."""

import pytest

from bedrax.lax.primitives import control_flow, elementwise, shaping
from bedrax.parallel import PartitionSpec, explicit
from bedrax.testing.records import all_primitives


def test_most_families_have_rules():
    have = [p for p in all_primitives() if explicit.sharding_rules.find(p) is not None]
    assert len(have) > 150
    assert explicit.sharding_rules[elementwise.add_p] is explicit.elementwise
    assert explicit.sharding_rules.find(shaping.reshape_p) is not explicit.elementwise
    assert explicit.sharding_rules.find(control_flow.scan_p) is None  # the types of its program tell


def test_missing_shardings_and_unknown_axes_are_errors():
    with pytest.raises(TypeError, match="out_sharding"):
        explicit.auto_axes(lambda x: x)(1.0)
    with pytest.raises(TypeError, match="in_sharding"):
        explicit.explicit_axes(lambda x: x)(1.0)
    with pytest.raises(ValueError, match="'z' is not an axis of the mesh in force"):
        explicit.auto_axes(lambda x: x, axes="z", out_sharding=PartitionSpec())(1.0)
    assert explicit.explicit_axes(lambda: 2.0)() == 2.0  # there is nothing to say it of
    assert explicit.reshard({"a": 1.0}, None) == {"a": 1.0}
