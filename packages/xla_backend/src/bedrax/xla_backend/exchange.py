"""Exported programs as bytes.

The format, in order; integers are little-endian, a block is a 64-bit length followed by that many bytes:

    8 bytes   b"BDXEXP01"
    block     a JSON object, UTF-8: everything of the `Exported` but its module and its derivative
    block     the StableHLO portable artifact
    block     another exported program (the derivative), or nothing

In the JSON object an array type is ``[shape, dtype, weak_type]`` with the shape as text (``"(b, 4)"``); a tree is
``["leaf"]``, ``["none"]``, ``["tuple" | "list", children]``, ``["dict", keys, children]``, ``["namedtuple", name,
children]`` or ``["custom", name, base64 of the auxiliary data, children]``, names being those that were given when
the class was registered here.
"""

from __future__ import annotations

import base64
import importlib
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from bedrax import pytree, shape_poly
from bedrax.core import dims, dtypes
from bedrax.core.avals import ShapedArray
from bedrax.xla_backend import jaxlib_door as door

MAGIC = b"BDXEXP01"

# Packages that own dtypes which neither NumPy nor ml_dtypes knows, by how the names begin. They are above this one
# and are imported only when a program has such a dtype; each has a function ``dtype_of_printed_name``.
_DTYPE_OWNERS = {"key<": "bedrax.random.key_array"}


class _Registered:
    """A pytree class that has a name in exported programs."""

    def __init__(
        self, cls: type, kind: str, name: str, write: Callable, read: Callable, build: Callable | None
    ):
        self.cls, self.kind, self.name, self.write, self.read, self.build = (
            cls,
            kind,
            name,
            write,
            read,
            build,
        )


_by_class: dict[type, _Registered] = {}
_by_name: dict[tuple[str, str], _Registered] = {}


