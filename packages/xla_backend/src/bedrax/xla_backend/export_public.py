"""The public format of exported programs, which all implementations read: FlatBuffers tables.

Tables may have unknown slots and numbers; the known ones are in `SCHEMA` and in the tuples below
it. Data without a form in the format (some dtypes, dictionaries with keys that are not texts) raise `NoWord`.

Constraints on dimension variables have no place in it. They follow the tables, where other readers ignore them, and
so does a digest. (Weakly typed arguments become strongly typed, as upstream.)

    4 bytes    distance of the root table, as in FlatBuffers
    4 bytes    b"BDX3" (other writers: the tables start here)
    ...        the tables
    n bytes    a JSON object ``{"constraints": [...], "vjp": ...}``
    4 bytes    n
    16 bytes   the digest of everything before
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from typing import Any

from bedrax import shape_poly
from bedrax.core.avals import ShapedArray
from bedrax.core.codes import coded
from bedrax.parallel.meshes import AbstractDevice, AbstractMesh, AxisType
from bedrax.parallel.specs import UNCONSTRAINED, PartitionSpec, UnreducedKind, axes_of
from bedrax.xla_backend import export_words, flat_tables
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.sharding import NamedSharding

IDENTIFIER = b"BDX3"

SCHEMA: flat_tables.Schema = {
    "Exported": (
        ("version", "u16"), ("fun_name", "text"), ("in_tree", "Tree"), ("in_avals", "[Aval]"), ("out_tree", "Tree"),
        ("out_avals", "[Aval]"), ("few_devices", "u16"), ("in_shardings", "[Sharding]"),
        ("out_shardings", "[Sharding]"), ("platforms", "[text]"), ("ordered_effects", "[Effect]"),
        ("unordered_effects", "[Effect]"), ("disabled_safety_checks", "[Check]"), ("module", "bytes"),
        ("calling_convention_version", "u16"), ("module_kept_var_idx", "[u16]"), ("uses_global_constants", "u8"),
        ("vjp", "Exported"), ("nr_devices", "u32"), ("avals", "[Aval]"), ("meshes", "[Mesh]"),
        ("named_shardings", "[Named]"), ("in_aval_index", "[u32]"), ("out_aval_index", "[u32]"),
        ("in_named_index", "[u32]"), ("out_named_index", "[u32]"), ("writer", "text"),
    ),
    "Tree": (("kind", "u8"), ("children", "[Tree]"), ("keys", "[text]"), ("custom", "text"), ("auxiliary", "bytes")),
    "Aval": (("kind", "u8"), ("shape", "[text]"), ("dtype", "u8"), ("memory", "u8")),
    "Sharding": (("hlo", "u8"), ("proto", "bytes"), ("named", "Named")),
    "Named": (("mesh", "Mesh"), ("spec", "Spec"), ("memory_kind", "text"), ("mesh_index", "u32")),
    "Mesh": (("sizes", "[u32]"), ("names", "[text]"), ("types", "[u8]"), ("device", "Device")),
    "Device": (("kind", "text"), ("cores", "u32"), ("platform", "text")),
    "Spec": (("partitions", "[Partition]"), ("reduced", "[text]"), ("unreduced", "[text]")),
    "Partition": (("axes", "[text]"),),
    "Effect": (("name", "text"),),
    "Check": (("kind", "u8"), ("target", "text")),
}  # fmt: skip

# Versions of the tables; the last one is written. From 2 on they differ by added fields, and every field may be absent.
VERSIONS = range(2, 13)
TREES = ("leaf", "none", "tuple", "list", "dict", "custom")
DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "bfloat16",
    "int4",
    "uint4",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float0",
    "float8_e4m3",
    "float8_e3m4",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "key<fry>",
    "key<rbg>",
    "key<urbg>",
)
MEMORIES = {None: 1, "pinned_host": 2}  # a sharding with a mesh names other memories
AXES = (AxisType.Auto, AxisType.Explicit)  # counted from 1


# The fields of this format only, with their values if they are absent.
NAMED: dict[str, tuple[Any, ...]] = {"_in_named_shardings": (), "_out_named_shardings": ()}


class NoWord(ValueError):
    """The public format has no form for a value."""


def _position(of: Any, among: tuple, what: str) -> int:
    if of not in among:
        raise NoWord(f"the public format of exported programs has no {what} {of}")
    return among.index(of)


def _at(position: int, among: Any, what: str) -> Any:
    if not 0 <= position < len(among):
        raise ValueError(f"the exported program has the {what} number {position}, which is unknown here")
    return among[position]


# ---- trees and types ----


def _tree(node: list) -> dict:
    kind, children = node[0], node[-1] if len(node) > 1 else []
    found: dict[str, Any] = {"children": [_tree(c) for c in children]} if len(node) > 1 else {}
    if kind == "dict":
        if not all(isinstance(k, str) for k in node[1]):
            raise NoWord(f"the public format of exported programs has only texts as keys, not {node[1]}")
        found["keys"] = list(node[1])
    elif kind in ("custom", "namedtuple"):
        found.update(custom=node[1], auxiliary=base64.b64decode(node[2]))
    return {"kind": TREES.index("custom" if kind == "namedtuple" else kind), **found}


def _read_tree(table: dict | None) -> list:
    if table is None:
        raise ValueError("the exported program has no structure of its arguments or results")
    kind, children = _at(table["kind"], TREES, "kind of tree"), [_read_tree(c) for c in table["children"] or ()]
    if kind in ("leaf", "none"):
        return [kind]
    if kind == "dict":
        return [kind, table["keys"] or [], children]
    if kind == "custom":
        return [kind, table["custom"] or "", base64.b64encode(table["auxiliary"] or b"").decode(), children]
    return [kind, children]


def _aval(aval: ShapedArray, memory: str | None, named: NamedSharding | None) -> dict:
    if not aval.is_array:
        raise ValueError(f"exported programs cannot have values of type {aval} among their arguments and results")
    if memory not in MEMORIES and (named is None or named.memory_kind != memory):
        raise NoWord(f"the public format of exported programs has no memory {memory} without a mesh")
    return {
        "shape": [str(d) for d in aval.shape],
        "dtype": _position(export_words.name_of_dtype(aval.dtype), DTYPES, "dtype"),
        "memory": MEMORIES.get(memory, MEMORIES["pinned_host"]),
    }


def _read_aval(table: dict, scope) -> ShapedArray:
    shape = f"({', '.join(table['shape'] or ())})"
    dtype = export_words.dtype_named(_at(table["dtype"], DTYPES, "dtype"))
    return ShapedArray(shape_poly.symbolic_shape(shape, scope=scope), dtype)


def _read_memory(table: dict, named: NamedSharding | None) -> str | None:
    kind = None if named is None else named.memory_kind
    if table["memory"] == MEMORIES["pinned_host"]:
        return "pinned_host" if kind in (None, "device") else kind
    return kind if kind == "pinned_host" else None  # older writers name the default memory of a CPU, too


# ---- shardings ----


def _mesh(mesh: Any) -> dict:
    mesh = mesh.abstract_mesh
    if not all(isinstance(n, str) for n in mesh.axis_names):
        raise NoWord(f"the public format of exported programs has only texts as names of axes, not {mesh.axis_names}")
    device = mesh.abstract_device
    return {
        "sizes": mesh.axis_sizes,
        "names": mesh.axis_names,
        "types": [1 + _position(t, AXES, "type of mesh axis") for t in mesh.axis_types],
        "device": device and {"kind": device.device_kind, "cores": device.num_cores, "platform": device.platform},
    }


def _read_mesh(table: dict | None) -> AbstractMesh:
    table = table or {"sizes": None, "names": None, "types": None, "device": None}
    device = table["device"]
    if device is not None:
        device = AbstractDevice(device["kind"], device["cores"] or None, device["platform"])
    types = tuple([_at(t - 1, AXES, "type of mesh axis") for t in table["types"] or ()])
    return AbstractMesh(table["sizes"] or (), table["names"] or (), types or AxisType.Auto, abstract_device=device)


def _named(s: NamedSharding, mesh_index: int) -> dict:
    if UNCONSTRAINED in s.spec.partitions:
        raise NoWord("the public format of exported programs has no unconstrained dimensions")
    if s.spec.unreduced_kind not in (None, UnreducedKind.sum):
        raise NoWord(f"the public format of exported programs has only sums as partial results, not {s.spec}")
    spec = {
        "partitions": [{"axes": axes_of(entry)} for entry in s.spec],
        "reduced": sorted(s.spec.reduced),
        "unreduced": sorted(s.spec.unreduced),
    }
    return {"mesh": _mesh(s.mesh), "spec": spec, "memory_kind": s.memory_kind, "mesh_index": mesh_index}


def _read_named(table: dict, devices: int) -> NamedSharding:
    spec = table["spec"] or {"partitions": None, "reduced": None, "unreduced": None}
    entries = [tuple(p["axes"] or ()) for p in spec["partitions"] or ()]
    spec = PartitionSpec(
        *[e[0] if len(e) == 1 else e or None for e in entries],
        reduced=frozenset(spec["reduced"] or ()),
        unreduced=frozenset(spec["unreduced"] or ()),
    )
    mesh = _read_mesh(table["mesh"])
    if mesh.size != devices:
        raise ValueError(f"a sharding over {mesh.size} devices in a program for {devices}")
    return NamedSharding(mesh, spec, memory_kind=table["memory_kind"])


def _hlo(s: Any) -> dict:
    return {} if s is None else {"hlo": 1, "proto": s.to_proto().SerializeToString()}


def _read_hlo(table: dict, rank: int, devices: int) -> Any:
    if table["named"] is not None:
        return _read_named(table["named"], devices)._to_xla_hlo_sharding(rank)
    if not table["hlo"]:
        return None
    proto = runtime.OpSharding()
    proto.ParseFromString(table["proto"] or b"")
    try:
        _check_proto(proto, rank, devices)
        return runtime.HloSharding.from_proto(proto)
    except RuntimeError as error:  # a number outside of the enumeration
        raise ValueError(f"the exported program has a sharding of an unknown kind: {error}") from error


def _check_proto(proto: Any, rank: int, devices: int) -> None:
    """Raise ValueError for a message that XLA would not check, and that would end the process."""
    kinds, dims = runtime.OpSharding.Type, list(proto.tile_assignment_dimensions)
    order, perm = list(proto.tile_assignment_devices), list(proto.iota_transpose_perm)
    groups, reshape = list(proto.last_tile_dims), list(proto.iota_reshape_dims)
    plain = not (len(proto.tuple_shardings) or proto.is_shard_group)
    if proto.type in (kinds.REPLICATED, kinds.MANUAL):
        good = not (dims or order or perm or groups or reshape or proto.replicate_on_last_tile_dim)
    elif proto.type == kinds.MAXIMAL:
        good = len(order) == 1 and 0 <= order[0] < devices and not (perm or groups or reshape)
    elif proto.type == kinds.OTHER:
        iota = bool(reshape) and math.prod(reshape) == devices and sorted(perm) == list(range(len(reshape)))
        good = (
            all(d > 0 for d in [*dims, *reshape])
            and math.prod(dims) == devices
            and (not order and iota if reshape or perm else sorted(order) == list(range(devices)))
            and not (groups and proto.replicate_on_last_tile_dim)
            and all(g in (kinds.REPLICATED, kinds.MANUAL) for g in groups)
            and len(dims) == rank + len(groups) + proto.replicate_on_last_tile_dim
        )
    else:
        good = False
    if not (plain and good):
        raise ValueError(f"the exported program has a sharding that makes no sense for rank {rank}, {devices} devices")


def _unique(values: list) -> tuple[list, list[int]]:
    """The distinct values, and the position of each value among them."""
    found: dict[str, tuple[int, Any]] = {}
    positions = [found.setdefault(repr(v), (len(found), v))[0] for v in values]
    return [v for _, v in found.values()], positions


def _shardings(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of the table with the shardings of arguments and results."""
    if any(len(fields[f"_{side}_named_shardings"]) != len(fields[f"{side}_avals"]) for side in ("in", "out")):
        return {f"{side}_shardings": [_hlo(s) for s in fields[f"{side}_shardings_hlo"]] for side in ("in", "out")}
    sides = {side: fields[f"_{side}_named_shardings"] for side in ("in", "out")}
    given = [s for side in sides.values() for s in side if s is not None]
    meshes, mesh_of = _unique([_mesh(s.mesh) for s in given])
    tables, table_of = _unique([_named(s, i) for s, i in zip(given, mesh_of, strict=True)])
    found: dict[str, Any] = {"meshes": meshes, "named_shardings": tables}
    following = iter(table_of)
    for side, values in sides.items():
        positions = [0 if s is None else next(following) + 1 for s in values]
        found[f"{side}_named_index"] = positions
        found[f"{side}_shardings"] = [{"named": tables[p - 1]} if p else {} for p in positions]
    return found


