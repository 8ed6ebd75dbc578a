"""Treedefs as bytes, for the pure Python engine: the protocol buffer of jaxlib's engine.

A message is a list of nodes in post-order (field 1) and the distinct dict keys (field
2). A node has its arity (field 1, absent when 0), its kind (field 2) and, for a dict
with keys, a message (field 3) with the packed indices of its keys (field 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

_KINDS = {1: None, 2: list, 3: type(None), 4: tuple, 5: dict}  # 1: a leaf


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def _block(field: int, payload: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(payload)) + payload


def encode(nodes: Iterable[tuple[Any, ...]], leaf: type) -> bytes:
    """The bytes of a treedef's `(type, arity, data)` nodes; `leaf` is the type of a leaf.

    Raises:
      ValueError: a node is not built in, or a dict key is not a string.
    """
    kind_of = {t: kind for kind, t in _KINDS.items()} | {leaf: 1}
    interned: dict[str, int] = {}
    out = bytearray()
    for t, arity, data in nodes:
        if t not in kind_of:
            raise ValueError(
                "User-defined nodes are not supported when serializing pytrees as protocol buffers; "
                f"got {t}. Use built-in containers, or pickle."
            )
        body = bytearray()
        if arity:
            body += _varint(1 << 3) + _varint(arity)
        body += _varint(2 << 3) + _varint(kind_of[t])
        if t is dict and arity:
            if not all(isinstance(k, str) for k in data):
                raise ValueError(f"Only string keys are supported in proto pytree serialization, got {data!r}.")
            ids = b"".join(_varint(interned.setdefault(k, len(interned))) for k in data)
            body += _block(3, _block(1, ids))
        out += _block(1, bytes(body))
    for key in interned:
        out += _block(2, key.encode())
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    n = shift = 0
    while True:
        byte = data[at]
        at += 1
        n |= (byte & 0x7F) << shift
        if byte < 0x80:
            return n, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        value, at = _read_varint(data, at)
        if tag & 7 == 2:
            if at + value > len(data):
                raise IndexError("a field ends after the message")
            yield tag >> 3, data[at : at + value]
            at += value
        elif tag & 7 == 0:
            yield tag >> 3, value
        else:
            raise IndexError(f"wire type {tag & 7}")


def decode(data: bytes, leaf: type) -> list[tuple[Any, ...]]:
    """The nodes from the result of `encode`.

    Raises:
      ValueError: `data` is not such a message.
    """
    try:
        top = list(_fields(data))
        keys = [bytes(value).decode() for field, value in top if field == 2]
        nodes, depth = [], 0
        for node in (dict(_fields(value)) for field, value in top if field == 1):
            t, arity = _KINDS[node[2]] or leaf, node.get(1, 0)
            node_data = () if t is dict else None
            if 3 in node:
                ids, at = dict(_fields(node[3]))[1], 0
                while at < len(ids):
                    i, at = _read_varint(ids, at)
                    node_data += (keys[i],)
            depth += 1 - arity
            if depth < 1 or (t is dict and len(node_data) != arity):
                raise IndexError("a node lacks children")
            nodes.append((t, arity, node_data))
        if depth != 1:
            raise IndexError("not one root")
        return nodes
    except (IndexError, KeyError, TypeError, UnicodeDecodeError, AttributeError) as e:
        raise ValueError(f"Could not deserialize PyTreeDefProto: {e!r} in {len(data)} bytes.") from e
