"""A tree engine in pure Python, with the interface of the one inside jaxlib.

A treedef is a flat tuple of nodes in post-order, a node being `(type, arity, data)`: a
leaf is `(LEAF, 0, None)`, a dict has its sorted keys as data, a custom node what its
flatten function returned. Every operation is one pass over that tuple with an explicit
stack, so the depth of a tree is bounded by memory only. Comparing two treedefs is
comparing two tuples.

Messages about trees and registration are those of jaxlib's engine, so a program does not depend on
the engine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .sorting import sorted_keys

NAME = "python"


def _key_class(name: str, field: str, show: str) -> type:
    """A hashable entry of a key path: one field, equal only to entries of its own type."""

    def __init__(self, value):
        object.__setattr__(self, field, value)

    def __setattr__(self, attribute, value):
        raise AttributeError(f"{name} is immutable; make a new one instead of setting {attribute!r}.")

    def __eq__(self, other):
        return type(other) is type(self) and getattr(self, field) == getattr(other, field)

    namespace = {
        "__slots__": (field,),
        "__match_args__": (field,),
        "__module__": __name__,
        "__qualname__": name,
        "__init__": __init__,
        "__setattr__": __setattr__,
        "__eq__": __eq__,
        "__hash__": lambda self: hash((name, getattr(self, field))),
        "__repr__": lambda self: f"{name}({field}={getattr(self, field)!r})",
        "__str__": lambda self: show.format(getattr(self, field)),
        "__reduce__": lambda self: (type(self), (getattr(self, field),)),
    }
    return type(name, (), namespace)


if TYPE_CHECKING:

    class SequenceKey:
        """The key of an element of a list or tuple."""

        idx: int

        def __init__(self, idx: int) -> None: ...

    class DictKey:
        """The key of an entry of a dict."""

        key: Any

        def __init__(self, key: Any) -> None: ...

    class GetAttrKey:
        """The key of a field or attribute."""

        name: str

        def __init__(self, name: str) -> None: ...

    class FlattenedIndexKey:
        """The key of a child of a node without keys."""

        key: int

        def __init__(self, key: int) -> None: ...

else:
    SequenceKey = _key_class("SequenceKey", "idx", "[{!r}]")
    DictKey = _key_class("DictKey", "key", "[{!r}]")
    GetAttrKey = _key_class("GetAttrKey", "name", ".{}")
    FlattenedIndexKey = _key_class("FlattenedIndexKey", "key", "[<flat index {}>]")


class LEAF:
    """The type of a leaf in a treedef's nodes."""


class _Node(NamedTuple):
    type: type
    arity: int
    data: Any


_LEAF_NODE = _Node(LEAF, 0, None)
_new_node = functools.partial(tuple.__new__, _Node)  # half the time of a call of the class


class _Rule(NamedTuple):
    """The functions that flatten and unflatten one type."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Sequence[Any]], Any]
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None
    custom: bool = True


def _flatten_dict(tree):
    keys = sorted_keys(tree)
    return [tree[k] for k in keys], tuple(keys)


def _flatten_dict_with_keys(tree):
    keys = sorted_keys(tree)
    return [(_name_key(k) if type(k) is str else DictKey(k), tree[k]) for k in keys], tuple(keys)


def _sequence_with_keys(tree):
    return list(zip(map(_index_key, range(len(tree))), tree)), None


# Entries of paths are immutable, so equal ones can be one object.
_name_key = functools.lru_cache(4096)(DictKey)
_index_key = functools.lru_cache(4096)(SequenceKey)


def _items(tree) -> tuple:
    """The fields of a namedtuple, also if its class overrides iteration and length."""
    return tuple(tuple.__iter__(tree))


def _namedtuple_with_keys(tree):
    return [(GetAttrKey(name), x) for name, x in zip(type(tree)._fields, _items(tree))], None


_BUILTIN_RULES = {
    "none": (type(None), _Rule(lambda x: ((), None), lambda _, xs: None, lambda x: ((), None), False)),
    "tuple": (tuple, _Rule(lambda x: (x, None), lambda _, xs: tuple(xs), _sequence_with_keys, False)),
    "list": (list, _Rule(lambda x: (x, None), lambda _, xs: list(xs), _sequence_with_keys, False)),
    "dict": (dict, _Rule(_flatten_dict, lambda keys, xs: dict(zip(keys, xs)), _flatten_dict_with_keys, False)),
}
_DICT_RULE = _BUILTIN_RULES["dict"][1]
_SEQUENCE_RULES = (_BUILTIN_RULES["tuple"][1], _BUILTIN_RULES["list"][1])
_NAMEDTUPLE_RULE = _Rule(lambda x: (_items(x), None), None, _namedtuple_with_keys, False)


def _is_namedtuple_type(t: type) -> bool:
    return issubclass(t, tuple) and hasattr(t, "_fields")


def _checked_children(result: Any) -> tuple[list, Any]:
    """The result of a user's flatten function, with its children as a list."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise ValueError(
            "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple, "
            f"got {result!r}"
        )
    try:
        return list(result[0]), result[1]
    except TypeError:
        raise ValueError(
            "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple "
            f"where 'children' is iterable, got {result!r}"
        ) from None


