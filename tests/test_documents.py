"""The examples in docstrings of a few modules run; `nox -s documents` runs those of all."""

import ast
import functools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import run_documents
import run_mission


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
def test_every_public_name_has_an_example_and_describes_its_arguments():
    missing = [f"[n for face in d.faces() for n in d.{check}(face)]" for check in ("lacking", "lacking_arguments")]
    shown = run("-c", f"import run_documents as d; print({', '.join(missing)}, list(d.left_over()))")
    assert shown.strip() == "[] [] []"


def example_of_a_function(x, y=0, /, *, scale=1, offset=0):
    """Replaced in the test."""


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Their sum.\n\nArgs:\n  x, y: arrays.\n  scale, offset: numbers.", ""),
        ("Their sum.\n\nArgs:\n  a, b: arrays, by position.\n  scale, offset: numbers.", ""),
        ("Their sum; arguments as in `add`.", ""),
        ("Their sum.\n\nArgs: see `add`.", ""),
        ("Their sum, by `scale` and `offset`.", "no section"),
        ("Their sum.\n\nArgs:\n  scale: a number.", "offset"),
        ("Their sum.\n\nArgs:\n  x: an array.\n\nExamples:\n\n  >>> add(1, scale=2, offset=3)", "scale, offset"),
        ("Their sum.\n\nReturns:\n  An array.", "scale, offset"),
    ],
)
def test_a_parameter_that_is_not_described_is_found(monkeypatch, text, missing):
    found = ("here.add", example_of_a_function, text)
    monkeypatch.setattr(run_documents, "stated", lambda module: [found])
    assert list(run_documents.lacking_arguments("here")) == ([f"here.add: {missing}"] if missing else [])


SOURCES = sorted(Path(__file__).parents[1].glob("packages/*/src/**/*.py"))
ENTRY = re.compile(r"\*{0,2}`?\w+`?((, | and | or )\*{0,2}`?\w+`?)*:\s")  # the names of an entry, at its beginning
PREFIX = re.compile(r"\b(jax\.|core\.|lax\.|numpy\.|jnp\.|scipy\.|nn\.|special\.|linalg\.)+(?=\w)")


@functools.cache
def docstrings():
    """(file and line, docstring, names of the parameters) of each function, and of each class, whose names are None."""
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and (text := ast.get_docstring(node)):
                function = isinstance(node, ast.FunctionDef)
                names = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)} if function else None
                found.append((f"{path.name}:{node.lineno}", text, names))
    return found


def wrong_entries(text, parameters):
    """The entries of the section ``Args`` that do not begin with names of parameters, as a line that is not indented."""
    section = re.search(r"^Args:\n((?:  .*\n?)*)", text, re.MULTILINE)
    for entry in re.split(r"\n(?=  \S)", section[1] if section else ""):
        line = " ".join(entry.split()) + " "
        names = ENTRY.match(line)
        if line.strip() and (not names or not set(re.findall(r"\w+", names[0])) - {"and", "or"} <= parameters):
            yield line.strip()


def repeated_examples(text):
    """The blocks of statements and results that a docstring has twice, perhaps by another public name."""
    blocks = [PREFIX.sub("", b.strip()) for b in re.split(r"\n\s*\n", text)]
    return {b for b in blocks if b.startswith(">>>") and len(b) > 40 and blocks.count(b) > 1}


def test_sections_of_arguments_name_parameters():
    """A line that continues an entry is indented: else the manual shows it as a paragraph between the entries."""
    functions = [(where, text, names) for where, text, names in docstrings() if names is not None]
    wrong = [f"{where}: {entry}" for where, text, names in functions for entry in wrong_entries(text, names)]
    assert not wrong, "\n".join(wrong)


def test_no_docstring_shows_an_example_twice():
    wrong = [f"{where}: {block}" for where, text, _ in docstrings() for block in repeated_examples(text)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Sum.\n\nArgs:\n  x,\n    y: arrays,\n    or numbers.\n  z: one.", []),
        ("Sum.\n\nArgs:\n  x, y, z: arrays,\n  or numbers.", ["or numbers."]),
        ("Sum.\n\nArgs:\n  x, y, z: an array.\n  Default: 0.", ["Default: 0."]),
    ],
)
def test_a_wrong_entry_is_found(text, wrong):
    assert list(wrong_entries(text, {"x", "y", "z"})) == wrong


