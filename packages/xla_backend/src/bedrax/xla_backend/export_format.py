"""Exported programs as bytes: the choice of the format, and the format of this package.

Programs are written in the public format (`export_public`), which other implementations read. If it has no form for a
program, that is written in the format of this package, which has, in order (integers are little-endian, a block is a
64-bit length followed by that many bytes):

    8 bytes    b"BDXEXP02"
    16 bytes   the digest of the rest
    block      a JSON object, UTF-8: all fields of the `Exported` except its module and its derivative
    block      the StableHLO portable artifact
    block      another exported program (the derivative), or nothing

In the JSON object an array type is ``[shape, dtype]`` with the shape as text (``"(b, 4)"``); trees are as in
`export_words`.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from typing import Any

from bedrax import shape_poly
from bedrax.core.avals import AbstractValue, ShapedArray
from bedrax.xla_backend import export_public, export_words
from bedrax.xla_backend.door import runtime

MAGIC = b"BDXEXP02"


# ---- types ----


def write_aval(aval: AbstractValue) -> list[Any]:
    """An array type as JSON."""
    if not aval.is_array:
        raise ValueError(f"exported programs cannot have values of type {aval} among their arguments and results")
    return [f"({', '.join(map(str, aval.shape))})", export_words.name_of_dtype(aval.dtype)]


def read_aval(data: list[Any], scope: Any) -> ShapedArray:
    """The type from the result of `write_aval`."""
    text, name = data[:2]  # the third entry, in older programs: whether it was weakly typed
    return ShapedArray(shape_poly.symbolic_shape(text, scope=scope), export_words.dtype_named(name))


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


# The fields of an exported program: functions that write each to JSON, and read it (types of arrays are read
# separately).
FIELDS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "fun_name": (_same, _same),
    "in_tree": (export_words.write_tree, export_words.read_tree),
    "out_tree": (export_words.write_tree, export_words.read_tree),
    "in_avals": (_each(write_aval), _same),
    "out_avals": (_each(write_aval), _same),
    "in_shardings_hlo": (_each(_sharding), lambda x: tuple(map(_read_sharding, x))),
    "out_shardings_hlo": (_each(_sharding), lambda x: tuple(map(_read_sharding, x))),
    "_in_memories": (list, tuple),
    "_out_memories": (list, tuple),
    "nr_devices": (_same, _same),
    "platforms": (list, tuple),
    "ordered_effects": (_each(export_words.name_of_effect), lambda x: tuple(map(export_words.effect_named, x))),
    "unordered_effects": (_each(export_words.name_of_effect), lambda x: tuple(map(export_words.effect_named, x))),
    "disabled_safety_checks": (list, list),
    "calling_convention_version": (_same, _same),
    "module_kept_var_idx": (list, tuple),
    "uses_global_constants": (_same, _same),
    "mlir_module_serialized": (None, None),  # a block of its own
}


def write(levels: list[dict[str, Any]]) -> bytearray:
    """The bytes of an exported program.

    Args:
      levels: the values of `FIELDS`, and those of `export_public.NAMED`, of the program, of its derivative, and so on.
    """
    try:
        return export_public.write(levels)
    except export_public.NoWord:
        return _write(levels)


def read(blob: bytes | bytearray, latest_version: int) -> list[dict[str, Any]]:
    """The argument of `write`, from bytes of this or another implementation.

    Args:
      latest_version: the latest supported calling convention.

    Raises:
      ValueError: the bytes are not an exported program, damaged, or of a later version.
    """
    blob = bytes(blob)
    levels = _read(blob) if blob[: len(MAGIC)] == MAGIC else export_public.read(blob)
    version = levels[0]["calling_convention_version"]
    if version > latest_version:
        raise ValueError(
            f"the exported program has calling convention version {version}; at most {latest_version} is supported here"
        )
    return levels


def _write(levels: list[dict[str, Any]]) -> bytearray:
    fields = levels[0]
    header = {name: write(fields[name]) for name, (write, _) in FIELDS.items() if write is not None}
    header["constraints"] = list(shape_poly.constraints_of(fields["in_avals"]))
    derivative = bytes(_write(levels[1:])) if len(levels) > 1 else b""
    blocks = (json.dumps(header).encode(), fields["mlir_module_serialized"], derivative)
    content = b"".join([struct.pack("<Q", len(block)) + block for block in blocks])
    return bytearray(MAGIC + export_public.digest(content) + content)


def _read(blob: bytes) -> list[dict[str, Any]]:
    content = blob[len(MAGIC) + 16 :]
    if export_public.digest(content) != blob[len(MAGIC) : len(MAGIC) + 16]:
        raise ValueError("the exported program is damaged: its bytes are not those that were written")
    header, module, derivative = _blocks(content)
    data = json.loads(header)
    scope = shape_poly.SymbolicScope(data["constraints"])
    fields = {name: read(data[name]) for name, (_, read) in FIELDS.items() if read is not None and name in data}
    for name in ("in_avals", "out_avals"):
        fields[name] = tuple([read_aval(a, scope) for a in fields[name]])
    absent = {**export_public.NAMED, "_in_memories": (), "_out_memories": ()}  # in older programs
    fields = {**absent, **fields, "mlir_module_serialized": module}
    return [fields, *(_read(derivative) if derivative else ())]


def _blocks(content: bytes) -> list[bytes]:
    at, blocks = 0, []
    for _ in range(3):
        size = int.from_bytes(content[at : at + 8], "little")
        blocks.append(content[at + 8 : at + 8 + size])
        at += 8 + size
    return blocks