# ---- programs ----


def _program(levels: list[dict[str, Any]]) -> dict[str, Any]:
    fields, sides = levels[0], ("in", "out")
    avals = {}
    for side in sides:
        types = fields[f"{side}_avals"]
        named = fields[f"_{side}_named_shardings"] or (None,) * len(types)  # absent in older programs
        avals[side] = [_aval(*each) for each in zip(types, fields[f"_{side}_memories"], named, strict=True)]
    different, index = _unique([*avals["in"], *avals["out"]])
    checks = [c.removeprefix("custom_call:") if ":" in c else None for c in fields["disabled_safety_checks"]]
    return {
        "version": VERSIONS[-1],
        "writer": runtime.jaxlib_version,
        "fun_name": fields["fun_name"],
        "in_tree": _tree(export_words.write_tree(fields["in_tree"])),
        "out_tree": _tree(export_words.write_tree(fields["out_tree"])),
        "in_avals": avals["in"],
        "out_avals": avals["out"],
        "avals": different,
        "in_aval_index": index[: len(avals["in"])],
        "out_aval_index": index[len(avals["in"]) :],
        "few_devices": None,
        "nr_devices": fields["nr_devices"],
        "platforms": list(fields["platforms"]),
        "ordered_effects": [{"name": export_words.name_of_effect(e)} for e in fields["ordered_effects"]],
        "unordered_effects": [{"name": export_words.name_of_effect(e)} for e in fields["unordered_effects"]],
        "disabled_safety_checks": [{"kind": int(target is not None), "target": target} for target in checks],
        "module": fields["mlir_module_serialized"],
        "calling_convention_version": fields["calling_convention_version"],
        "module_kept_var_idx": list(fields["module_kept_var_idx"]),
        "uses_global_constants": int(fields["uses_global_constants"]),
        "vjp": _program(levels[1:]) if len(levels) > 1 else None,
        **_shardings(fields),
    }


