"""Pytrees, dtypes and effects in exported programs of either format: names, and lists for JSON.

A tree is ``["leaf"]``, ``["none"]``, ``["tuple" | "list", children]``, ``["dict", keys, children]``, ``["namedtuple" |
"custom", name, base64 of the auxiliary data, children]``. The names are those with which the class was
registered here.
"""

from __future__ import annotations

import base64
import collections
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bedrax import pytree
from bedrax.core import dtypes, effects, offers
from bedrax.pytree import PyTreeDef


class _Registered(NamedTuple):
    """A pytree class with a name in exported programs."""

    cls: type
    kind: str
    name: str
    write: Callable[..., Any]
    read: Callable[..., Any]
    build: Callable[..., Any] | None


_by_class: dict[type, _Registered] = {}
_by_name: dict[str, _Registered] = {}


def _register(entry: _Registered) -> None:
    known = _by_class.get(entry.cls)
    if known is not None:
        raise ValueError(f"{entry.cls} is registered for serialization already, under the name {known.name!r}")
    named = _by_name.get(entry.name)
    if named is not None:
        raise ValueError(
            f"serialized_name={entry.name!r} of {entry.cls} belongs to {named.cls} already; choose another"
        )
    _by_class[entry.cls] = _by_name[entry.name] = entry


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> type:
    """Register a class of pytree nodes for the arguments and results of exported programs.

    Args:
      nodetype: the class; it must be registered as a pytree node.
      serialized_name: its name in serialized programs; a stable name, because readers look it up.
      serialize_auxdata, deserialize_auxdata: convert the auxiliary data of a node to bytes and back.
      from_children: ``(auxiliary data, children) -> node``. Default: that of the pytree registration.

    Returns:
      `nodetype`.

    Raises:
      ValueError: the class is not a pytree node, or class or name are registered already.

    Examples:

      >>> from jax.experimental.array_serialization import pytree_serialization_utils as utils

      >>> @jax.tree_util.register_pytree_node_class
      ... class Sized:
      ...     def __init__(self, x, size):
      ...         self.x, self.size = x, size
      ...
      ...     def tree_flatten(self):
      ...         return (self.x,), self.size
      ...
      ...     @classmethod
      ...     def tree_unflatten(cls, size, children):
      ...         return cls(*children, size)
      ...
      >>> _ = utils.register_pytree_node_serialization(
      ...     Sized, serialized_name="example.Sized", serialize_auxdata=lambda size: str(size).encode(),
      ...     deserialize_auxdata=lambda text: int(text.decode()))
      >>> read = utils.deserialize_pytreedef(utils.serialize_pytreedef(jax.tree.structure(Sized(1., 7))))
      >>> jax.tree.unflatten(read, [2.]).size
      7

      >>> from jax import export

      >>> class Box:
      ...     def __init__(self, x):
      ...         self.x = x
      ...
      >>> jax.tree_util.register_pytree_node(Box, lambda b: ((b.x,), None), lambda _, c: Box(*c))
      >>> _ = export.register_pytree_node_serialization(
      ...     Box, serialized_name="docs.Box", serialize_auxdata=lambda aux: b"", deserialize_auxdata=lambda b: None
      ... )
      >>> exported = export.export(jax.jit(lambda b: b.x))(Box(jnp.float32(1)))
      >>> export.deserialize(exported.serialize()).call(Box(jnp.float32(5)))
      Array(5., dtype=float32)
    """
    if nodetype not in pytree._registry:
        raise ValueError(
            f"{nodetype}, serialized_name={serialized_name!r}, is not a pytree node yet; register it with"
            " jax.tree_util.register_pytree_node first"
        )
    _register(_Registered(nodetype, "custom", serialized_name, serialize_auxdata, deserialize_auxdata, from_children))
    return nodetype


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Register a class of named tuples for the arguments and results of exported programs.

    Args:
      nodetype: a class made by `collections.namedtuple` or `typing.NamedTuple`.
      serialized_name: its name in serialized programs.

    Examples:

      >>> from jax import export

      >>> import collections
      >>> Pair = collections.namedtuple("Pair", "x y")
      >>> _ = export.register_namedtuple_serialization(Pair, serialized_name="docs.Pair")
      >>> exported = export.export(jax.jit(lambda x: Pair(x, 2 * x)))(jnp.float32(1))
      >>> export.deserialize(exported.serialize()).call(jnp.float32(1))
      Pair(x=Array(1., dtype=float32), y=Array(2., dtype=float32))
    """
    if not _is_namedtuple(nodetype):
        raise ValueError(f"{nodetype} is not a named tuple; use jax.export.register_pytree_node_serialization")
    names = json.dumps(nodetype._fields).encode()
    build = lambda _, children: nodetype(*children)
    _register(_Registered(nodetype, "namedtuple", serialized_name, lambda _: names, lambda data: None, build))
    return nodetype


def _is_namedtuple(cls: type) -> bool:
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


# ---- trees ----


def write_tree(tree: PyTreeDef) -> list[Any]:
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
    return [found.kind, found.name, base64.b64encode(bytes(found.write(aux))).decode(), children]


def read_tree(data: list[Any]) -> Any:
    """The treedef from the result of `write_tree`."""
    return pytree.tree_structure(_read_node(data))


class _Hole:
    """Replaces a leaf."""


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
    found = _by_name.get(data[1])
    if found is None:
        how = "namedtuple" if kind == "namedtuple" else "pytree_node"
        raise ValueError(
            f"the exported program has a pytree node named '{data[1]}', which is not registered in this process; call"
            f" jax.export.register_{how}_serialization for its class"
        )
    try:
        aux = found.read(base64.b64decode(data[2]))
        build = found.build or pytree._registry[found.cls].from_iter
        return build(aux, tuple(children))
    except Exception as error:
        raise ValueError(
            f"the pytree node named '{data[1]}' cannot be made of {data[2]!r} (base64) and {len(children)} children"
        ) from error


register_pytree_node_serialization(
    collections.OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=lambda keys: json.dumps(keys).encode(),
    deserialize_auxdata=json.loads,
)


# ---- dtypes ----


def name_of_dtype(dtype: Any) -> str:
    """The name of a dtype in exported programs."""
    return "float0" if dtype == dtypes.float0 else getattr(dtype, "name", str(dtype))


def dtype_named(name: str) -> Any:
    """The dtype with the name `name` in exported programs."""
    if name in ("float0", dtypes.float0.name):
        return dtypes.float0
    read_name = offers.offered(f"dtypes {name.partition('<')[0]}")  # of extended dtypes, like key<fry>
    if read_name is not None:
        return read_name(name)
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(dtypes.as_dtype(name))


# ---- effects ----

_ELSEWHERE = {"<class 'jax._src.ffi.FfiEffect'>": "FfiEffect"}  # the names of our classes in other implementations


def name_of_effect(effect: effects.Effect) -> str:
    """The name of an effect in exported programs."""
    cls = type(effect)
    if effect not in effects.lowerable_effects or not _is_plain(effect):
        raise ValueError(
            f"the effect {effect} cannot be serialized: its class must be lowerable, and equal when made without arguments"
        )
    return next((name for name, known in _ELSEWHERE.items() if known == cls.__name__), str(cls))


def _is_plain(effect: effects.Effect) -> bool:
    try:
        return type(effect)() == effect
    except TypeError:
        return False


def _with_subclasses(classes: Iterable[type]) -> Iterator[type]:
    for cls in classes:
        yield cls
        yield from _with_subclasses(cls.__subclasses__())


def effect_named(name: str) -> effects.Effect:
    """The effect with the name `name` in exported programs."""
    for cls in _with_subclasses(effects.lowerable_effects.types):
        if name == str(cls) or _ELSEWHERE.get(name) == cls.__name__:
            return cls()
    raise ValueError(
        f"the exported program has the effect {name}, which is not known in this process; import its class"
    )
