"""Names of compiled programs on disk, made of the programs: one that is found is neither lowered nor compiled.

A program becomes bytes: its primitives by their homes, parameters, types and constants by their values, variables by
their numbers. What is lowered from these bytes also depends on the code of the rules, so the key has a fingerprint of
the files of Bedrax. A value that has no such bytes (a Python function of a user, a sharding, an effect) has no key:
its program is lowered, and named after its module.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import marshal
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from bedrax.core.avals import ShapedArray
from bedrax.core.context import trace_context
from bedrax.core.dtypes import ExtendedDType
from bedrax.core.ir import Jaxpr, Literal
from bedrax.lax import element_types
from bedrax.pytree import PyTreeDef
from bedrax.xla_backend import tables

_LARGE = 1 << 20  # bytes; the constants of inner programs are part of the key up to this size


class NoBytes(Exception):
    """Raised for a value that does not determine its bytes."""


def of(jaxpr: Jaxpr, platform: str, hoisted: tuple[bool, ...], *rest: Any) -> bytes | None:
    """The bytes of a program for a platform, or None.

    Args:
      hoisted: per constant, whether it is an argument: then only its type counts.
      rest: more values that the executable depends on.
    """
    try:
        code = fingerprint()
        program = _Encoder(platform).program(jaxpr, hoisted)
        context = _encode(tuple(sorted(trace_context(), key=lambda pair: pair[0])))
        return marshal.dumps((code, platform, program, context, _encode(rest)), 2)  # version 2 has no references
    except (NoBytes, ValueError, OSError, RecursionError):
        return None


def lines(jaxpr: Jaxpr, platform: str) -> tuple[Any, ...]:
    """A program as tuples of atoms, without the code of its rules.

    Raises:
      NoBytes: they would not determine the program.
    """
    return _Encoder(platform).program(jaxpr)


class _Encoder:
    """The programs of one key. A program that stands in several places is written once."""

    def __init__(self, platform: str) -> None:
        self.platform = platform
        self.programs: dict[Jaxpr, int] = {}

    def program(self, jaxpr: Jaxpr, hoisted: tuple[bool, ...] | None = None) -> tuple[Any, ...]:
        if jaxpr in self.programs:
            return "program", self.programs[jaxpr]
        if jaxpr.effects:
            raise NoBytes
        self.programs[jaxpr] = len(self.programs)
        numbers: dict[Any, int] = {}
        hoisted = hoisted or (False,) * len(jaxpr.consts)
        constants = [None if h else _constant(c) for c, h in zip(jaxpr.consts, hoisted, strict=True)]

        def bound(v):
            numbers[v] = len(numbers)
            return _type(v.aval)

        def used(atom):
            return (_encode(atom.val), _type(atom.aval)) if isinstance(atom, Literal) else numbers[atom]

        heads = tuple([bound(v) for v in (*jaxpr.constvars, *jaxpr.invars)])
        lines = tuple([self.equation(eqn, used, bound) for eqn in jaxpr.eqns])
        return "program", tuple(constants), heads, lines, tuple([used(v) for v in jaxpr.outvars])

    def equation(self, eqn: Any, used: Callable, bound: Callable) -> tuple[Any, ...]:
        prim = eqn.primitive
        if eqn.effects or not _is_ours(prim, tables.find_rule(prim, self.platform)):
            raise NoBytes
        unread = getattr(prim, "transformed_params", ())  # parameters that only transformations read
        params = tuple([(name, self.value(eqn.params[name])) for name in sorted(eqn.params) if name not in unread])
        operands = tuple([used(v) for v in eqn.invars])
        return prim.home, prim.name, params, operands, tuple([bound(v) for v in eqn.outvars])

    def value(self, value: Any) -> Any:
        """A parameter; programs can be inside of tuples."""
        if isinstance(value, Jaxpr):
            return self.program(value)
        if type(value) in (tuple, list):
            return (type(value).__name__, *[self.value(v) for v in value])
        return _encode(value)


@functools.lru_cache(4096)
def _is_ours(prim, rule) -> bool:
    """Whether a primitive, its rule and the functions in the rule are in files of Bedrax."""
    return prim.home.startswith("bedrax.") and _in_our_files(rule)


def _of_our_module(fun: types.FunctionType) -> bool:
    return (fun.__module__ or "").startswith("bedrax.")  # a function that `exec` made may have no module


def _in_our_files(value) -> bool:
    if isinstance(value, functools.partial):
        return all(map(_in_our_files, (value.func, *value.args, *value.keywords.values())))
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        inner = [c for c in cells if isinstance(c, (types.FunctionType, functools.partial))]
        return _of_our_module(value) and all(map(_in_our_files, inner))
    return not callable(value) or isinstance(value, type)


# ---- values ----

_ATOMS = (type(None), bool, int, float, complex, str, bytes)  # `marshal` writes them by type and bits


def _encode(value: Any) -> Any:
    """A value as tuples of atoms. Raises NoBytes if its bytes would not determine it."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    encode = _ENCODERS.get(kind) or next((e for base, e in _BASES if isinstance(value, base)), None)
    if encode is None:
        raise NoBytes(kind)
    return encode(value)