def _more(levels: list[dict[str, Any]]) -> dict[str, Any]:
    fields = levels[0]
    return {
        "constraints": list(shape_poly.constraints_of(fields["in_avals"])),
        "vjp": _more(levels[1:]) if len(levels) > 1 else None,
    }


def write(levels: list[dict[str, Any]]) -> bytearray:
    """The bytes of an exported program and its derivatives.

    Raises:
      NoWord: the format has no form for a part of it.
    """
    more = json.dumps(_more(levels)).encode()
    content = flat_tables.write(_program(levels), SCHEMA, "Exported", IDENTIFIER)
    content += more + len(more).to_bytes(4, "little")
    return bytearray(content + digest(content))


def digest(content: bytes) -> bytes:
    """A digest that detects damaged bytes. XLA's parsers do not check their input."""
    return hashlib.blake2b(content, digest_size=16).digest()


def read(blob: bytes) -> list[dict[str, Any]]:
    """The fields of an exported program and of its derivatives, from any writer.

    Raises:
      ValueError: the bytes are not an exported program, or damaged, or have unknown values.
    """
    more: dict[str, Any] = {}
    if blob[4:8] == IDENTIFIER:
        if digest(blob[:-16]) != blob[-16:]:
            raise ValueError("the exported program is damaged: its bytes are not those that were written")
        more = json.loads(blob[-20 - int.from_bytes(blob[-20:-16], "little") : -20])
    try:
        table = flat_tables.read(blob, SCHEMA, "Exported")
        return _read_program(table, more)
    except (ValueError, RecursionError) as error:
        raise ValueError(coded("BX-EXPORT", f"this is not an exported program, or a damaged one: {error}")) from error


