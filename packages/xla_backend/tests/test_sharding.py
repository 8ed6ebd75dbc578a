"""Meshes, specs and shardings; several CPU devices in a separate process."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from bedrax.parallel.meshes import physical_mesh
from bedrax.xla_backend import sharding as s

PROGRAMS = Path(__file__).with_name("programs")

P = s.PartitionSpec


def test_partition_specs():
    assert repr(P("a", None, ("a", "b"), P.UNCONSTRAINED)) == "P('a', None, ('a', 'b'), UNCONSTRAINED)"
    assert P("a") == P(("a",))
    assert hash(P("a")) == hash(P(("a",)))
    assert P("a") != ("a",)
    assert tuple(P("a", "b"))[1] == "b"
    assert P("a") + P("b") == P("a", "b")
    assert pickle.loads(pickle.dumps(P("a", P.UNCONSTRAINED))) == P("a", P.UNCONSTRAINED)
    with pytest.raises(ValueError, match="both unreduced and reduced"):
        P(unreduced={"a"}, reduced={"a"})


def test_meshes_of_one_device():
    mesh = s.make_mesh((1, 1), ("x", "y"))
    assert dict(mesh.shape) == {"x": 1, "y": 1}
    assert mesh == s.make_mesh((1, 1), ("x", "y"))
    assert mesh.abstract_mesh.axis_names == ("x", "y")
    with mesh:
        assert physical_mesh() is mesh
    assert physical_mesh().empty
    named = s.NamedSharding(mesh, P("x"))
    assert named.is_fully_replicated
    assert named.shard_shape((4, 2)) == (4, 2)
    assert pickle.loads(pickle.dumps(named)) == named
    for spec, error in ((P("z"), "names the axis 'z'"), (P("x", "x"), "names the mesh axis 'x' twice")):
        with pytest.raises(ValueError, match=error):
            s.NamedSharding(mesh, spec)
    with pytest.raises(ValueError, match=r"\(64,\) needs 64 devices"):
        s.make_mesh((64,), ("x",))
    with pytest.raises(ValueError, match="one axis name per axis"):
        s.Mesh(mesh.devices, ("x",))


PROGRAM = PROGRAMS / "shardings.py"


def test_eight_cpu_devices():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    command = [sys.executable, PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    assert done.returncode == 0, done.stderr


def test_a_mesh_of_absent_devices_is_not_unpickled():
    make, (_, ids, *others) = s._reduce_mesh(s.make_mesh((1,), ("x",)))
    with pytest.raises(RuntimeError, match="no devices cpu:99 to unpickle this mesh"):
        make((1,), [(platform, 99) for platform, _ in ids], *others)
