"""Exported programs as bytes.

The format, in order; integers are little-endian, a block is a 64-bit length followed by that many bytes:

    8 bytes   b"BDXEXP02"
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
import hashlib
import json
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bedrax import pytree, shape_poly
from bedrax.core import dtypes, offers
from bedrax.core.avals import ShapedArray
from bedrax.xla_backend.door import runtime

MAGIC = b"BDXEXP02"


class _Registered(NamedTuple):
    """A pytree class that has a name in exported programs."""

    cls: type
    kind: str
    name: str
    write: Callable
    read: Callable
    build: Callable | None


_by_class: dict[type, _Registered] = {}
_by_name: dict[tuple[str, str], _Registered] = {}


def _register(entry: _Registered) -> None:
    known = _by_class.get(entry.cls)
    if known is not None:
        raise ValueError(f"{entry.cls} is registered for serialization already, under the name {known.name!r}")
    named = _by_name.get((entry.kind, entry.name))
    if named is not None:
        raise ValueError(
            f"serialized_name={entry.name!r} of {entry.cls} belongs to {named.cls} already; choose another"
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
            f"{nodetype}, serialized_name={serialized_name!r}, is no pytree node yet; register it with"
            " jax.tree_util.register_pytree_node first"
        )
    _register(_Registered(nodetype, "custom", serialized_name, serialize_auxdata, deserialize_auxdata, from_children))
    return nodetype


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Let exported programs have a class of named tuples in their arguments and results.

    Args:
      nodetype: a class made by `collections.namedtuple` or `typing.NamedTuple`.
      serialized_name: what it is called in serialized programs.
    """
    if not _is_namedtuple(nodetype):
        raise ValueError(f"{nodetype} is no named tuple; use jax.export.register_pytree_node_serialization")
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
        how = "register_namedtuple_serialization" if _is_namedtuple(cls) else "register_pytree_node_serialization"
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
        raise ValueError(f"exported programs cannot have values of type {aval} among their arguments and results")
    return [f"({', '.join(map(str, aval.shape))})", getattr(aval.dtype, "name", str(aval.dtype)), bool(aval.weak_type)]


def read_aval(data: list, scope) -> ShapedArray:
    """The type that `write_aval` wrote."""
    text, name, weak = data
    return ShapedArray(shape_poly.symbolic_shape(text, scope=scope), _dtype(name), weak)


def _dtype(name: str) -> Any:
    if name in ("float0", dtypes.float0.name):
        return dtypes.float0
    read_name = offers.offered(f"dtypes {name.partition('<')[0]}")  # of extended dtypes, like key<fry>
    if read_name is not None:
        return read_name(name)
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
    proto = runtime.OpSharding()
    proto.ParseFromString(base64.b64decode(text))
    return runtime.HloSharding.from_proto(proto)


def _same(x: Any) -> Any:
    return x


def _each(function: Callable) -> Callable:
    return lambda values: [function(v) for v in values]


# The fields of an exported program: how each is written to JSON, and read (types of arrays are read apart).
FIELDS: dict[str, tuple[Callable, Callable]] = {
    "fun_name": (_same, _same),
    "in_tree": (write_tree, read_tree),
    "out_tree": (write_tree, read_tree),
    "in_avals": (_each(write_aval), _same),
    "out_avals": (_each(write_aval), _same),
    "in_shardings_hlo": (_each(_sharding), lambda x: tuple(map(_read_sharding, x))),
    "out_shardings_hlo": (_each(_sharding), lambda x: tuple(map(_read_sharding, x))),
    "nr_devices": (_same, _same),
    "platforms": (list, tuple),
    "disabled_safety_checks": (list, list),
    "calling_convention_version": (_same, _same),
    "module_kept_var_idx": (list, tuple),
    "uses_global_constants": (_same, _same),
    "mlir_module_serialized": (None, None),  # a block of its own
}  # fmt: skip


def write(fields: dict[str, Any], derivative: bytes) -> bytearray:
    """The bytes of an exported program.

    Args:
      fields: the values of `FIELDS`.
      derivative: its exported derivative in this format, or nothing.
    """
    header = {name: write(fields[name]) for name, (write, _) in FIELDS.items() if write is not None}
    header["constraints"] = list(shape_poly.constraints_of(fields["in_avals"]))
    blocks = (json.dumps(header).encode(), fields["mlir_module_serialized"], bytes(derivative))
    content = b"".join([struct.pack("<Q", len(block)) + block for block in blocks])
    return bytearray(MAGIC + _digest(content) + content)


def _digest(content: bytes) -> bytes:
    """What tells damaged bytes, which XLA's parsers must never see: they trust theirs."""
    return hashlib.blake2b(content, digest_size=16).digest()


def read(blob: bytes | bytearray, latest_version: int) -> tuple[dict[str, Any], bytes]:
    """The fields of an exported program and its derivative, from the bytes that `write` made.

    Args:
      latest_version: the latest calling convention that can be read.

    Raises:
      ValueError: the bytes are something else, damaged, or of a later version.
    """
    blob = bytes(blob)
    if blob[: len(MAGIC)] != MAGIC:
        raise ValueError(
            f"this is no exported program of this format: it begins with {blob[:8]!r}, {MAGIC!r} is expected. Programs"
            " serialized by other implementations have to be exported again"
        )
    content = blob[len(MAGIC) + 16 :]
    if _digest(content) != blob[len(MAGIC) : len(MAGIC) + 16]:
        raise ValueError("the exported program is damaged: its bytes are not those that were written")
    header, module, derivative = _blocks(content)
    data = json.loads(header)
    version = data["calling_convention_version"]
    if version > latest_version:
        raise ValueError(
            f"the exported program has calling convention version {version}; at most {latest_version} is supported here"
        )
    scope = shape_poly.SymbolicScope(data["constraints"])
    fields = {name: read(data[name]) for name, (_, read) in FIELDS.items() if read is not None}
    for name in ("in_avals", "out_avals"):
        fields[name] = tuple([read_aval(a, scope) for a in fields[name]])
    return {**fields, "mlir_module_serialized": module}, derivative


def _blocks(content: bytes) -> list[bytes]:
    at, blocks = 0, []
    for _ in range(3):
        size = int.from_bytes(content[at : at + 8], "little")
        blocks.append(content[at + 8 : at + 8 + size])
        at += 8 + size
    return blocks
