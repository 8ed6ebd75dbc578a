"""The examples in docstrings of a few modules run; `nox -s documents` runs those of all."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import run_documents
import run_mission
from mission_blocks import DOCUMENTS, Row


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


@pytest.mark.needs("tensorflow")  # all modules of the face are imported
@pytest.mark.parametrize("order", ["", "reversed"])
def test_every_public_name_has_an_example(order):
    """In any order of the names: the first one decides which example an object with two names has."""
    missing = f"[n for face in {order}(d.faces()) for n in d.lacking(face)]"
    shown = run("-c", f"import run_documents as d; print({missing}, list(d.left_over()))")
    assert shown.strip() == "[] []"


def test_examples_of_the_face():
    """Examples of a few modules; `nox -s documents` runs all."""
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
    """In a separate process: once `jax` is imported, public functions have its names as their modules."""
    assert not run(run_documents.__file__, "bedrax.pytree.paths", "bedrax.lax.dynamic_slices").startswith("0 of")


MISSION = """Some words.

```
>>> def f(x):
... return x + 1
>>> print(f(1))
2
```

```python
broken(
```

```
print("result", TWO)
```
"""
ROWS = (Row(0, "010", prints="2"), Row(1, why="cut off"), Row(2, before="TWO = 2", prints="result 2"))


def complaints(rows, text=MISSION, fenced=True):
    return run_mission.run_document(text, rows, fenced)


def test_blocks_of_a_mission_document_run():
    assert complaints(ROWS) == (2, 1, [])


@pytest.mark.parametrize(
    "rows, message",
    [
        (ROWS[:2], "block 2 has no row"),
        ((*ROWS, Row(3)), "row 3 has no block"),
        ((ROWS[0], Row(1), ROWS[2]), "SyntaxError"),
        ((Row(0, "00"), *ROWS[1:]), "2 levels of indentation for 3 lines"),
        ((Row(0, "010", prints="3"), *ROWS[1:]), "'3' should be printed, got '2'"),
        ((Row(0, "010", raises="wrong"), *ROWS[1:]), "an error with 'wrong' is expected, got None"),
        ((Row(0, "010", warns="old"), *ROWS[1:]), "a warning with 'old' is expected"),
        ((Row(0, "010", edits=(("nowhere", ""),)), *ROWS[1:]), "'nowhere' occurs nowhere"),
    ],
)
def test_a_wrong_block_or_row_is_reported(rows, message):
    _, _, wrong = complaints(rows)
    assert len(wrong) == 1 and message in wrong[0], wrong


def test_code_without_fences_has_rows_by_lines():
    text = "Words, and a call:\n\nx = 1\nprint(x)\n\nMore words.\ny = 2\n"
    assert complaints((Row((3, 4), prints="1"), Row((7, 7))), text, fenced=False) == (2, 0, [])
    _, _, wrong = complaints((Row((3, 4)), Row((5, 5))), text, fenced=False)
    assert wrong == ["rows (5, 5) hold nothing", "line 7 looks like code, and has no row: y = 2"]


def test_every_block_that_does_not_run_has_a_reason():
    rows = [row for table, _ in DOCUMENTS.values() for row in table]
    assert len({row.why for row in rows if row.why}) > 5 and sum(not row.why for row in rows) == 100
