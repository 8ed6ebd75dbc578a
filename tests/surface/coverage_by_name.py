"""Public names without a record that no test names.

A test names a public name if its code, or the text of a program in it, has the name as a word.
"""

from __future__ import annotations

import ast
import enum
import re
import types
from pathlib import Path
from typing import Any, TypeVar

import arguments
import records

from bedrax.core.config import Flag
from bedrax.core.tracing import Primitive
from bedrax.extend import unsupported

ROOT = Path(__file__).parents[2]
_CODE = re.compile(r"[A-Za-z_]\w*")


def words(file: Path) -> set[str]:
    """The identifiers of a file of tests, and the words of its strings (programs, tables of names)."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.update(node.name.split("."))
        elif isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.update(_CODE.findall(node.value))
    return found


def is_data(value: Any) -> bool:
    """Whether a value has nothing to test: members of enumerations, fields, primitives (all have records), options (a
    test observes each), names for annotations, and names of other libraries."""
    if isinstance(value, enum.Enum | Primitive | Flag | property) or type(value).__name__ in (
        "_tuplegetter",
        "member_descriptor",
    ):
        return not isinstance(value, property) or not arguments.is_ours(value.fget)
    if not callable(value) and not isinstance(value, staticmethod | classmethod):
        return True
    return isinstance(value, TypeVar | types.GenericAlias | types.UnionType) or not arguments.is_ours(
        getattr(value, "__func__", value)
    )


def not_named() -> dict[str, str]:
    """Public names and members that no test names: last part -> the whole name."""
    files = [*ROOT.glob("packages/*/tests/**/*.py"), *ROOT.glob("tests/**/*.py")]
    named = set().union(*map(words, files))
    tried = {f"jax.{name}" for name in records.MODULES} | {"jax.extend.core.primitives"}  # all primitives have records
    out: dict[str, str] = {}
    for path, value in arguments.public():
        home, _, last = path.rpartition(".")
        if home in tried or is_data(value) or ".mlir.dialects" in home or last in named or last in unsupported.reasons:
            continue
        if unsupported.why(path) is not None:
            continue
        out.setdefault(last, path)
    return out
