import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@functools.cache
def functions(file):
    path = ROOT / file
    return (
        {n.name for n in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(n, ast.FunctionDef)}
        if path.exists()
        else ()
    )


@pytest.fixture
def absent_tests():
    """A function: the names of tests that do not exist, among ``file::function``, with paths from the root."""
    return lambda names: [n for n in names if n.partition("::")[2] not in functions(n.partition("::")[0])]
