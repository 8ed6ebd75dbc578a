"""Reads parameters and classes off an installed upstream jax, for `tests/surface/interface.json`.

    UPSTREAMS_PYTHON tools/upstream_interface.py

Run it with a Python where upstream's jax is installed, and not this one. The names of modules are kept by hand:
upstream's modules have names of other libraries in them, which are not part of its interface.
"""

import contextlib
import enum
import importlib
import inspect
import json
import types
import warnings
from pathlib import Path
from typing import NewType

TABLE = Path(__file__).parents[1] / "tests" / "surface" / "interface.json"


def parameters(path: str) -> str:
    """The parameters of a function as ``(a, b=, /, *, c=, **options)``: ``=`` for those that have a default."""
    module, _, name = path.rpartition(".")
    read, star, after = (
        list(inspect.signature(getattr(importlib.import_module(module), name)).parameters.values()),
        0,
        [],
    )
    for i, p in enumerate(read):
        star |= p.kind is p.VAR_POSITIONAL
        if p.kind is p.KEYWORD_ONLY and not star:
            after, star = [*after, "*"], 1
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        after.append(mark + p.name + ("" if p.default is p.empty else "="))
        if p.kind is p.POSITIONAL_ONLY and (i + 1 == len(read) or read[i + 1].kind is not p.POSITIONAL_ONLY):
            after.append("/")
    return f"({', '.join(after)})"


def is_function(path: str) -> bool:
    """Whether programs call the object of this name: a function or a class that is not an enumeration, error or name of a
    type."""
    module, _, name = path.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    if isinstance(value, (types.ModuleType, types.GenericAlias, enum.EnumType, enum.Enum, NewType)):
        return False
    return callable(value) and not (isinstance(value, type) and issubclass(value, BaseException))


def is_class(path: str) -> bool:
    """Whether `isinstance` accepts the object of this name: a class, or a union of classes."""
    module, _, name = path.rpartition(".")
    try:
        isinstance(object(), getattr(importlib.import_module(module), name))
    except TypeError:
        return False
    return True


def main() -> None:
    warnings.simplefilter("ignore")
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    import jax

    if "bedrax" in jax.__version__ or not hasattr(jax, "_src"):
        raise SystemExit(f"this is not upstream's jax: {jax.__file__}")
    table["version"] = jax.__version__
    found: dict[str, str] = {}
    for path in (f"{module}.{name}" for module, public in table["names"].items() for name in public.split()):
        if is_function(path):
            with contextlib.suppress(TypeError, ValueError):  # inspect knows no parameters
                found[path] = parameters(path)
    table["parameters"] = found
    paths = {module: [f"{module}.{name}" for name in public.split()] for module, public in table["names"].items()}
    classes = {m: " ".join(p.rpartition(".")[2] for p in of if is_class(p)) for m, of in paths.items()}
    table["classes"] = {module: names for module, names in classes.items() if names}
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
