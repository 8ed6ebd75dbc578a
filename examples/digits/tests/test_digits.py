"""The example as a test: it must succeed, and it must be able to fail."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]

for module in "flax", "optax", "sklearn", "matplotlib", "rich", "tensorflow", "orbax":
    if find_spec(module) is None:
        pytest.skip(f"the example needs {module}", allow_module_level=True)


def run(module: str, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def python(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


def test_the_whole_way(tmp_path):
    # The other API and the other kind of checkpoint are what `nox -s demo` runs.
    result = run("examples.digits", "--api", "linen", "--checkpoint", "msgpack", "--out", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    out = tmp_path / "linen"
    assert (out / "digits.png").stat().st_size > 10_000
    with np.load(out / "outputs.npz") as outputs:
        assert {name.partition("/")[0] for name in outputs} == {"plain", "native", "model.tflite"}
        assert outputs["plain/probs360"].shape == (360, 10)


def test_a_model_that_has_not_learned_fails(tmp_path):
    result = run("examples.digits", "--api", "linen", "--epochs", 1, "--kind", "native", "--out", tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "requirement is not met" in result.stdout


def test_agreement_tells_right_from_wrong():
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
from examples.digits.consume import Blocker
sys.meta_path.insert(0, Blocker())
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
