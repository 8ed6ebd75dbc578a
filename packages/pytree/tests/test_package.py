"""The package as a whole: its README runs, its engine can be chosen, all of its names exist."""

import ast
import doctest
import os
import pathlib
import subprocess
import sys

import pytest

README = pathlib.Path(__file__).parents[1] / "README.md"


def test_readme_examples():
    result = doctest.testfile(str(README), module_relative=False)
    assert result.attempted >= 10 and result.failed == 0


def test_docstring_examples():
    program = pathlib.Path(__file__).parent / "programs" / "examples.py"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True, timeout=120)
    failed, attempted = ast.literal_eval(done.stdout.splitlines()[-1])
    assert attempted >= 60 and failed == 0, done.stdout


def test_all_names_exist_and_are_documented(tu):
    from bedrax.pytree import tree

    text = README.read_text(encoding="utf-8")
    for module in (tu, tree):
        for name in module.__all__:
            assert hasattr(module, name)
    assert [n for n in tu.__all__ if n != "_registry" and f"`{n}`" not in text] == []


def _engine_of_a_new_process(choice):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    env.pop("BEDRAX_PYTREE_ENGINE", None)
    if choice is not None:
        env["BEDRAX_PYTREE_ENGINE"] = choice
    code = "import sys, bedrax.pytree as p; print(p.engine_name, 'jaxlib' in sys.modules)"
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)


def test_the_python_engine_loads_no_jaxlib():
    assert _engine_of_a_new_process("python").stdout.split() == ["python", "False"]


def test_the_native_engine_is_preferred():
    pytest.importorskip("jaxlib")
    assert _engine_of_a_new_process(None).stdout.split() == ["native", "True"]


def test_a_wrong_choice_is_an_error():
    assert "BEDRAX_PYTREE_ENGINE='fast' names no tree engine" in _engine_of_a_new_process("fast").stderr


def test_the_native_registry_is_the_one_of_jaxlib():
    jaxlib_pytree = pytest.importorskip("jaxlib._jax").pytree
    import bedrax.pytree as p

    if p.engine_name == "native":
        assert p.default_registry is jaxlib_pytree.default_registry()
        assert p.PyTreeDef is jaxlib_pytree.PyTreeDef