def _register(entry: _Registered) -> None:
    known = _by_class.get(entry.cls)
    if known is not None:
        raise ValueError(
            f"Duplicate serialization registration for type `{entry.cls}`. Previous registration was named '{known.name}'"
        )
    named = _by_name.get((entry.kind, entry.name))
    if named is not None:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{entry.name}`. Previous registration was for"
            f" type `{named.cls}`."
        )
    _by_class[entry.cls] = _by_name[entry.kind, entry.name] = entry


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> type:
    """Let exported programs have a class of pytree nodes in their arguments and results.

    Args:
      nodetype: the class; it must be registered as a pytree node.
      serialized_name: what it is called in serialized programs; a stable name, since readers look it up.
      serialize_auxdata, deserialize_auxdata: between the auxiliary data of a node and bytes.
      from_children: ``(auxiliary data, children) -> node``; by default what the pytree registration says.

    Returns:
      `nodetype`.

    Raises:
      ValueError: the class is no pytree node, or class or name are registered already.
    """
    if nodetype not in pytree._registry:
        raise ValueError(
            f"Must register type as a pytree node before registering its serialization. Got {nodetype}, with"
            f" serialized_name `{serialized_name}`"
        )
    _register(
        _Registered(
            nodetype, "custom", serialized_name, serialize_auxdata, deserialize_auxdata, from_children
        )
    )
    return nodetype


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Let exported programs have a class of named tuples in their arguments and results.

    Args:
      nodetype: a class made by `collections.namedtuple` or `typing.NamedTuple`.
      serialized_name: what it is called in serialized programs.
    """
    if not _is_namedtuple(nodetype):
        raise ValueError(
            f"Use `jax.export.register_pytree_node_serialization` for types other than `collections.namedtuple`. Got {nodetype}."
        )
    _register(_Registered(nodetype, "namedtuple", serialized_name, lambda aux: b"", lambda data: None, None))
    return nodetype


def _is_namedtuple(cls: type) -> bool:
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


# ---- trees ----


def write_tree(tree) -> list:
    """A treedef as JSON."""
    data = tree.node_data()
    if data is None:
        return ["leaf"] if tree.num_leaves else ["none"]
    cls, aux = data
    children = [write_tree(c) for c in tree.children()]
    if cls is type(None):
        return ["none"]
    if cls is tuple or cls is list:
        return [cls.__name__, children]
    if cls is dict:
        keys = list(aux)
        if not all(isinstance(k, str | int) for k in keys):
            raise ValueError(
                f"exported programs can only have dictionaries with strings or integers as keys, got {keys}"
            )
        return ["dict", keys, children]
    found = _by_class.get(cls)
    if found is None:
        how = (
            "register_namedtuple_serialization"
            if _is_namedtuple(cls)
            else "register_pytree_node_serialization"
        )
        raise ValueError(
            f"Cannot serialize PyTreeDef with type {cls}, which is not known to exported programs; call"
            f" jax.export.{how} for it, where it is written and where it is read"
        )
    if found.kind == "namedtuple":
        return ["namedtuple", found.name, children]
    return ["custom", found.name, base64.b64encode(bytes(found.write(aux))).decode(), children]


def read_tree(data: list) -> Any:
    """The treedef that `write_tree` wrote."""
    return pytree.tree_structure(_read_node(data))


class _Hole:
    """Stands for a leaf."""


def _read_node(data: list) -> Any:
    kind = data[0]
    if kind == "leaf":
        return _Hole()
    if kind == "none":
        return None
    children = [_read_node(c) for c in data[-1]]
    if kind in ("tuple", "list"):
        return tuple(children) if kind == "tuple" else children
    if kind == "dict":
        return dict(zip(data[1], children, strict=True))
    found = _by_name.get((kind, data[1]))
    if found is None:
        raise ValueError(
            f"the exported program has a pytree node named '{data[1]}', which is not registered in this process; call"
            f" jax.export.register_{'namedtuple' if kind == 'namedtuple' else 'pytree_node'}_serialization for its class"
        )
    if kind == "namedtuple":
        return found.cls(*children)
    aux = found.read(base64.b64decode(data[2]))
    if found.build is not None:
        return found.build(aux, tuple(children))
    return pytree._registry[found.cls].unflatten(aux, tuple(children))


# ---- types ----


def write_aval(aval) -> list:
    """An array type as JSON."""
    if not aval.is_array:
        raise ValueError(
            f"exported programs cannot have values of type {aval} among their arguments and results"
        )
    return [
        f"({', '.join(map(str, aval.shape))})",
        getattr(aval.dtype, "name", str(aval.dtype)),
        bool(aval.weak_type),
    ]


def read_aval(data: list, scope) -> ShapedArray:
    """The type that `write_aval` wrote."""
    text, name, weak = data
    return ShapedArray(shape_poly.symbolic_shape(text, scope=scope), _dtype(name), weak)


def _dtype(name: str) -> Any:
    if name in ("float0", dtypes.float0.name):
        return dtypes.float0
    for prefix, owner in _DTYPE_OWNERS.items():
        if name.startswith(prefix):
            return importlib.import_module(owner).dtype_of_printed_name(name)
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(dtypes.as_dtype(name))


# ---- programs ----


def _sharding(s) -> str | None:
    return None if s is None else base64.b64encode(s.to_proto().SerializeToString()).decode()


def _read_sharding(text: str | None) -> Any:
    if text is None:
        return None
    proto = door.OpSharding()
    proto.ParseFromString(base64.b64decode(text))
    return door.HloSharding.from_proto(proto)


def _block(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def write(exported, vjp_order: int) -> bytearray:
    """The bytes of an exported program with its derivatives up to the given order."""
    if exported.ordered_effects or exported.unordered_effects:
        raise NotImplementedError(
            f"programs with effects cannot be serialized: {exported.ordered_effects or exported.unordered_effects}"
        )
    constraints = shape_poly.constraints_of(exported.in_avals)
    header = {
        "fun_name": exported.fun_name,
        "in_tree": write_tree(exported.in_tree),
        "out_tree": write_tree(exported.out_tree),
        "in_avals": [write_aval(a) for a in exported.in_avals],
        "out_avals": [write_aval(a) for a in exported.out_avals],
        "constraints": list(constraints),
        "symbolic": any(not dims.is_constant_shape(a.shape) for a in exported.in_avals),
        "in_shardings": [_sharding(s) for s in exported.in_shardings_hlo],
        "out_shardings": [_sharding(s) for s in exported.out_shardings_hlo],
        "nr_devices": exported.nr_devices,
        "platforms": list(exported.platforms),
        "disabled_safety_checks": [c._impl for c in exported.disabled_safety_checks],
        "calling_convention_version": exported.calling_convention_version,
        "module_kept_var_idx": list(exported.module_kept_var_idx),
        "uses_global_constants": exported.uses_global_constants,
    }
    derivative = write(exported.vjp(), vjp_order - 1) if vjp_order > 0 else b""
    return bytearray(
        MAGIC
        + _block(json.dumps(header).encode())
        + _block(exported.mlir_module_serialized)
        + _block(bytes(derivative))
    )


def read(blob: bytes | bytearray) -> Any:
    """The exported program in the bytes that `write` made.

    Raises:
      ValueError: they are something else, damaged, or of a later version.
    """
    from bedrax.xla_backend.export import (
        DisabledSafetyCheck,
        Exported,
        maximum_supported_calling_convention_version,
    )

    blob = bytes(blob)
    if blob[: len(MAGIC)] != MAGIC:
        raise ValueError(
            f"this is no exported program of this format: it begins with {blob[:8]!r}, {MAGIC!r} is expected. Programs"
            " serialized by other implementations have to be exported again"
        )
    at, blocks = len(MAGIC), []
    for _ in range(3):
        if at + 8 > len(blob):
            raise ValueError("the exported program is damaged: it ends early")
        (size,) = struct.unpack_from("<Q", blob, at)
        blocks.append(blob[at + 8 : at + 8 + size])
        if len(blocks[-1]) != size:
            raise ValueError("the exported program is damaged: it ends early")
        at += 8 + size
    header = json.loads(blocks[0])
    version = header["calling_convention_version"]
    if version > maximum_supported_calling_convention_version:
        raise ValueError(
            f"the exported program has calling convention version {version}; at most"
            f" {maximum_supported_calling_convention_version} is supported here"
        )
    scope = shape_poly.SymbolicScope(header["constraints"])
    derivative = None
    if blocks[2]:
        stored = blocks[2]
        derivative = lambda exported: read(stored)
    return Exported(
        fun_name=header["fun_name"],
        in_tree=read_tree(header["in_tree"]),
        in_avals=tuple([read_aval(a, scope) for a in header["in_avals"]]),
        out_tree=read_tree(header["out_tree"]),
        out_avals=tuple([read_aval(a, scope) for a in header["out_avals"]]),
        _has_named_shardings=False,
        _in_named_shardings=(),
        _out_named_shardings=(),
        in_shardings_hlo=tuple(map(_read_sharding, header["in_shardings"])),
        out_shardings_hlo=tuple(map(_read_sharding, header["out_shardings"])),
        nr_devices=header["nr_devices"],
        platforms=tuple(header["platforms"]),
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=tuple([DisabledSafetyCheck(c) for c in header["disabled_safety_checks"]]),
        mlir_module_serialized=blocks[1],
        calling_convention_version=version,
        module_kept_var_idx=tuple(header["module_kept_var_idx"]),
        uses_global_constants=header["uses_global_constants"],
        _get_vjp=derivative,
    )
