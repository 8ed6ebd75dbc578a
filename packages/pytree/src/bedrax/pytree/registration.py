"""The registration of types as pytree nodes, and the types registered here.

`_registry` maps every registered type to its `NodeRule`; libraries test `type in
_registry`. The engine's registry has the functions for flattening.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from .engine import DictKey, default_registry, dispatch_registry
from .sorting import sorted_keys

T = TypeVar("T")
Typ = TypeVar("Typ", bound=type)


class NodeRule(NamedTuple):
    """The functions that flatten and unflatten a registered type. jaxlie uses them, by these names."""

    to_iter: Callable[[Any], tuple[Iterable[Any], Hashable]]
    from_iter: Callable[[Hashable, Iterable[Any]], Any]


def _flatten_dict(x: dict[Any, Any]) -> tuple[Iterable[Any], Hashable]:
    keys = tuple(sorted_keys(x))
    return [x[k] for k in keys], keys


# The engine has its own functions for these types.
_registry: dict[type, NodeRule] = {
    type(None): NodeRule(lambda x: ((), None), lambda _, children: None),
    tuple: NodeRule(lambda x: (x, None), lambda _, children: tuple(children)),
    list: NodeRule(lambda x: (x, None), lambda _, children: list(children)),
    dict: NodeRule(_flatten_dict, lambda keys, children: dict(zip(keys, children))),
}


def _check_type(nodetype: Any, function: str) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(f"{function} registers a class as a pytree node, got {nodetype!r}; pass the class itself.")


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Hashable, Iterable[Any]], T],
    flatten_with_keys_func: Callable[[T], tuple[Iterable[tuple[Any, Any]], Hashable]] | None = None,
) -> None:
    """Makes `nodetype` a pytree node.

    Args:
      nodetype: the class (subclasses are not registered with it).
      flatten_func: node -> `(children, aux_data)`; `aux_data` must be hashable and comparable.
      unflatten_func: `(aux_data, children)` -> node. Must accept any object as a child.
      flatten_with_keys_func: node -> `(((key, child), ...), aux_data)`, for key paths.

    Raises:
      ValueError: `nodetype` is registered already.

    Examples:

      >>> class Pair:
      ...     def __init__(self, first, second):
      ...         self.first, self.second = first, second
      ...
      >>> jax.tree_util.register_pytree_node(
      ...     Pair, lambda p: ((p.first, p.second), None), lambda _, children: Pair(*children)
      ... )
      >>> jax.tree.leaves(Pair(1, [2, 3]))
      [1, 2, 3]
    """
    _check_type(nodetype, "register_pytree_node")
    default_registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)
    dispatch_registry.register_node(nodetype, flatten_func, unflatten_func, None)
    _registry[nodetype] = NodeRule(flatten_func, unflatten_func)


def register_pytree_node_class(cls: Typ) -> Typ:
    """Class decorator: a node by its methods `tree_flatten(self)` and `tree_unflatten(cls, aux_data, children)`.

    Examples:

      >>> @jax.tree_util.register_pytree_node_class
      ... class Scaled:
      ...     def __init__(self, value, unit):
      ...         self.value, self.unit = value, unit
      ...     def tree_flatten(self):
      ...         return (self.value,), self.unit
      ...     @classmethod
      ...     def tree_unflatten(cls, unit, children):
      ...         return cls(*children, unit)
      ...
      >>> jax.tree.map(lambda v: 10 * v, Scaled(2, "m")).value
      20
    """
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Hashable, Iterable[Any]], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Like `register_pytree_node`, from a function that also names the children.

    Args:
      nodetype: the class (subclasses are not registered with it).
      flatten_with_keys: node -> `(((key, child), ...), aux_data)`.
      unflatten_func: `(aux_data, children)` -> node. Must accept any object as a child.
      flatten_func: node -> `(children, aux_data)`, which agrees with `flatten_with_keys`. It avoids the construction of
        keys if no key path is needed.

    Raises:
      ValueError: `nodetype` is registered already.

    Examples:

      >>> class Pair:
      ...     def __init__(self, first, second):
      ...         self.first, self.second = first, second
      ...
      >>> key = jax.tree_util.GetAttrKey
      >>> jax.tree_util.register_pytree_with_keys(
      ...     Pair, lambda p: (((key("first"), p.first), (key("second"), p.second)), None), lambda _, c: Pair(*c)
      ... )
      >>> [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(Pair(1, 2))]
      ['.first', '.second']
    """
    if flatten_func is None:

        def flatten_func(x):
            pairs, aux_data = flatten_with_keys(x)
            return [child for _, child in pairs], aux_data

    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: Typ) -> Typ:
    """Class decorator: a node by `tree_flatten_with_keys`, `tree_unflatten` and, if it exists, `tree_flatten`.

    Examples:

      >>> @jax.tree_util.register_pytree_with_keys_class
      ... class Box:
      ...     def __init__(self, content):
      ...         self.content = content
      ...     def tree_flatten_with_keys(self):
      ...         return ((jax.tree_util.GetAttrKey("content"), self.content),), None
      ...     @classmethod
      ...     def tree_unflatten(cls, _, children):
      ...         return cls(*children)
      ...
      >>> [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path([Box(1)])]
      ['[0].content']
    """
    flatten = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten, flatten)
    return cls


