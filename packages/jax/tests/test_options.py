"""Every option of `jax.config` has an effect, or a stated reason why not."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from bedrax.core import config
from bedrax.parallel import meshes

PROGRAMS = Path(__file__).with_name("programs")


def flags():
    return [flag for flag in config.all_flags() if not flag.name.startswith("test_")]


@pytest.mark.parametrize("text", ["1", "", "no such value"])
def test_every_option_is_read_from_the_environment_or_refused_by_name(text):
    for flag in flags():
        try:
            value = flag._from_text(text, f"the environment variable {flag.env}")
        except ValueError as error:
            assert flag.name in str(error) and flag.env in str(error)
        else:
            assert flag.validate(value) == value


def test_the_mesh_in_force_is_no_option():
    assert not isinstance(meshes._concrete, config.Flag) and not {"mesh", "jax_mesh"} & config.config.values.keys()
    program = "import jax; from jax.sharding import Mesh; print(jax.sharding.get_abstract_mesh().empty)"
    names = ("JAX_MESH", "MESH", "MESH_BLOCKS", "HINTS_IN_FORCE", "USER_CONTEXT_0", "BEDRAX_USER_CONTEXT_0")
    environment = {**os.environ, **dict.fromkeys(names, "1")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "True", done.stderr


def test_an_option_without_effect_changes_no_key():
    always = [flag for flag in flags() if isinstance(flag._inert, str)]  # others act with some versions of jaxlib
    assert always and not [flag.name for flag in always if flag.keyed]


def test_setting_an_option_without_effect_warns():
    with pytest.warns(UserWarning, match="jax_enable_pgle has no effect: programs are compiled once"):
        jax.config.update("jax_enable_pgle", True)
    jax.config.update("jax_enable_pgle", False)


def test_options_work_before_their_owner_is_imported():
    code = PROGRAMS / "options_before_their_owner.py"
    environment = {"JAX_PLATFORMS": "cpu", "JAX_THREEFRY_PARTITIONABLE": "0", "PATH": ""}
    result = subprocess.run([sys.executable, code], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr


def test_a_late_option_traces_nothing_again():
    code = PROGRAMS / "late_options.py"
    result = subprocess.run([sys.executable, code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_cache_misses_are_explained(caplog):
    def f(x, y, *, n=1):
        return x + y["a"] * n

    jitted = jax.jit(f, static_argnames="n")
    with jax.explain_cache_misses(True), caplog.at_level("WARNING"):
        logged = []
        calls = (
            (1.0, {"a": 1.0}),
            (2.0, {"a": 2.0}),
            (1.0, {"a": np.ones(3, "f")}),
            (np.ones(3, "f"), {"a": 1, "b": 2}),
        )
        for call in calls:
            jitted(*call)
            logged.append([r.getMessage() for r in caplog.records])
            caplog.clear()
        jitted(*calls[0], n=2)
        logged.append([r.getMessage() for r in caplog.records])
        caplog.clear()
        with jax.default_matmul_precision("highest"):
            jitted(*calls[0])
        logged.append([r.getMessage() for r in caplog.records])
    words = ["not been traced", None, "y['a'] is float32[3], was float32[]", "structure", "static arguments", "options"]
    for messages, word in zip(logged, words, strict=True):
        assert not messages if word is None else word in messages[0] and "f at" in messages[0], (messages, word)
    with caplog.at_level("WARNING"):
        caplog.clear()
        jax.jit(lambda x: x)(1.0)
    assert not caplog.records


def test_the_number_of_devices_is_settled_at_the_start():
    jax.devices()
    before = jax.config.jax_num_cpu_devices
    with pytest.raises(RuntimeError, match="before the first array"):
        jax.config.update("jax_num_cpu_devices", 97)
    assert jax.config.jax_num_cpu_devices == before
    jax.config.update("jax_num_cpu_devices", before)
