"""The example as a test: it must succeed, and it must be able to fail."""

import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from examples.digits import parts

ROOT = Path(__file__).parents[3]

for module in "flax", "optax", "sklearn", "matplotlib", "rich":
    if find_spec(module) is None:
        pytest.skip(f"the example needs {module}", allow_module_level=True)


def run(module: str, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def python(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


def test_the_example_trains_exports_and_runs_everywhere(tmp_path):
    # `nox -s demo` runs the other API and the other kind of checkpoint.
    here = [name for name in parts.EXPORTS if parts.why_left_out(name) is None]
    result = run("examples.digits", "--api", "linen", "--checkpoint", "msgpack", "--out", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    out = tmp_path / "linen"
    assert (out / "digits.png").stat().st_size > 10_000
    found = set()
    for library in {parts.EXPORTS[name].used_with for name in here}:
        with np.load(out / f"outputs_{library}.npz") as outputs:
            models = {name.partition("/")[0] for name in outputs}
            assert all(outputs[f"{model}/probs360"].shape == (360, 10) for model in models)
            found |= models
    assert found == set(here)
    left_out = [line for line in result.stdout.splitlines() if line.startswith("left out")]
    assert left_out == [line for name in parts.EXPORTS if (line := parts.why_left_out(name))]


def test_a_part_that_lacks_a_module_is_left_out_with_the_reason():
    none, newer, older = (lambda module: False), (3, 14, 0), (3, 13, 9)
    assert parts.why_left_out("plain", lambda module: True, newer) is None
    why = "tensorflow has wheels for Python up to 3.13, and this is Python 3.14"
    assert parts.why_left_out("model.tflite", none, newer) == f"left out: the TFLite file: {why}"
    assert parts.why_left_out("model.tflite", none, older) == "left out: the TFLite file: tensorflow is not installed"
    only_orbax = lambda module: module == "orbax"
    assert "tensorstore is not installed" in parts.why_left_out("orbax", only_orbax, newer)
    assert parts.why_left_out("program", none, (3, 15, 0)) is None
    assert {parts.why_left_out(name, none) is None for name in parts.EXPORTS} == {True, False}


def test_a_requested_part_must_be_available():
    code = """
import sys
from examples.digits import __main__ as demo, parts
demo.why_left_out = lambda name: parts.why_left_out(name, lambda module: module not in ("tensorflow", "tensorstore"))
demo.main()
"""
    for option in ["--kind", "native"], ["--checkpoint", "orbax"]:
        result = subprocess.run([sys.executable, "-c", code, *option], cwd=ROOT, capture_output=True, text=True)
        assert result.returncode == 2 and re.search(r"error: the .*: tensor\w+ ", result.stderr), result.stderr


def test_the_last_python_with_wheels_is_that_of_the_declarations():
    texts = (
        (ROOT / "pyproject.toml").read_text(encoding="utf-8"),
        (ROOT / "packages/jax2tf/pyproject.toml").read_text(encoding="utf-8"),
    )
    root, bridge = map(tomllib.loads, texts)
    declared = [*root["tool"]["uv"]["override-dependencies"], *bridge["project"]["optional-dependencies"]["tf"]]
    for module, (major, minor) in parts.NEWEST_PYTHON.items():
        assert [r for r in declared if r.startswith(module) and f"python_version < '{major}.{minor + 1}'" in r]


def test_a_model_that_has_not_learned_fails(tmp_path):
    result = run("examples.digits", "--api", "linen", "--epochs", 1, "--out", tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "requirement is not met" in result.stdout


def test_agreement_is_bad_for_different_outputs_and_nan():
    code = """
import numpy as np
from examples.digits.__main__ import agreement
ones = np.ones(3, np.float32)
assert agreement([(ones, ones)]).good
assert agreement([(100 * ones, 100 * ones + 5e-4)]).good
assert not agreement([(ones, ones), (ones, ones + 2e-5)]).good
assert not agreement([(ones, ones * np.nan)]).good
try: agreement([(ones, ones[:2])])
except ValueError: pass
else: raise SystemExit("shapes were not compared")
"""
    result = python(code)
    assert result.returncode == 0, result.stderr


def test_the_consumer_cannot_import_jax():
    code = """
import sys
from examples.digits.consume import BLOCKED, Blocker
sys.meta_path.insert(0, Blocker(BLOCKED["tensorflow"]))
for name in "jax", "jax.numpy", "jaxlib", "bedrax.core", "flax":
    try: __import__(name)
    except ModuleNotFoundError as error: assert "blocked" in str(error)
    else: raise SystemExit(f"{name} was imported")
"""
    result = python(code)
    assert result.returncode == 0, result.stderr


def test_the_split_is_fixed_and_balanced():
    code = """
import numpy as np
from examples.digits import data
a, b = data.load(), data.load()
assert all(np.array_equal(x, y) for x, y in zip(a, b))
assert a.train_images.shape == (1437, 8, 8, 1) and a.test_images.shape == (360, 8, 8, 1)
assert a.train_images.dtype == np.float32 and a.train_images.min() == 0 and a.train_images.max() == 1
assert np.bincount(a.test_labels, minlength=10).min() >= 34
assert np.abs(a.train_images.reshape(-1, 1, 64) - a.test_images.reshape(1, -1, 64)).sum(-1).min() > 0
"""
    result = python(code)
    assert result.returncode == 0, result.stderr
