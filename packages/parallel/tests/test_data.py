"""Meshes and specs are data: a device is any hashable object."""

import pickle

import numpy as np
import pytest

from bedrax.parallel import AbstractMesh, AxisType, Mesh, get_abstract_mesh, get_mesh, set_mesh
from bedrax.parallel import PartitionSpec as P
from bedrax.parallel.specs import DuplicateSpecError, check_pspec


def test_mesh_of_any_devices():
    mesh = Mesh(np.arange(6).reshape(2, 3), ("x", "y"), (AxisType.Auto, AxisType.Explicit))
    assert dict(mesh.shape) == {"x": 2, "y": 3} and mesh.size == 6
    assert mesh.abstract_mesh == AbstractMesh((2, 3), ("x", "y"), (AxisType.Auto, AxisType.Explicit))
    assert mesh.explicit_axes == ("y",) and mesh != mesh.update(axis_names=("x", "z"))


def test_mesh_in_force():
    mesh = Mesh(np.arange(2), ("x",))
    assert get_mesh().empty and get_abstract_mesh().empty
    with set_mesh(mesh):
        assert get_mesh() == mesh and get_abstract_mesh() == mesh.abstract_mesh
    assert get_mesh().empty


def test_specs():
    assert P("x", None) != P("x") and P(("x",)) == P("x") and P(()) == P(None)
    assert tuple(P("x") + P(None, "y")) == ("x", None, "y")
    assert pickle.loads(pickle.dumps(P("x", P.UNCONSTRAINED, unreduced={"y"}))) == P(
        "x", P.UNCONSTRAINED, unreduced={"y"}
    )
    assert P("x", unreduced={"y"}).to_ct_spec() == P("x", reduced={"y"})


@pytest.mark.parametrize(
    "spec, error, text",
    [
        (P("z"), ValueError, "the axis 'z', which the mesh does not have"),
        (P("x", "x"), DuplicateSpecError, "names the mesh axis 'x' twice"),
        (("x",), TypeError, "is a PartitionSpec, got"),
    ],
)
def test_bad_specs(spec, error, text):
    with pytest.raises(error, match=text):
        check_pspec(Mesh(np.arange(2), ("x",)), spec)
