"""Programs that tests run are files: no string with more than three lines of code is run."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [f for pattern in ("packages/*/tests/**/*.py", "tests/**/*.py") for f in sorted(ROOT.glob(pattern))]


def runs_text(tree):
    """The names of functions that run a text: `exec`, and those of the module that pass "-c" to an interpreter."""
    found = {"exec"}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            here = {n.value for n in ast.walk(function) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
            calls = {getattr(n.func, "id", "") for n in ast.walk(function) if isinstance(n, ast.Call)}
            if "-c" in here or "exec" in calls:
                found.add(function.name)
    return found


def long_programs(tree):
    """The lines of strings with more than three lines of code in modules or calls that run text."""
    runners = runs_text(tree)
    # Keyword arguments of such calls are other things, such as the files that a program reads.
    run = [a for call in ast.walk(tree) if runs(call, runners) for argument in call.args for a in ast.walk(argument)]
    for node in ast.walk(tree):  # the arguments of an interpreter
        if isinstance(node, ast.List) and any(getattr(e, "value", "") == "-c" for e in node.elts):
            run.extend(ast.walk(node))
    names = {n.id for n in run if isinstance(n, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") in names for t in node.targets):
            run.extend(ast.walk(node))
    return [n.lineno for n in run if isinstance(n, ast.Constant) and is_long(n.value)]


def runs(node, runners):
    """Whether a node is a call that runs text."""
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") in runners


def is_long(value):
    return isinstance(value, str) and sum(bool(line.strip()) for line in value.splitlines()) > 3


@pytest.mark.parametrize("folder", sorted({f.relative_to(ROOT).parts[:2] for f in FILES}), ids="/".join)
def test_programs_are_files(folder):
    here = [f for f in FILES if f.relative_to(ROOT).parts[:2] == folder]
    found = [
        f"{f.relative_to(ROOT)}:{line}"
        for f in here
        for line in long_programs(ast.parse(f.read_text(encoding="utf-8")))
    ]
    assert not found, f"move these programs into a file of the folder `programs` next to the test: {found}"


LONG = '"""a = 1\nb = 2\nc = 3\nd = 4"""'


@pytest.mark.parametrize(
    "text",
    [
        f'code = {LONG}\nsubprocess.run([sys.executable, "-c", code])',
        f'P = {{"a": {LONG}}}\ndef test(name):\n    subprocess.run([sys.executable, "-c", SETUP + P[name]])',
        f'def run(code):\n    subprocess.run([sys.executable, "-c", code])\nrun({LONG})',
        f"exec({LONG}, space)",
    ],
)
def test_programs_in_strings_are_found(text):
    assert long_programs(ast.parse(text)) == [text[: text.index('"""')].count("\n") + 1]
    assert not long_programs(ast.parse(text.replace("\nb = 2", "")))