def _array(x: np.ndarray) -> tuple[Any, ...]:
    if x.dtype.hasobject:
        raise NoBytes
    return "array", _dtype(x.dtype), x.shape, np.ascontiguousarray(x).tobytes()


def _constant(x: Any) -> Any:
    """A constant that is written into the module."""
    if type(x) in _ATOMS:
        return x
    if isinstance(getattr(x, "dtype", None), ExtendedDType) or getattr(x, "nbytes", _LARGE) >= _LARGE:
        raise NoBytes
    return _array(np.asarray(x))


def _dtype(dtype: np.dtype) -> tuple[str, str, str]:
    return "dtype", dtype.name, dtype.str


def _extended(dtype: ExtendedDType) -> Any:
    implementation = getattr(dtype, "implementation", None)
    if implementation is None:
        raise NoBytes
    return "extended", _class(type(dtype)), _encode(implementation)


def _type(aval: Any) -> Any:
    if type(aval) is not ShapedArray or aval.split is not None or aval.vma or aval.memory_space is not None:
        raise NoBytes
    dtype = aval.dtype
    if not all(type(d) is int for d in element_types.base_aval(aval).shape):
        raise NoBytes
    return aval.shape, _dtype(dtype) if isinstance(dtype, np.dtype) else _extended(dtype), aval.weak_type


def _class(kind: type) -> tuple[str, str]:
    if (
        kind.__module__.partition(".")[0] not in ("builtins", "numpy", "ml_dtypes", "bedrax")
        or "<" in kind.__qualname__
    ):
        raise NoBytes
    return kind.__module__, kind.__qualname__


def _function(fun: types.FunctionType) -> tuple[str, str, str]:
    """A function of a module of ours, which the fingerprint covers. One that is made by a function has no name."""
    if "<" in fun.__qualname__ or fun.__closure__ or not _of_our_module(fun):
        raise NoBytes
    return "function", fun.__module__, fun.__qualname__


_ENCODERS: dict[type, Callable[[Any], Any]] = {
    tuple: lambda values: ("tuple", *map(_encode, values)),
    list: lambda values: ("list", *map(_encode, values)),
    dict: lambda values: ("dict", *[(_encode(k), _encode(v)) for k, v in values.items()]),
    frozenset: lambda values: ("set", *sorted(marshal.dumps(_encode(v), 2) for v in values)),
    np.ndarray: _array,
    types.FunctionType: _function,
    PyTreeDef: lambda tree: ("tree", str(tree)),
}

_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (np.dtype, _dtype),
    (np.generic, lambda x: _array(np.asarray(x))),
    (enum.Enum, lambda x: (_class(type(x)), x.name)),
    (tuple, lambda values: (_class(type(values)), *map(_encode, values))),  # a named tuple
    (ExtendedDType, _extended),
    (type, _class),
)


# ---- the code of the rules ----

_fingerprints: dict[tuple[str, ...], bytes] = {}


def fingerprint() -> bytes:
    """A hash of the names, sizes and times of all files of Bedrax that this process can import.

    Raises:
      OSError: a part of Bedrax is not in a folder.
    """
    folders = tuple(sys.modules["bedrax"].__path__)  # a namespace package has a folder in each distribution
    found = _fingerprints.get(folders)
    if found is None:
        files: list[tuple[str, int, int]] = []
        for number, folder in enumerate(folders):
            _list_files(folder, str(number), files)
        found = _fingerprints[folders] = hashlib.sha256(marshal.dumps(sorted(files), 2)).digest()
    return found


def _list_files(folder: str, name: str, files: list[tuple[str, int, int]]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    _list_files(entry.path, f"{name}/{entry.name}", files)
            elif entry.name.endswith(".py"):
                stat = entry.stat()
                files.append((f"{name}/{entry.name}", stat.st_size, stat.st_mtime_ns))
