"""A renamed parameter."""

import pytest

from bedrax.xla_backend import make_mesh


def test_the_old_name_of_a_parameter():
    with pytest.warns(DeprecationWarning, match="called axis_sizes") as found:
        mesh = make_mesh(axis_shapes=(1,), axis_names=("x",))
    assert found[0].filename == __file__ and mesh == make_mesh(axis_sizes=(1,), axis_names="x") == make_mesh(
        (1,), ("x",)
    )
    with pytest.raises(TypeError, match="give it once, as axis_sizes="):
        make_mesh(axis_shapes=(1,), axis_sizes=(1,), axis_names=("x",))
