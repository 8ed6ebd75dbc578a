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


def run(*arguments):
    command = [sys.executable, "-W", "ignore", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(run_documents.__file__).parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("order", ["", "reversed"])
def test_every_public_name_has_an_example(order):
    """In whatever order names are asked for: the first one decides which example an object of two names has."""
    missing = f"[n for face in {order}(d.faces()) for n in d.lacking(face)]"
    shown = run("-c", f"import run_documents as d; print({missing}, list(d.left_over()))")
    assert shown.strip() == "[] []"


def test_examples_of_the_face():
    """Those of a few modules; `nox -s documents` runs all."""
    assert "no example" not in run(
        run_documents.__file__, "jax.tree", "jax.ops", "jax.custom_batching", "jax.numpy.fft"
    )


def test_help_shows_examples_and_names_that_are_the_same_function_share_one():
    code = """
import pydoc, jax, jax.numpy as jnp
assert "Examples:\\n" in pydoc.render_doc(jnp.arccos) and jnp.arccos is jnp.acos
assert jnp.acos.__doc__.count("Examples:") == 1
assert "1, 10" in pydoc.render_doc(jax.vmap) or ">>> jax.vmap" in pydoc.render_doc(jax.vmap)
"""
    run("-c", code)


def test_examples_of_two_modules():
    """In a process of their own: once `jax` is imported, public functions say that they are its."""
    assert not run(run_documents.__file__, "bedrax.pytree.paths", "bedrax.lax.dynamic_slices").startswith("0 of")
