"""The examples in docstrings of a few modules run; `nox -s documents` runs those of all."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import run_documents


@pytest.mark.parametrize("text", [">>> 1 + 1\n3", "```python\n1 / 0\n```", "```python\n>>> 1 + 1\n3\n```"])
def test_an_example_that_is_wrong_is_reported(text):
    assert run_documents.has_example(text)
    assert run_documents.run_text("here", text, {})


@pytest.mark.parametrize("text", [">>> 1 + 1\n2", "```python\nassert 1\n```", "```python\n>>> 1 + 1\n2\n```"])
def test_an_example_that_is_right_is_not(text):
    assert run_documents.has_example(text)
    assert not run_documents.run_text("here", text, {})


def test_examples_of_two_modules():
    """In a process of their own: once `jax` is imported, public functions say that they are its."""
    command = [sys.executable, run_documents.__file__, "bedrax.pytree.paths", "bedrax.lax.dynamic_slices"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stdout.strip().startswith("0 of")
