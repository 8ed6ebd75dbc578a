"""Compiled programs as bytes, and topologies of devices."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bedrax import lax
from bedrax.core.jitting import jit
from bedrax.lax.primitives.callbacks import debug_callback
from bedrax.xla_backend import clients, flags
from bedrax.xla_backend.compute_on import compute_on, compute_on2
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.executables import deserialize_and_load, serialize
from bedrax.xla_backend.placement import device_put
from bedrax.xla_backend.sharding import Space
from bedrax.xla_backend.topologies import get_attached_topology, get_topology_desc, make_mesh

PROGRAMS = Path(__file__).with_name("programs")

ONES = np.ones(3, np.float32)
TABLE = np.arange(3, dtype=np.float32)
INSTALLED = runtime.jaxlib_version


def f(x, y):
    return {"sum": lax.add(x, lax.mul(y["b"], TABLE))}


def test_a_program_is_loaded_and_run_without_its_function():
    saved = serialize(jit(f).lower(ONES, {"b": ONES}).compile())
    again = deserialize_and_load(*saved)
    for _ in range(2):
        np.testing.assert_array_equal(again(ONES, {"b": 2 * ONES})["sum"], 1 + 2 * TABLE)
    with pytest.raises(TypeError, match=r"float32\[3\].*float32\[4\]"):
        again(np.ones(4, np.float32), {"b": ONES})
    on_first = deserialize_and_load(*saved, execution_devices=clients.devices()[:1])
    np.testing.assert_array_equal(on_first(ONES, {"b": ONES})["sum"], 1 + TABLE)
    with pytest.raises(ValueError, match="1 devices, got 0"):
        deserialize_and_load(*saved, execution_devices=[])


def test_a_program_that_was_itself_loaded_is_serialized_with_its_code(tmp_path):
    """XLA writes an executable that it has loaded, of bytes or of the folder of compiled programs, without its code."""
    again = deserialize_and_load(*serialize(jit(f).lower(ONES, {"b": ONES}).compile()))
    np.testing.assert_array_equal(deserialize_and_load(*serialize(again))(ONES, {"b": ONES})["sum"], 1 + TABLE)
    with flags.enable_compilation_cache(True), flags.compilation_cache_dir(str(tmp_path)):
        for _ in range(2):
            found = jit(lambda x: lax.sin(x)).lower(ONES).compile()
            np.testing.assert_allclose(deserialize_and_load(*serialize(found))(ONES), np.sin(ONES), rtol=1e-6)
        assert [*tmp_path.glob("*-cache")]
        found = jit(lambda x: lax.sin(x)).lower(ONES).compile()
        for entry in tmp_path.iterdir():
            entry.unlink()
        np.testing.assert_allclose(deserialize_and_load(*serialize(found))(ONES), np.sin(ONES), rtol=1e-6)


def test_a_result_of_a_loaded_program_has_the_memory_of_the_program():
    compiled = jit(lambda x: device_put(lax.mul(x, x), Space.Host)).lower(ONES).compile()
    again = deserialize_and_load(*serialize(compiled))
    assert again(ONES).sharding == compiled(ONES).sharding
    assert again(ONES).sharding.memory_kind == "pinned_host"


def test_another_process_loads_it(tmp_path):
    data, _, _ = serialize(jit(lambda x: lax.sin(x)).lower(ONES).compile())
    path = tmp_path / "program"
    path.write_bytes(pickle.dumps(data))
    code = PROGRAMS / "load_executable.py"
    subprocess.run([sys.executable, code, str(path)], check=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})


def test_programs_of_other_versions_of_jaxlib_are_refused_with_both_versions_named(monkeypatch):
    saved = serialize(jit(f).lower(ONES, {"b": ONES}).compile())
    monkeypatch.setattr(runtime, "jaxlib_version", "0.0.7")
    with pytest.raises(ValueError, match=rf"with jaxlib {re.escape(INSTALLED)}, and jaxlib 0\.0\.7 is installed"):
        deserialize_and_load(*saved)
    foreign = serialize(jit(f).lower(ONES, {"b": ONES}).compile())
    monkeypatch.undo()
    with pytest.raises(ValueError, match=rf"with jaxlib 0\.0\.7, and jaxlib {re.escape(INSTALLED)} is installed"):
        deserialize_and_load(*foreign)


def test_damaged_programs_and_other_bytes_are_refused():
    data, *trees = serialize(jit(f).lower(ONES, {"b": ONES}).compile())
    flipped = bytearray(data)
    flipped[len(data) * 2 // 3] ^= 8
    for damaged in (bytes(flipped), data[:-1], data + b"x", data[:20]):
        with pytest.raises(ValueError, match="damaged"):
            deserialize_and_load(damaged, *trees)
    for other in (b"", pickle.dumps(1)):
        with pytest.raises(ValueError, match="not a compiled program"):
            deserialize_and_load(other, *trees)


def test_callbacks_are_not_saved():
    def calls(x):
        debug_callback(print, x)
        return x

    with pytest.raises(ValueError, match="bytes cannot hold"):
        serialize(jit(calls).lower(ONES).compile())


def test_topologies():
    topology = get_attached_topology()
    assert topology.devices == clients.devices()
    n = len(topology.devices)
    assert make_mesh(topology, (1, n), ("x", "y")).shape == {"x": 1, "y": n}
    with pytest.raises(ValueError, match=f"has {n + 1} devices, got {n}"):
        make_mesh(topology, (n + 1,), ("x",))
    assert make_mesh(topology, (n,), ("x",), contiguous_submeshes=True).devices.tolist() == topology.devices
    for platform in ("cpu", "nowhere"):
        with pytest.raises(
            NotImplementedError, match=f"no installed plug-in describes devices of the platform '{platform}'"
        ):
            get_topology_desc("v4:2x2", platform)


def test_the_host_of_a_cpu_is_the_cpu():
    with compute_on("device_host"):
        assert lax.sin(np.float32(0)) == 0
    assert compute_on2(compute_type="device", out_memory_spaces=Space.Device)(lax.neg)(1.0) == -1
    with pytest.raises(ValueError, match="compute_on: the unit must be one of"):
        compute_on2(lax.neg, compute_type="elsewhere", out_memory_spaces=Space.Device)