def register_dataclass(
    nodetype: Typ,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Typ:
    """Makes a dataclass a pytree node; usable as a decorator.

    Args:
      nodetype: the class; unflattening calls it with its fields by keyword.
      data_fields: names of the fields that are children.
      meta_fields: names of the fields that are metadata (hashable, comparable). With
        neither given, a field made with `metadata={"static": True}` is metadata and any
        other field with `init=True` is data.
      drop_fields: fields that the tree omits; unflattening sets them to their default.

    Returns:
      `nodetype`.

    Raises:
      TypeError: only one of these two is given, or neither and `nodetype` is not a dataclass.
      ValueError: the names are not the dataclass's fields with `init=True`, each once.

    Examples:

      >>> import dataclasses
      >>> @jax.tree_util.register_dataclass
      ... @dataclasses.dataclass
      ... class Point:
      ...     x: float
      ...     y: float
      ...
      >>> jax.tree.map(lambda v: 2 * v, Point(1., 2.))
      Point(x=2.0, y=4.0)
    """
    _check_type(nodetype, "register_dataclass")
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            f"register_dataclass takes data_fields and meta_fields together, got {data_fields=} and {meta_fields=}; "
            "pass both, or neither to infer them from the dataclass."
        )
    if data_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(
                f"register_dataclass infers fields from a dataclass only, got {nodetype}; "
                "pass data_fields and meta_fields."
            )
        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
        data_fields = [f.name for f in fields if not f.metadata.get("static", False)]
    data_fields, meta_fields = tuple(data_fields), tuple(meta_fields)

    name = nodetype.__name__
    for kind, fields in (("data_fields", data_fields), ("meta_fields", meta_fields)):
        if repeated := sorted({f for f in fields if fields.count(f) > 1}):
            raise ValueError(
                f"register_dataclass: {kind} has {repeated} of {name} more than once; name each field once."
            )
    if twice := [f for f in data_fields if f in meta_fields]:
        raise ValueError(f"register_dataclass: {twice} of {name} are in both data_fields and meta_fields; choose one.")
    if dataclasses.is_dataclass(nodetype):
        wanted = [f.name for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        given = (*data_fields, *meta_fields)
        if missing := [f for f in wanted if f not in given]:
            raise ValueError(
                f"register_dataclass: the fields {missing} of {name} are in neither data_fields nor meta_fields; "
                "add them to one of the two, or to drop_fields."
            )
        if unexpected := [f for f in given if f not in wanted]:
            raise ValueError(
                f"register_dataclass: {unexpected} are not among the fields {wanted} of {name} that have init=True "
                "and are not dropped; remove them from data_fields and meta_fields."
            )

    default_registry.register_dataclass_node(nodetype, data_fields, meta_fields)
    dispatch_registry.register_dataclass_node(nodetype, data_fields, meta_fields)

    def flatten(x):
        return tuple(getattr(x, f) for f in data_fields), tuple(getattr(x, f) for f in meta_fields)

    def unflatten(meta, children):
        return nodetype(**dict(zip(data_fields, children)), **dict(zip(meta_fields, meta)))

    _registry[nodetype] = NodeRule(flatten, unflatten)
    return nodetype


def register_static(cls: type[T]) -> type[T]:
    """Makes `cls` a node without children: an instance is part of the treedef.

    Instances need `__hash__` and `__eq__`. Usable as a decorator.

    Examples:

      >>> import dataclasses
      >>> @jax.tree_util.register_static
      ... @dataclasses.dataclass(frozen=True)
      ... class Unit:
      ...     name: str
      ...
      >>> jax.tree.leaves([1, Unit("m")])
      [1]
    """
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x, lambda x: ((), x))
    return cls


def _flatten_defaultdict(d):
    keys = tuple(sorted_keys(d))
    return [d[k] for k in keys], (d.default_factory, keys)


def _flatten_defaultdict_with_keys(d):
    children, aux = _flatten_defaultdict(d)
    return [(DictKey(k), child) for k, child in zip(aux[1], children)], aux


register_pytree_node(
    collections.OrderedDict,
    lambda d: (tuple(d.values()), tuple(d)),
    lambda keys, values: collections.OrderedDict(zip(keys, values)),
    lambda d: (tuple((DictKey(k), v) for k, v in d.items()), tuple(d)),
)
register_pytree_node(
    collections.defaultdict,
    _flatten_defaultdict,
    lambda aux, values: collections.defaultdict(aux[0], zip(aux[1], values)),
    _flatten_defaultdict_with_keys,
)
