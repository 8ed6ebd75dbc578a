"""Which parameters of the public functions are never read: looked for in the source, through decorators."""

from __future__ import annotations

import ast
import functools
import importlib
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax


def modules() -> list[str]:
    """The public modules of the face."""
    face = Path(jax.__file__).parent
    names = (".".join(("jax", *f.relative_to(face).with_suffix("").parts)) for f in face.rglob("*.py"))
    return sorted(m for name in names if "._" not in (m := name.removesuffix(".__init__")))


def public() -> Iterator[tuple[str, Any]]:
    """(path, value) of every public name, and of every method of a public class of ours."""
    seen: set[Any] = set()
    for module in modules():
        with warnings.catch_warnings():  # names that upstream removed warn when they are looked up
            warnings.simplefilter("ignore", DeprecationWarning)
            home = importlib.import_module(module)
            values = {name: getattr(home, name) for name in sorted(getattr(home, "__all__", None) or vars(home))}
        for name, value in values.items():
            if name.startswith("_") or isinstance(value, types.ModuleType):
                continue
            yield f"{module}.{name}", value
            if isinstance(value, type) and value not in seen and is_ours(value):
                seen.add(value)
                for member in sorted(dir(value)):
                    owner = next((c for c in value.__mro__ if member in vars(c)), object)
                    if is_ours(owner) and (not member.startswith("_") or member in ("__init__", "__call__")):
                        yield f"{module}.{name}.{member}", vars(owner)[member]


def is_ours(value: Any) -> bool:
    home = getattr(value, "__module__", None) or ""
    return home.startswith(("bedrax", "jax")) and not home.startswith("jaxlib")


def function_of(value: Any) -> types.FunctionType | None:
    """The Python function that is called in the end, behind wrappers, descriptors and partial applications."""
    for _ in range(10):
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        elif isinstance(value, functools.partial):
            value = value.func
        elif isinstance(value, functools.cached_property | functools.partialmethod):
            value = value.func
        elif "__wrapped__" in getattr(value, "__dict__", {}):
            value = value.__wrapped__
        elif isinstance(value, types.MethodType):
            value = value.__func__
        elif not isinstance(value, types.FunctionType) and isinstance(getattr(value, "fun", None), types.FunctionType):
            value = value.fun
        else:
            break
    return value if isinstance(value, types.FunctionType) else None


@functools.cache
def _definitions(file: str) -> dict[tuple[str, int], ast.AST]:
    """The definitions of a file by name and by the line where they, or their decorators, begin."""
    out: dict[tuple[str, int], ast.AST] = {}
    if not Path(file).exists():  # written by dataclass, which reads what it is given
        return out
    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            out[node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)])] = node
        elif isinstance(node, ast.Lambda):
            out["<lambda>", node.lineno] = node
    return out


def unread(function: types.FunctionType) -> list[str]:
    """The parameters that the body does not read; none if all it does is to raise, or nothing."""
    code = function.__code__
    node = _definitions(code.co_filename).get((code.co_name, code.co_firstlineno))
    if node is None:
        return []
    body = node.body if isinstance(node.body, list) else [node.body]
    said = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    refuses = said and isinstance(said[-1], ast.Return) and "_refuse(" in ast.unparse(said[-1])
    if (
        not said
        or refuses
        or isinstance(said[-1], ast.Raise)
        and not any(isinstance(s, ast.Return) for s in ast.walk(node))
    ):
        return []
    read = {n.id for s in said for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    arguments = node.args
    names = [
        a.arg
        for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        if a
    ]
    return [n for n in names if n not in read | {"self", "cls", "_", "__"}]


def silent() -> list[set[str]]:
    """The parameters that are accepted and never read: for each, as `jax.module.function(parameter)`, all its names."""
    out: dict[tuple, set[str]] = {}
    for path, value in public():
        function = function_of(value)
        if function is not None and is_ours(function):
            for name in unread(function):
                out.setdefault((function, name), set()).add(f"{path}({name})")
    return list(out.values())
