"""Upstream's interface, and where this one differs: missing names and different parameters.

`interface.json` has the public names of upstream's modules, the parameters of their functions and classes, and the
names that `isinstance` takes (`tools/upstream_interface.py` reads these). Here an ``=`` after a name stands for a
default.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bedrax.core.signatures import signature_of
from bedrax.extend import unsupported

TABLE = json.loads(Path(__file__).with_name("interface.json").read_text(encoding="utf-8"))

_UFUNCS = (
    "add bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum multiply"
    " negative subtract"
)
# Why the parameters are others: reason -> paths of functions.
DIFFERENT: dict[str, tuple[str, ...]] = {
    "functions make what it is a class of, and users read it: its attributes are upstream's, its parts are not": (
        "jax.Shard", "jax.stages.Compiled", "jax.stages.Lowered", "jax.stages.Traced", "jax.experimental.checkify.Error",
        *(f"jax.interpreters.mlir.{name}" for name in ("ModuleContext", "LoweringRuleContext")),
        "jax.extend.lowering.LoweringRuleContext", "jax.extend.core.Token",
        *(f"jax.experimental.jet.{name}" for name in ("JetTrace", "JetTracer")), "jax.interpreters.ad.JVPTrace",
        *(f"jax.interpreters.partial_eval.{name}" for name in ("DynamicJaxprTracer", "JaxprTracer")),
        "jax.experimental.sparse.transform.SparseTrace",
    ),
    "a call of it is an error that names the function to use": (
        "jax.Array", "jax.numpy.ndarray", "jax.Ref", "jax.ref.Ref",
    ),
    "its class methods make one, with upstream's parameters; a device's slots and semaphores have no place here": (
        "jax.experimental.pallas.tpu.BufferedRef",
    ),
    "its method init makes one with a first value": (
        "jax.experimental.pallas.mosaic_gpu.ACC", "jax.experimental.pallas.mosaic_gpu.WGMMAAccumulatorRef",
    ),
    "of the parameters that upstream gives to the mesh there is kernel_name": ("jax.experimental.pallas.mosaic_gpu.kernel",),
    "upstream's parameters are any number of operands, of which each number but one is an error": (
        *(f"jax.numpy.{name}" for name in _UFUNCS.split()), "jax.lax.random_gamma_grad",
    ),
    "upstream's takes the arguments of any function of this kind; this one has those of its own": (
        "jax.api_util.flatten_fun", "jax.api_util.flatten_fun_nokwargs",
        *(f"jax.experimental.jet.{name}" for name in ("jet_fun", "jet_subtrace", "traceable")),
    ),
    "upstream's is an option's context manager, whose only argument is given by position": ("jax.sharding.no_collectives",),
    "a keyword that is none of its parameters, such as a misspelt one, is refused": (
        "jax.experimental.jet.jet", "jax.experimental.jet.jet2",
    ),
    "a pair, of which upstream renames the argument": ("jax.interpreters.partial_eval.PartialVal",),
    "a private parameter of upstream's own tests": ("jax.extend.backend.clear_backends",),
}  # fmt: skip

# Why `isinstance` does not take a name here: reason -> paths.
NOT_CLASSES: dict[str, tuple[str, ...]] = {
    "a function that returns a context manager, which programs enter and do not compare": tuple(
        f"jax.extend.source_info_util.{name}" for name in ("set_name_stack", "transform_name_stack", "user_context")
    )
}


def find(path: str) -> Any:
    """The value of a public name, or None if it does not exist."""
    module, _, name = path.rpartition(".")
    with warnings.catch_warnings():  # names that upstream removed warn when they are looked up
        warnings.simplefilter("ignore")
        try:
            return getattr(importlib.import_module(module), name, None)
        except ImportError:
            return None


def missing() -> tuple[list[str], int]:
    """The names that upstream has and this one has not, and how many upstream has."""
    paths = [f"{module}.{name}" for module, names in TABLE["names"].items() for name in names.split()]
    return [path for path in paths if find(path) is None and not _is_none(path)], len(paths)


def _is_none(path: str) -> bool:
    module, _, name = path.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), name)
    except ImportError:
        return False


def _read(text: str) -> inspect.Signature:
    """A text of the table as a signature."""
    names = re.sub(r"=(?=[,)])", "=None", text)
    scope: dict[str, Any] = {}
    exec(f"def f{names}: pass", scope)
    return inspect.signature(scope["f"])


def unlike(upstream: str, function: Any) -> str | None:
    """The first difference that a program written for upstream's function would meet in `function`; None if there is
    none.

    Args:
      upstream: its parameters, as in the table.
    """
    kinds = inspect.Parameter
    if isinstance(function, enum.EnumType):
        return None  # a member is looked up by its value
    theirs = list(_read(upstream).parameters.values())
    if [p.kind for p in theirs] == [kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD]:
        return None  # upstream does not say which
    try:
        ours = list(signature_of(function).parameters.values())
    except (TypeError, ValueError) as error:
        return f"its parameters are not known: {error}"
    if [p.kind for p in ours] == [kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD]:
        return "it takes any arguments"
    by_position = [p.name for p in ours if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    by_name = {p.name for p in ours if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)}
    rest = {p.kind for p in ours if p.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)}
    for i, p in enumerate(theirs):
        if p.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD):
            if p.kind not in rest:
                return f"it does not take {p}"
        else:
            named = p.kind is not kinds.POSITIONAL_ONLY
            if named and p.name not in by_name and kinds.VAR_KEYWORD not in rest:
                return f"it has no parameter {p.name}"
            if p.kind is not kinds.KEYWORD_ONLY and kinds.VAR_POSITIONAL not in rest:
                here = ours[i] if i < len(by_position) else None
                apart = here is not None and here.kind is kinds.POSITIONAL_ONLY and kinds.VAR_KEYWORD in rest
                if here is None or named and here.name != p.name and not apart:
                    return f"the parameter at position {i} is not {p.name}"
    needed = {p.name for p in ours if p.default is p.empty and p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)}
    more = needed - {p.name for p in theirs if p.default is p.empty}
    positional_only = any(p.kind is kinds.POSITIONAL_ONLY for p in theirs)
    return f"it needs {sorted(more)}" if more and not positional_only else None


def different() -> Iterator[tuple[str, str]]:
    """(path, difference) of each function of the table that exists and is not refused."""
    for path, upstream in TABLE["parameters"].items():
        function = find(path)
        refused = getattr(unsupported, path.rpartition(".")[2], None)
        if unsupported.why(path) is None and (function is None or function is not refused):
            how = "it is not there" if function is None else unlike(upstream, function)
            if how is not None:
                yield path, how


def not_classes() -> Iterator[str]:
    """The paths that `isinstance` takes upstream and does not take here."""
    for path in (f"{module}.{name}" for module, names in TABLE["classes"].items() for name in names.split()):
        value = find(path)
        if value is not None and unsupported.why(path) is None:
            try:
                isinstance(object(), value)
            except TypeError:
                yield path