def test_an_example_by_another_name_is_found():
    shown = ">>> numbers = jax.{}top([1., 2., 3.]) + jax.{}top([4.])\n>>> sum(numbers)\n7.0"
    assert repeated_examples(f"Top.\n\n{shown.format('', '')}\n\n{shown.format('core.', 'core.')}\n")
    assert not repeated_examples(f"Top.\n\n{shown.format('', '')}\n\n{shown.replace('7', '8').format('', '')}\n")


def test_help_shows_examples_and_names_that_are_the_same_function_share_one():
    run(PROGRAMS / "help_examples.py")


def test_examples_of_a_few_modules():
    """Plain functions have examples, and functions that factories make."""
    plain = ("bedrax.pytree.paths", "bedrax.lax.dynamic_slices", "bedrax.numpy.windows")
    made = ("bedrax.numpy.segments", "bedrax.numpy.fft", "bedrax.numpy.scalars", "bedrax.scipy.stats.norm")
    shown = run(run_documents.__file__, *plain, *made)
    assert int(shown.split()[0]) > 70, shown


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
ROWS = {"0": {"indent": "010", "prints": "2"}, "1": {"skip": "cut off"}, "2": {"before": "TWO = 2"}}


def test_blocks_of_a_mission_document_run():
    assert run_mission.run_document(MISSION, ROWS) == (2, [])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"3": {}}, "row 3 has no block"),
        ({"0": {"indnt": "010"}}, "row 0: unknown ['indnt']"),
        ({"1": {}}, "SyntaxError"),
        ({"0": {"indent": "00"}}, "2 levels of indentation for 3 lines"),
        ({"0": {"indent": "010", "prints": "3"}}, "'3' should be printed, got '2'"),
        ({"0": {"indent": "010", "raises": "wrong"}}, "an error with 'wrong' is expected, got None"),
        ({"0": {"indent": "010", "warns": "old"}}, "a warning with 'old' is expected"),
        ({"0": {"indent": "010", "edits": [["nowhere", ""]]}}, "'nowhere' occurs nowhere"),
    ],
)
def test_a_wrong_block_or_row_is_reported(change, message):
    _, wrong = run_mission.run_document(MISSION, ROWS | change)
    assert any(message in problem for problem in wrong), wrong


def test_rows_of_a_document_without_fences_name_lines():
    text = "Words, and a call:\n\nx = 1\nprint(x)\n\nMore words.\ny = 2\n"
    assert run_mission.run_document(text, {"3-4": {"prints": "1"}, "7-7": {}}) == (2, [])
    assert run_mission.run_document(text, {"5-5": {}}) == (0, ["row 5-5 has no block"])


def test_every_row_of_the_mission_is_well_formed():
    for rows in tomllib.loads(run_mission.TABLE.read_text(encoding="utf-8")).values():
        for row in rows.values():
            assert row.keys() <= run_mission.KEYS
            compile(row.get("before", ""), "<before>", "exec")
            assert all(len(edit) == 2 and re.compile(edit[0]) for edit in row.get("edits", ()))


@pytest.mark.parametrize(
    ("block", "status"),
    [
        ("logging.getLogger('jax.doctor').warning('a trap')", 1),
        ("logging.getLogger('jax.doctor').info('no trap')", 0),
        ("logging.basicConfig(); logging.getLogger('jax.doctor').warning('a trap that the page shows')", 0),
        ("__import__('warnings').warn('a Python warning')", 1),
        ("assert False", 1),
    ],
)
def test_a_page_that_logs_a_warning_fails(tmp_path, block, status):
    page = tmp_path / "page.md"
    page.write_text(f"```python\nimport logging\n{block}\n```\n", encoding="utf-8")
    tool = Path(run_documents.__file__).with_name("run_docs.py")
    done = subprocess.run([sys.executable, tool, page], capture_output=True, text=True)
    assert done.returncode == status, done.stdout
    assert ("a trap" in done.stdout) == (status == 1 and "a trap" in block)
