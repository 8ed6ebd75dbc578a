"""Meshes and specs are data: a device is any hashable object."""

import enum
import pickle
import subprocess
import sys

import numpy as np
import pytest

from bedrax.core.avals import ShapedArray, ShapeDtypeStruct
from bedrax.parallel import (
    AbstractMesh,
    AxisType,
    ManualAxisType,
    Mesh,
    UnreducedKind,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
)
from bedrax.parallel import PartitionSpec as P
from bedrax.parallel.specs import DuplicateSpecError, check_pspec


def test_a_mesh_has_devices():
    for sizes in ((0,), (2, 0), (-1, 2)):
        with pytest.raises(ValueError, match="at least 1, got"):
            AbstractMesh(sizes, ("x", "y")[: len(sizes)])
    for devices in ([], np.empty((2, 0), object)):
        with pytest.raises(ValueError, match="needs a device at least"):
            Mesh(devices, ("x", "y")[: np.ndim(devices)])
    assert Mesh(np.empty((), object), ()).empty


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
        (P(None, unreduced={"x"}), ValueError, "their axes are Explicit .*; the mesh has .'x'. of type Auto"),
        (P(reduced={"x"}), ValueError, "AxisType.Explicit"),
        (P(unreduced={"z"}), ValueError, "the axis 'z', which the mesh does not have"),
    ],
)
def test_bad_specs(spec, error, text):
    with pytest.raises(error, match=text):
        check_pspec(Mesh(np.arange(2), ("x",)), spec)


@pytest.mark.parametrize(
    "fields, error, text",
    [
        (
            dict(unreduced={"x"}),
            ValueError,
            r"\['x'\] of P\('x', unreduced={'x'}.* both splitting a dimension and unreduced",
        ),
        (dict(reduced={"x", "y"}), ValueError, r"\['x'\] of P\('x', reduced"),
        (dict(unreduced={"y"}, reduced={"y"}), ValueError, r"\['y'\] of P"),
        (dict(unreduced={None}), ValueError, "unreduced has names of mesh axes, got None"),
        (dict(unreduced="data"), TypeError, "unreduced is a set of names of mesh axes, got 'data'"),
        (dict(reduced=["y"]), TypeError, "reduced is a set of names"),
    ],
)
def test_axes_of_partial_sums(fields, error, text):
    with pytest.raises(error, match=text):
        P("x", **fields)


def test_manual_axis_types():
    kind = ManualAxisType(varying={"x"}, unreduced={"y"})
    assert not kind.empty and ManualAxisType().empty and kind.vur == {"x", "y"} and not kind.reduced
    assert kind.to_ct_mat() == ManualAxisType(varying={"x"}, reduced={"y"}) and kind.to_ct_mat().to_ct_mat() == kind
    assert kind.update(varying=frozenset()) == ManualAxisType(unreduced={"y"}) and hash(kind) == hash(kind.update())
    assert pickle.loads(pickle.dumps(kind)) == kind
    types = (AxisType.Manual, AxisType.Manual, AxisType.Manual, AxisType.Auto)
    mesh = AbstractMesh((2, 2, 2, 2), ("x", "y", "z", "w"), types)
    assert kind.invarying(mesh) == {"z"} and ManualAxisType().invarying(mesh) == {"x", "y", "z"}
    with pytest.raises(ValueError, match="both varying and reduced"):
        ManualAxisType(varying={"x"}, reduced={"x"})
    with pytest.raises(TypeError, match="set of names"):
        ManualAxisType(varying="x")
    with pytest.raises(AttributeError, match="immutable"):
        kind.varying = frozenset()


def test_types_of_structs_have_the_axes_over_which_values_vary():
    varying = ManualAxisType(varying={"i"})
    struct = ShapeDtypeStruct((3,), np.float32, manual_axis_type=varying)
    assert struct.aval == ShapedArray((3,), np.float32, vma=frozenset({"i"})) and "manual_axis_type" in str(struct)
    assert struct.aval.manual_axis_type == varying and struct.update(shape=(2,)).manual_axis_type == varying
    assert struct != ShapeDtypeStruct((3,), np.float32)
    with pytest.raises(ValueError, match="partial sums over manual axes inside shard_map"):
        ShapeDtypeStruct((3,), np.float32, manual_axis_type=ManualAxisType(reduced={"i"})).aval.vma
    assert ShapedArray((3,), np.float32, manual_axis_type=varying) == struct.aval
    assert struct.aval.update(manual_axis_type=ManualAxisType()).vma == frozenset()
    with use_abstract_mesh(AbstractMesh((2, 2), ("i", "j"), (AxisType.Manual, AxisType.Explicit))):
        parts = ManualAxisType(varying={"j"}, unreduced={"i"}, unreduced_kind=UnreducedKind.max)
        typed = ShapedArray((3,), np.float32, manual_axis_type=parts)
    assert typed.manual_axis_type == typed.mat == parts and typed.short() == "f32[3]{V:j, U_max:i}"
    assert (
        typed.update(manual_axis_type=parts.update(unreduced=frozenset(), reduced={"i"})).short() == "f32[3]{V:j, R:i}"
    )
    assert typed.update(manual_axis_type=ManualAxisType()) == ShapedArray((3,), np.float32)