def _checked_pairs(result: Any) -> tuple[list, Any]:
    """The result of a user's flatten-with-keys function, with its (key, child) pairs as a list."""
    function = "The to_iterable_with_keys function for a custom PyTree node"
    what = f"{function} should return a (key_leaf_pairs, aux_data) tuple"
    if not isinstance(result, tuple) or len(result) != 2:
        raise ValueError(f"{what}, got {result!r}")
    pairs = list(result[0])
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(f"{what} where every child is a (key, value) tuple, got the child {pair!r}")
    return pairs, result[1]


def _says_leaf(answer: Any) -> bool:
    if answer is None or answer is False:
        return False
    if answer is True:
        return True
    raise ValueError(f"is_leaf predicate returned a non-boolean value {answer!r}; expected a boolean")


class PyTreeRegistry:
    """The types that are nodes, with the functions that flatten and unflatten each."""

    def __init__(
        self,
        enable_none: bool = True,
        enable_tuple: bool = True,
        enable_namedtuple: bool = True,
        enable_list: bool = True,
        enable_dict: bool = True,
    ) -> None:
        enabled = {"none": enable_none, "tuple": enable_tuple, "list": enable_list, "dict": enable_dict}
        self._rules: dict[type, _Rule] = {t: rule for name, (t, rule) in _BUILTIN_RULES.items() if enabled[name]}
        self._namedtuples = enable_namedtuple
        self._leaves: set[type] = set()  # types that were leaves lately
        self._often: dict[Any, _Expected] = {}  # (type, keys or length) of trees -> what such trees were lately
        self._leaf: PyTreeDef = PyTreeDef._of(self, (_LEAF_NODE,), 1)

    def register_node(
        self,
        type: type,
        to_iterable: Callable[..., Any] | None,
        from_iterable: Callable[..., Any] | None,
        to_iterable_with_keys: Callable[..., Any] | None = None,
    ) -> None:
        if not (callable(to_iterable) and callable(from_iterable)):
            raise TypeError(
                f"register_node needs callables to flatten and unflatten {type}, got {to_iterable!r} "
                f"and {from_iterable!r}."
            )
        if type in self._rules:
            raise ValueError(f"Duplicate custom PyTreeDef type registration for {type}.")
        self._add(type, _Rule(to_iterable, from_iterable, to_iterable_with_keys))

    def register_dataclass_node(self, type: type, data_fields: tuple[str, ...], meta_fields: tuple[str, ...]) -> None:
        data_fields, meta_fields = tuple(data_fields), tuple(meta_fields)
        if type in self._rules:
            raise ValueError(f"Duplicate custom dataclass PyTreeDef type registration for {type}.")

        def flatten(x):
            return tuple(getattr(x, f) for f in data_fields), tuple(getattr(x, f) for f in meta_fields)

        def flatten_with_keys(x):
            children, meta = flatten(x)
            return tuple((GetAttrKey(f), c) for f, c in zip(data_fields, children)), meta

        def unflatten(meta, children):
            return type(**dict(zip(data_fields, children)), **dict(zip(meta_fields, meta)))

        self._add(type, _Rule(flatten, unflatten, flatten_with_keys))

    def _add(self, type: type, rule: _Rule) -> None:
        self._rules[type] = rule
        self._leaves = set()  # a new object: a loop in another thread has the old one

    def is_node(self, type: type) -> bool:
        return self._rule(type) is not None

    def _rule(self, t: type) -> _Rule | None:
        rule = self._rules.get(t)
        if rule is None and self._namedtuples and isinstance(t, type) and _is_namedtuple_type(t):
            return _NAMEDTUPLE_RULE
        return rule

    def flatten(self, tree: Any, leaf_predicate: Callable[..., Any] | None = None) -> tuple[list[Any], PyTreeDef]:
        if leaf_predicate is not None:
            return self._flatten_until(tree, leaf_predicate)
        find, known = self._rules.get, self._leaves
        t = type(tree)
        if t in known:
            return [tree], self._leaf
        often, key = self._often, (t, *tree) if t is dict else (t, len(tree)) if t is tuple or t is list else t
        expected = often.get(key)
        if expected is not None and expected.reads is not None:
            leaves = expected.reads(tree, known)
            if leaves is not None:
                return leaves, expected.treedef
        nodes: list[_Node] = []
        leaves: list[Any] = []
        stack = [tree]
        pop, add, add_leaf = stack.pop, nodes.append, leaves.append
        while stack:
            x = pop()
            t = type(x)
            if t in known:
                add_leaf(x)
                add(_LEAF_NODE)
                continue
            if t is _Node:  # all children of this node are done: it follows in post-order
                add(x)
                continue
            rule = find(t)
            if rule is _DICT_RULE:
                keys = sorted_keys(x)
                children, data = [x[k] for k in keys], tuple(keys)
            elif rule in _SEQUENCE_RULES:
                children, data = x, None
            elif rule is not None:
                children, data = _checked_children(rule.flatten(x)) if rule.custom else rule.flatten(x)
            elif self._namedtuples and issubclass(t, tuple) and hasattr(t, "_fields"):
                children, data = _NAMEDTUPLE_RULE.flatten(x)
            else:
                if len(known) > 256:
                    known.clear()
                known.add(t)
                add_leaf(x)
                add(_LEAF_NODE)
                continue
            node = _new_node((t, len(children), data))
            for child in children:
                if type(child) not in known:
                    stack.append(node)
                    stack.extend(children[::-1])
                    break
            else:
                leaves.extend(children)
                nodes.extend([_LEAF_NODE] * len(children))
                add(node)
        treedef = PyTreeDef._of(self, tuple(nodes), len(leaves))
        return leaves, treedef if key is t else self._noted(key, expected, treedef)

    def _noted(self, key: tuple[Any, ...], expected: _Expected | None, treedef: PyTreeDef) -> PyTreeDef:
        """Note the structure of a tree. Returns the treedef, or an equal one that is expected for such trees."""
        if expected is not None and expected.count > _OFTEN:  # a function reads such trees, or would save no time
            return treedef
        if not _is_readable(treedef):  # others hold objects of users, which are not kept
            return treedef
        if expected is None or expected.treedef._nodes != treedef._nodes:
            if len(self._often) > 256:
                self._often.clear()
            self._often[key] = _Expected(treedef, 1 if expected is None else expected.count + 1)
            return treedef
        expected.count += 1
        expected.equal += 1
        if expected.equal == _OFTEN // 2:
            expected.treedef._up_to = _reader(expected.treedef, False)
            expected.reads = _reader(expected.treedef, True)
        return expected.treedef

    def _flatten_until(self, tree: Any, leaf_predicate: Callable[..., Any]) -> tuple[list[Any], PyTreeDef]:
        """`flatten` with a predicate."""
        find, namedtuples = self._rules.get, self._namedtuples
        nodes, leaves, stack = [], [], [tree]
        while stack:
            x = stack.pop()
            t = type(x)
            if t is _Node:  # all children of this node are done: it follows in post-order
                nodes.append(x)
                continue
            if _says_leaf(leaf_predicate(x)):
                rule = None
            else:
                rule = find(t)
                if rule is None and namedtuples and issubclass(t, tuple) and hasattr(t, "_fields"):
                    rule = _NAMEDTUPLE_RULE
            if rule is None:
                leaves.append(x)
                nodes.append(_LEAF_NODE)
                continue
            children, data = _checked_children(rule.flatten(x)) if rule.custom else rule.flatten(x)
            node = _Node(t, len(children), data)
            if children:
                stack.append(node)
                stack.extend(reversed(children))
            else:
                nodes.append(node)
        return leaves, PyTreeDef._of(self, tuple(nodes), len(leaves))

    def flatten_with_path(
        self, tree: Any, leaf_predicate: Callable[..., Any] | None = None
    ) -> tuple[list[Any], PyTreeDef]:
        known = self._leaves
        t = type(tree)
        key = (t, *tree) if t is dict else (t, len(tree)) if t is tuple or t is list else t
        expected = self._often.get(key) if leaf_predicate is None else None
        if expected is not None and expected.reads is not None and expected.treedef._paths is not None:
            plain = expected.reads(tree, known)
            if plain is not None:
                return list(zip(expected.treedef._paths, plain)), expected.treedef
        nodes: list[_Node] = []
        leaves: list[Any] = []
        stack: list[tuple[Any, Any]] = [((), tree)]
        pop, add, add_leaf = stack.pop, nodes.append, leaves.append
        while stack:
            path, x = pop()
            if path is None:
                add(x)
                continue
            t = type(x)
            if leaf_predicate is not None and _says_leaf(leaf_predicate(path, x)):
                rule = None
            else:
                rule = self._rule(t)
            if rule is None:
                add_leaf((path, x))
                add(_LEAF_NODE)
                continue
            pairs, data = self._pairs(rule, x)
            node = _new_node((t, len(pairs), data))
            if leaf_predicate is None:
                for _, child in pairs:
                    if type(child) not in known:
                        break
                else:
                    for key, child in pairs:
                        add_leaf(((*path, key), child))
                    nodes.extend([_LEAF_NODE] * len(pairs))
                    add(node)
                    continue
            stack.append((None, node))
            stack.extend([((*path, key), child) for key, child in pairs[::-1]])
        treedef = PyTreeDef._of(self, tuple(nodes), len(leaves))
        if leaf_predicate is not None or key is t:
            return leaves, treedef
        if expected is not None and expected.reads is not None and expected.treedef._nodes == treedef._nodes:
            if _is_readable(treedef):
                expected.treedef._paths = [path for path, _ in leaves]
        return leaves, self._noted(key, expected, treedef)

    def _pairs(self, rule: _Rule, x) -> tuple[Sequence[tuple[Any, Any]], Any]:
        if not rule.custom:
            return rule.flatten_with_keys(x)
        if rule.flatten_with_keys is not None:
            return _checked_pairs(rule.flatten_with_keys(x))
        children, data = _checked_children(rule.flatten(x))
        return [(FlattenedIndexKey(i), c) for i, c in enumerate(children)], data

    def flatten_one_level(self, tree: Any) -> tuple[Any, Any] | None:
        rule = self._rule(type(tree))
        if rule is None:
            return None
        if rule is _NAMEDTUPLE_RULE:
            return list(_items(tree)), type(tree)
        return _checked_children(rule.flatten(tree)) if rule.custom else rule.flatten(tree)

    def flatten_one_level_with_keys(self, tree: Any) -> tuple[Any, Any]:
        rule = self._rule(type(tree))
        if rule is None:
            return None
        pairs, data = self._pairs(rule, tree)
        return pairs, type(tree) if rule is _NAMEDTUPLE_RULE else data

    def _build(self, node: _Node, children: list) -> Any:
        rule = self._rules.get(node.type)
        if rule is not None:
            return rule.unflatten(node.data, tuple(children) if rule.custom else children)
        return node.type(*children)  # a namedtuple