def _writer(table: dict[str, Any]) -> str:
    """The writer of a program, for messages; empty if the program does not have it."""
    return f", written by jax or jaxlib {table['writer']}" if table["writer"] else ""


def _read_program(table: dict[str, Any], more: dict) -> list[dict[str, Any]]:
    if table["version"] not in VERSIONS:
        raise ValueError(
            f"it has version {table['version']} of the format{_writer(table)}, and versions {VERSIONS[0]} to"
            f" {VERSIONS[-1]} are known here, with jaxlib {runtime.jaxlib_version}"
        )
    devices = table["nr_devices"] or table["few_devices"]
    scope = shape_poly.SymbolicScope(more.get("constraints", ()))
    fields: dict[str, Any] = {
        "fun_name": table["fun_name"] or "",
        "nr_devices": devices,
        "in_tree": export_words.read_tree(_read_tree(table["in_tree"])),
        "out_tree": export_words.read_tree(_read_tree(table["out_tree"])),
        "platforms": tuple(table["platforms"] or ()),
        "ordered_effects": tuple([export_words.effect_named(e["name"] or "") for e in table["ordered_effects"] or ()]),
        "unordered_effects": tuple(
            [export_words.effect_named(e["name"] or "") for e in table["unordered_effects"] or ()]
        ),
        "disabled_safety_checks": [
            f"custom_call:{c['target'] or ''}" if _at(c["kind"], (False, True), "safety check") else "platform"
            for c in table["disabled_safety_checks"] or ()
        ],
        "mlir_module_serialized": table["module"] or b"",
        "calling_convention_version": table["calling_convention_version"],
        "module_kept_var_idx": tuple(table["module_kept_var_idx"] or ()),
        "uses_global_constants": bool(table["uses_global_constants"]),
    }
    named = []
    for side in ("in", "out"):
        avals = tuple([_read_aval(a, scope) for a in table[f"{side}_avals"] or ()])
        given = table[f"{side}_shardings"] or ()
        if len(avals) != fields[f"{side}_tree"].num_leaves or len(given) != len(avals):
            raise ValueError(
                f"{len(avals)} types and {len(given)} shardings for {fields[f'{side}_tree'].num_leaves} arrays"
            )
        fields[f"{side}_avals"] = avals
        fields[f"{side}_shardings_hlo"] = tuple(
            [_read_hlo(s, len(a.shape), devices) for s, a in zip(given, avals, strict=True)]
        )
        shardings = [s["named"] and _read_named(s["named"], devices) for s in given]
        fields[f"_{side}_named_shardings"] = tuple(shardings)
        fields[f"_{side}_memories"] = tuple(
            [_read_memory(a, s) for a, s in zip(table[f"{side}_avals"] or (), shardings, strict=True)]
        )
        named += [s["named"] is not None or not s["hlo"] for s in given]
    if not all(named):
        fields.update(NAMED)
    kept = fields["module_kept_var_idx"]
    if sorted(set(kept)) != list(kept) or any(i >= len(fields["in_avals"]) for i in kept):
        raise ValueError(f"the module cannot take the arguments {kept} of {len(fields['in_avals'])}")
    rest = [] if table["vjp"] is None else _read_program(table["vjp"], more.get("vjp") or {})
    return [fields, *rest]