def test_types_have_no_layouts_and_no_memories_of_arrays():
    assert ShapedArray((3,), np.float32).layout is None
    assert ShapedArray((3,), np.float32, layout=None) == ShapedArray((3,), np.float32)
    with pytest.raises(NotImplementedError, match="types have no layouts, got rows"):
        ShapedArray((3,), np.float32, layout="rows")
    device, host = enum.Enum("Space", ["Device", "Host"])
    assert ShapeDtypeStruct((3,), np.float32, _memory_space=device) == ShapeDtypeStruct((3,), np.float32)
    with pytest.raises(NotImplementedError, match="got Space.Host; give a sharding"):
        ShapeDtypeStruct((3,), np.float32, _memory_space=host)
    with pytest.raises(TypeError, match="place"):
        ShapeDtypeStruct((3,), np.float32, place=device)


@pytest.mark.parametrize("make", [P, ManualAxisType])
def test_the_kind_of_partial_values(make):
    """As upstream 0.12.0.1 answers: a sum if not given, None where there is nothing partial."""
    assert make().unreduced_kind is None and make(unreduced={"y"}).unreduced_kind is UnreducedKind.sum
    most = make(unreduced={"y"}, unreduced_kind=UnreducedKind.max)
    assert most != make(unreduced={"y"}) == make(unreduced={"y"}, unreduced_kind=UnreducedKind.sum)
    assert hash(make(unreduced={"y"})) == hash(make(unreduced={"y"}, unreduced_kind=UnreducedKind.sum))
    assert pickle.loads(pickle.dumps(most)) == most and "unreduced_kind=" in repr(most) and "max" in repr(most)
    assert most.update(unreduced={"z"}).unreduced_kind is UnreducedKind.max
    assert most.update(unreduced=frozenset()).unreduced_kind is None
    assert most.update(unreduced_kind=UnreducedKind.min).unreduced_kind is UnreducedKind.min
    with pytest.raises(ValueError, match="None where no axis is unreduced"):
        make(unreduced_kind=UnreducedKind.max)
    with pytest.raises(TypeError, match="got 'max'"):
        make(unreduced={"y"}, unreduced_kind="max")


def test_specs_of_different_kinds_are_not_joined():
    most = P("x", unreduced={"y"}, unreduced_kind=UnreducedKind.max)
    assert (most + P("z")).unreduced_kind is UnreducedKind.max and most + ("z",) == most + P("z")
    with pytest.raises(TypeError, match="different kinds"):
        most + P("z", unreduced={"w"})
    with pytest.raises(NotImplementedError, match="for sums only"):
        most.to_ct_spec()


def test_use_abstract_mesh_and_set_mesh_restore_the_former_mesh():
    abstract = AbstractMesh((2,), ("x",))
    assert abstract.axis_types == (AxisType.Explicit,) and abstract.are_all_axes_explicit_or_manual
    with use_abstract_mesh(abstract) as inside:
        assert inside is abstract and get_abstract_mesh() is abstract
        with use_abstract_mesh(AbstractMesh((3,), ("y",))) as inner, pytest.raises(ValueError, match="AbstractMesh"):
            use_abstract_mesh(3)
        assert inner.axis_names == ("y",) and get_abstract_mesh() is abstract
    assert get_abstract_mesh().empty
    first, second = Mesh(np.array(["a"], object), "x"), Mesh(np.array(["b"], object), "y")
    with set_mesh(first):
        with set_mesh(second) as mesh:
            assert mesh is second
        assert get_mesh() is first and set_mesh(first).prev_mesh is first
    assert get_mesh().empty


def test_an_abstract_mesh_of_another_process_has_the_hash_of_an_equal_one():
    program = "import pickle, sys; from bedrax.parallel import AbstractMesh; mesh = AbstractMesh((2,), ('i',));"
    program += "sys.stdout.buffer.write(pickle.dumps(mesh))"
    saved = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    mesh = AbstractMesh((2,), ("i",))
    assert pickle.loads(saved) == mesh and pickle.loads(saved) in {mesh}
