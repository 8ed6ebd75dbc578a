"""The FlatBuffers encoding of tables of scalars, texts, vectors and tables; every read is checked.

A schema is a dictionary ``name -> fields``; the fields of a table are listed in the order of their slots, each a
name and a kind: ``"u8" "u16" "u32" "text" "bytes"``, a vector of these (``"[u8]" "[u16]" "[u32]" "[text]"``), the
name of a table, or a vector of tables (``"[Name]"``). The value of a table is a dictionary.

The encoding is public (flatbuffers.dev): little-endian; a table begins with the signed distance back to its vtable,
which has, after its own size and that of the table, the position of each field in the table, 0 for an absent one; a
value that is not a scalar is an unsigned distance forward; a vector begins with its length.
"""

from __future__ import annotations

import struct
from typing import Any

Schema = dict[str, tuple[tuple[str, str], ...]]

_SCALARS = {"u8": ("<B", 1), "u16": ("<H", 2), "u32": ("<I", 4)}


class _Reader:
    def __init__(self, data: bytes, schema: Schema) -> None:
        self.data, self.schema = data, schema
        self.left = len(data)  # bytes that tables may still use: tables that share parts could expand forever

    def number(self, at: int, size: int) -> int:
        if at < 0 or at + size > len(self.data):
            raise ValueError(f"damaged: byte {at} is beyond the {len(self.data)} bytes there are")
        return int.from_bytes(self.data[at : at + size], "little")

    def follow(self, at: int) -> int:
        return at + self.number(at, 4)

    def table(self, at: int, name: str) -> dict[str, Any]:
        distance = self.number(at, 4)
        vtable = at - (distance - (1 << 32) if distance >> 31 else distance)
        count, size = self.number(vtable, 2), self.number(vtable + 2, 2)
        self.number(at, size)
        self.left -= max(size, 4)
        if self.left < 0:
            raise ValueError("damaged: its tables are larger than it is")
        found = {}
        for slot, (field, kind) in enumerate(self.schema[name]):
            place = self.number(vtable + 4 + 2 * slot, 2) if 4 + 2 * slot < count else 0
            if place:
                found[field] = self.value(at + place, kind)
            else:
                found[field] = 0 if kind in _SCALARS else None
        return found

    def value(self, at: int, kind: str) -> Any:
        if kind in _SCALARS:
            return self.number(at, _SCALARS[kind][1])
        at = self.follow(at)
        if kind in self.schema:
            return self.table(at, kind)
        length = self.number(at, 4)
        if kind in ("text", "bytes"):
            self.number(at + 4, length)
            data = self.data[at + 4 : at + 4 + length]
            return data if kind == "bytes" else data.decode()  # UnicodeDecodeError is a ValueError
        kind = kind[1:-1]
        size = _SCALARS[kind][1] if kind in _SCALARS else 4
        self.number(at + 4, length * size)
        return [self.value(at + 4 + size * i, kind) for i in range(length)]


def read(data: bytes, schema: Schema, name: str) -> dict[str, Any]:
    """The table `name` that is the root of `data`; absent numbers are 0, other absent fields None.

    Raises:
      ValueError: a value is outside of the data, or nested too deeply.
    """
    reader = _Reader(data, schema)
    try:
        return reader.table(reader.follow(0), name)
    except RecursionError:
        raise ValueError("damaged: its tables are nested too deeply") from None


class _Writer:
    def __init__(self, schema: Schema) -> None:
        self.out, self.schema = bytearray(), schema

    def align(self, to: int) -> int:
        self.out += bytes(-len(self.out) % to)
        return len(self.out)

    def table(self, name: str, value: dict[str, Any]) -> int:
        fields = [(slot, f, kind) for slot, (f, kind) in enumerate(self.schema[name]) if value.get(f) not in (None, 0)]
        fields.sort(key=lambda field: -_SCALARS.get(field[2], ("", 4))[1])  # each is at a multiple of its size
        places, size = [0] * len(self.schema[name]), 4
        for slot, _, kind in fields:
            places[slot] = size
            size += _SCALARS.get(kind, ("", 4))[1]
        vtable = self.align(4)
        self.out += struct.pack(f"<{len(places) + 2}H", 4 + 2 * len(places), size, *places)
        at = self.align(4)
        self.out += struct.pack("<I", at - vtable) + bytes(size - 4)
        for slot, field, kind in fields:
            self.value(at + places[slot], kind, value[field])
        return at

    def value(self, at: int, kind: str, value: Any) -> None:
        """Write a value to the position `at`, or to the end, with its distance at `at`."""
        if kind in _SCALARS:
            struct.pack_into(_SCALARS[kind][0], self.out, at, value)
        elif kind in self.schema:
            struct.pack_into("<I", self.out, at, self.table(kind, value) - at)
        else:
            start = self.align(4)
            struct.pack_into("<I", self.out, at, start - at)
            if kind in ("text", "bytes"):
                data = value.encode() if kind == "text" else value
                self.out += struct.pack("<I", len(data)) + data + b"\0"
                return
            kind = kind[1:-1]
            size = _SCALARS[kind][1] if kind in _SCALARS else 4
            self.out += struct.pack("<I", len(value)) + bytes(size * len(value))
            for i, element in enumerate(value):
                self.value(start + 4 + size * i, kind, element)


def write(value: dict[str, Any], schema: Schema, name: str, identifier: bytes) -> bytes:
    """The table `name` as bytes; numbers that are 0 and values that are None are absent.

    Args:
      identifier: four bytes that identify the kind of file.
    """
    writer = _Writer(schema)
    writer.out += bytes(4) + identifier
    struct.pack_into("<I", writer.out, 0, writer.table(name, value))
    return bytes(writer.out)