class PyTreeDef:
    """The shape of a tree: made by flattening, compared by value, hashable."""

    __slots__ = ("_registry", "_nodes", "_num_leaves", "_hash", "_builds", "_built", "_paths", "_up_to")

    def __init__(self) -> None:
        raise TypeError("PyTreeDef has no constructor; use tree_structure(tree) to make one.")

    @classmethod
    def _of(cls, registry: PyTreeRegistry, nodes: tuple[_Node, ...], num_leaves: int | None = None) -> PyTreeDef:
        self = object.__new__(cls)
        self._registry = registry
        self._nodes = nodes
        self._hash = None
        self._builds, self._built = None, 0
        self._up_to = self._paths = (
            None  # a function for `flatten_up_to`, and the key paths, of treedefs that are expected
        )
        self._num_leaves = sum(n.type is LEAF for n in nodes) if num_leaves is None else num_leaves
        return self

    @property
    def num_leaves(self) -> int:
        return self._num_leaves

    @property
    def num_nodes(self) -> int:
        return len(self._nodes)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not PyTreeDef:
            return NotImplemented
        try:
            return self._nodes == other._nodes
        except Exception as e:
            raise ValueError(
                "Exception raised while checking equality of metadata fields of pytree. Make sure that metadata "
                "fields are hashable and compare with == to one bool (an array is not such a field)."
            ) from e

    def __hash__(self) -> int:
        # Metadata is not hashed: it may be unhashable, and equal shapes with different metadata are rare.
        if self._hash is None:
            self._hash = hash(tuple([(n.type, n.arity) for n in self._nodes]))
        return self._hash

    def __repr__(self) -> str:
        def show(node, children):
            body = ", ".join(children)
            t = node.type
            if t is LEAF:
                return "*"
            if t is type(None):
                return "None"
            if t is tuple:
                return f"({body},)" if len(children) == 1 else f"({body})"
            if t is list:
                return f"[{body}]"
            if t is dict:
                return "{" + ", ".join(f"{k!r}: {c}" for k, c in zip(node.data, children)) + "}"
            if t not in self._registry._rules:
                return f"CustomNode(namedtuple[{t.__name__}], [{body}])"
            return f"CustomNode({t.__name__}[{node.data}], [{body}])"

        return f"PyTreeDef({self._fold(show, lambda: '*')})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._registry, tuple(map(tuple, self._nodes)))

    def _fold(self, at_node: Callable[[_Node, list], Any], next_leaf: Callable[[], Any]) -> Any:
        """Replaces, in post-order, every leaf by `next_leaf()` and every node by `at_node(node, children)`."""
        done: list[Any] = []
        for node in self._nodes:
            arity = node.arity
            if node.type is LEAF:
                done.append(next_leaf())
            elif arity:
                children = done[-arity:]
                del done[-arity:]
                done.append(at_node(node, children))
            else:
                done.append(at_node(node, []))
        (result,) = done
        return result

    def unflatten(self, leaves: Iterable[Any], /) -> Any:
        leaves = list(leaves)
        if len(leaves) < self._num_leaves:
            raise ValueError(f"Too few leaves for PyTreeDef; expected {self._num_leaves}, got {len(leaves)}")
        if len(leaves) > self._num_leaves:
            raise ValueError(f"Too many leaves for PyTreeDef; expected {self._num_leaves}.")
        if self._builds is not None:
            return self._builds(leaves)
        self._built += 1
        if self._built == _OFTEN:
            self._builds = _builder(self)
        return self._build_by_nodes(leaves)

    def _build_by_nodes(self, leaves: list[Any]) -> Any:
        build = self._registry._build
        done: list[Any] = []
        add, leaf = done.append, iter(leaves).__next__
        for node in self._nodes:
            t, arity, data = node
            if t is LEAF:
                add(leaf())
            elif arity:
                children = done[-arity:]
                del done[-arity:]
                add(dict(zip(data, children)) if t is dict else build(node, children))
            else:
                add(build(node, []))
        return done[0]

    def walk(
        self, f_node: Callable[[Any, Any], Any], f_leaf: Callable[[Any], Any] | None, leaves: Iterable[Any], /
    ) -> tuple[Any, ...]:
        """Folds the tree: `f_leaf(leaf)` at leaves, `f_node(children, node_data)` at nodes."""
        leaves = list(leaves)
        if len(leaves) != self._num_leaves:
            amount = "few" if len(leaves) < self._num_leaves else "many"
            raise ValueError(f"Too {amount} leaves for PyTreeDef: {self._num_leaves} are needed, got {len(leaves)}")
        it = iter(leaves)
        next_leaf = it.__next__ if f_leaf is None else lambda: f_leaf(next(it))

        def at_node(node, children):
            data = list(node.data) if node.type is dict else node.data
            if node.type not in self._registry._rules:
                data = node.type
            return f_node(tuple(children), data)

        return self._fold(at_node, next_leaf)

    def _starts(self) -> list[int]:
        """For each node the index of the start of its subtree."""
        starts, open_starts = [], []
        for i, node in enumerate(self._nodes):
            start = i
            if node.arity:
                start = open_starts[-node.arity]
                del open_starts[-node.arity :]
            open_starts.append(start)
            starts.append(start)
        return starts

    def children(self) -> list[PyTreeDef]:
        starts, end, out = self._starts(), len(self._nodes) - 1, []
        for _ in range(self._nodes[-1].arity):
            start = starts[end - 1]
            out.append(PyTreeDef._of(self._registry, self._nodes[start:end]))
            end = start
        return out[::-1]

    def node_data(self) -> tuple[type, Any] | None:
        t, _, data = self._nodes[-1]
        if t is LEAF:
            return None
        return t, list(data) if t is dict else data

    @staticmethod
    def from_node_data_and_children(
        registry: PyTreeRegistry, node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]
    ) -> PyTreeDef:
        children = list(children)
        if node_data is None:
            if children:
                raise RuntimeError(f"PyTreeDef traversal did not yield a singleton: {len(children)} below a leaf.")
            return PyTreeDef._of(registry, (_LEAF_NODE,))
        t, data = node_data
        if not registry.is_node(t):
            raise RuntimeError(f"Could not find type: {t}. Register it as a pytree node first.")
        if t is dict:
            data = tuple(data)
            if len(data) != len(children):
                raise RuntimeError(f"Number of keys and entries does not match: {len(data)} and {len(children)}.")
        nodes = [n for c in children for n in c._nodes]
        return PyTreeDef._of(registry, (*nodes, _Node(t, len(children), data)))

    def compose(self, inner: PyTreeDef, /) -> PyTreeDef:
        """The treedef of this tree with a tree of structure `inner` at every leaf."""
        nodes: list[Any] = []
        for node in self._nodes:
            nodes.extend(inner._nodes if node.type is LEAF else (node,))
        return PyTreeDef._of(self._registry, tuple(nodes), self._num_leaves * inner._num_leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` at this treedef's leaves."""
        if self._up_to is not None:
            found = self._up_to(tree, None)
            if found is not None:
                return found
        out: list[Any] = []
        agenda = [tree]
        pop, extend, add = agenda.pop, agenda.extend, out.append
        for node in reversed(self._nodes):
            x = pop()
            t, arity, data = node
            if t is LEAF:
                add(x)
            elif t is dict and type(x) is dict and len(x) == arity and all(map(x.__contains__, data)):
                extend([x[k] for k in data])
            else:
                extend(self._matching_children(node, x))
        return out[::-1]

    def _matching_children(self, node: _Node, x: Any) -> Iterable[Any]:
        t, arity, data = node
        rule = self._registry._rules.get(t)
        if t is type(None):
            if x is not None:
                raise ValueError(f"Expected None, got {x!r}.")
            return ()
        if t is tuple or t is list:
            if type(x) is not t:
                raise ValueError(f"Expected {t.__name__}, got {x!r}.")
            if len(x) != arity:
                name = t.__name__
                raise ValueError(f"{name.capitalize()} arity mismatch: {len(x)} != {arity}; {name}: {x!r}.")
            return x
        if t is dict:
            if type(x) is not dict:
                raise ValueError(f"Expected dict, got {x!r}.")
            children, keys = rule.flatten(x)
            if keys != data:
                raise ValueError(f"Dict key mismatch; expected keys: {list(data)}; present keys: {list(keys)}.")
            return children
        if rule is None:
            if not (isinstance(x, tuple) and hasattr(x, "_fields")):
                raise ValueError(f"Expected named tuple, got {x!r}.")
            children = _items(x)
            if len(children) != arity:
                raise ValueError(f"Named tuple arity mismatch: {len(children)} != {arity}; tuple: {x!r}.")
            if type(x) is not t:
                raise ValueError(f"Named tuple type mismatch: expected type: {t}, tuple: {x!r}.")
            return children
        if type(x) is not t:
            raise ValueError(f"Custom node type mismatch: expected type: {t}, value: {x!r}.")
        children, other = _checked_children(rule.flatten(x))
        if other is not data and other != data:
            raise ValueError(f"Mismatch custom node data: {data!r} != {other!r}; value: {x!r}.")
        if len(children) != arity:
            raise ValueError(f"Custom type arity mismatch: {len(children)} != {arity}; value: {x!r}.")
        return children

    def from_iterable_tree(self, xs: Any, /) -> Any:
        """The tree with this structure, from nested iterables of the children of its nodes."""
        leaves, agenda = [], [xs]
        for node in reversed(self._nodes):
            x = agenda.pop()
            if node.type is LEAF:
                leaves.append(x)
                continue
            children = list(x)
            if len(children) != node.arity:
                raise ValueError(f"Arity mismatch between trees: {node.arity} children are needed, got {len(children)}")
            agenda.extend(children)
        return self.unflatten(leaves[::-1])

    def serialize_using_proto(self) -> bytes:
        """This treedef in jaxlib's protocol buffer; only for built-in nodes, with string keys."""
        from . import wire

        return wire.encode(self._nodes, LEAF)

    @staticmethod
    def deserialize_using_proto(registry: PyTreeRegistry, data: bytes) -> PyTreeDef:
        from . import wire

        return PyTreeDef._of(registry, tuple(_Node(*n) for n in wire.decode(data, LEAF)))


_OFTEN: Final = 64  # trees of one treedef, after which a function is compiled to build them
_DEEPEST: Final = 40  # Python's parser has a limit of nested parentheses


def _builder(treedef: PyTreeDef) -> Callable[[list[Any]], Any] | None:
    """A function from leaves to a tree, written as one expression of Python; None for a large or deep tree.

    def build(leaves):
        a0, a1, = leaves
        return {k0: a0, k1: [a1]}
    """
    count, nodes, rules = treedef._num_leaves, treedef._nodes, treedef._registry._rules
    if not 0 < len(nodes) <= 2000 or not count:
        return None
    names: dict[str, Any] = {}

    def name(value: Any) -> str:
        if type(value) is str:
            return repr(value)
        names[key := f"k{len(names)}"] = value
        return key

    done: list[tuple[str, int]] = []  # source and depth
    leaf = iter(range(count)).__next__
    for t, arity, data in nodes:
        parts = done[len(done) - arity :]
        del done[len(done) - arity :]
        depth = 1 + max([d for _, d in parts], default=0)
        inner = "".join([f"{text}, " for text, _ in parts])
        rule = rules.get(t)
        if t is LEAF:
            text = f"a{leaf()}"
        elif t is dict:
            text = "{" + "".join([f"{name(k)}: {v}, " for k, (v, _) in zip(data, parts)]) + "}"
        elif t is list:
            text = f"[{inner}]"
        elif t is tuple:
            text = f"({inner})"
        elif rule is None:  # a namedtuple
            text = f"{name(t)}({inner})"
        else:
            text = f"{name(rule.unflatten)}({name(data)}, ({inner}))"
        if depth > _DEEPEST:
            return None
        done.append((text, depth))
    arguments = "".join([f"a{i}, " for i in range(count)])
    exec(f"def build(leaves):\n    {arguments}= leaves\n    return {done[0][0]}\n", names)
    return names["build"]


class _Expected:
    """The structure that trees with certain keys, or a certain length, had lately.

    Attributes:
      reads: ``(tree, types of leaves) -> leaves``, or None for a tree of another structure.
    """

    __slots__ = ("count", "equal", "reads", "treedef")

    def __init__(self, treedef: PyTreeDef, count: int) -> None:
        self.treedef = treedef
        self.count = count  # the number of trees with these keys, or this length, until `reads` is made
        self.equal = 0  # the number of trees of this structure
        self.reads: Callable[[Any, Any], list[Any] | None] | None = None


def _is_readable(treedef: PyTreeDef) -> bool:
    """Whether a treedef has tuples, lists, None, and dicts with keys of class `str`: equal ones are then the same."""
    for t, _, data in treedef._nodes:
        if t is dict:
            for key in data:
                if type(key) is not str:
                    return False
        elif t is not LEAF and t is not tuple and t is not list and t is not _NONE:
            return False
    return 1 < len(treedef._nodes) <= 2000


_NONE: Final = type(None)


def _reader(treedef: PyTreeDef, exact: bool) -> Callable[[Any, Any], list[Any] | None]:
    """A function from a tree to the subtrees at the leaves of a readable treedef; None if the tree does not fit.

    Args:
      exact: whether the structure of the tree must be this one: the subtrees are leaves, and keys are strings. Otherwise
        this one is a prefix of it.

    def read(v0, known):
        if type(v0) is not dict or len(v0) != 2: return
        for k in v0:
            if type(k) is not str: return
        try: v2, v1 = v0['a'], v0['b']
        except KeyError: return
        leaves = [v2, v1]
        return leaves if known.issuperset(map(type, leaves)) else None
    """
    lines, leaves, agenda, count = [], [], ["v0"], 1
    for t, arity, data in reversed(treedef._nodes):
        x = agenda.pop()
        if t is LEAF:
            leaves.append(x)
            continue
        if t is _NONE:
            lines.append(f"if {x} is not None: return")
            continue
        parts = [f"v{count + i}" for i in range(arity)]
        count += arity
        agenda += parts
        name = t.__name__
        lines.append(f"if type({x}) is not {name} or len({x}) != {arity}: return")
        if not arity:
            continue
        if t is not dict:
            lines.append(f"{', '.join(parts)}, = {x}")
            continue
        if exact:
            lines += [f"for k in {x}:", "    if type(k) is not str: return"]
        lines += [f"try: {', '.join(parts)}, = {', '.join(f'{x}[{k!r}]' for k in data)},", "except KeyError: return"]
    lines.append(f"leaves = [{', '.join(reversed(leaves))}]")
    lines.append("return leaves if known.issuperset(map(type, leaves)) else None" if exact else "return leaves")
    names: dict[str, Any] = {}
    exec("def read(v0, known):\n" + "".join([f"    {line}\n" for line in lines]), names)
    return names["read"]


def _restore(registry: PyTreeRegistry, nodes: tuple[tuple[type, int, Hashable], ...]) -> PyTreeDef:
    return PyTreeDef._of(registry, tuple(_Node(*n) for n in nodes))


def all_leaves(registry: PyTreeRegistry, xs: Iterable[Any], /) -> bool:
    return not any(registry.is_node(type(x)) for x in xs)


def treedef_tuple(registry: PyTreeRegistry, treedefs: Sequence[PyTreeDef], /) -> PyTreeDef:
    return PyTreeDef.from_node_data_and_children(registry, (tuple, None), treedefs)


default_registry: Final = PyTreeRegistry()
flatten_with_keys: Final = default_registry.flatten_one_level_with_keys
