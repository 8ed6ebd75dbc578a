"""The example as a test: the curves must agree, and a program for more devices compiles."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

for module in "flax", "optax", "matplotlib":
    if find_spec(module) is None:
        pytest.skip(f"the example needs {module}", allow_module_level=True)


def run(*arguments) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "examples.parallel", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_seven_ways_agree(tmp_path):
    result = run("--steps", 10, "--out", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "curves.png").stat().st_size > 10_000


def test_a_model_that_has_not_learned_fails(tmp_path):
    result = run("--steps", 1, "--out", tmp_path)
    assert result.returncode == 1 and "nothing was learned" in result.stderr, result.stdout + result.stderr


def test_exchanges_of_a_step(tmp_path):
    result = run("--explain", 8, "--out", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    found = json.loads((tmp_path / "explained_8.json").read_text(encoding="utf-8"))
    assert found["sliced (jit)"]["kept"] < found["data (jit)"]["kept"]
    assert (
        found["zero (explicit)"]["sent"] < found["sliced (jit)"]["sent"]
    )  # each device gets the sums of its slices only
    assert found["data (jit)"]["exchanges"] < found["tensor (shard_map)"]["exchanges"]


def test_pictures_are_those_of_the_program():
    from examples.parallel import pictures

    for name, draw in pictures.PICTURES.items():
        assert (Path(pictures.__file__).parent / name).read_text(encoding="utf-8") == draw()
