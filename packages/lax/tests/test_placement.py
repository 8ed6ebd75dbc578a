"""Placement: one primitive holds the places of values."""

import inspect

from bedrax import lax
from bedrax.core.staging import make_jaxpr
from bedrax.core.tables import shape_rules
from bedrax.core.tracing import Primitive
from bedrax.lax.primitives.placement import Memory, anywhere, placed, placed_result, reshard_p
from bedrax.testing.records import all_primitives


def test_no_other_primitive_has_a_sharding():
    """No rule can drop a sharding that it never gets."""
    prims = [prim for prim in all_primitives() if prim is not reshard_p]
    assert len(prims) > 100
    for prim in prims:
        names = inspect.signature(shape_rules[prim]).parameters
        assert not {"sharding", "out_sharding", "in_shardings", "out_shardings"} & set(names), prim


def test_places():
    there = Memory("pinned_host")
    assert there == Memory("pinned_host") != Memory("device") and hash(there) == hash(Memory("pinned_host"))
    assert there.with_dimension(0, "x") is there and anywhere.with_dimension(0, None) is anywhere
    assert placed(3, None) == 3 and placed_result(None, lambda x, y: x + y, 1, y=2) == 3


def test_programs_with_places_run_on_a_host():
    program = make_jaxpr(lambda x: reshard_p.bind(lax.sin(x), to=Memory("pinned_host"), src=Memory("device")))(1.0)
    assert isinstance(program.eqns[1].primitive, Primitive)
    assert "to=Memory('pinned_host')" in str(program)
