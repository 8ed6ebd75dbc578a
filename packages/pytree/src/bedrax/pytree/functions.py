"""The functions on trees: flatten, unflatten, map, reduce, transpose, broadcast."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .engine import PyTreeDef, all_leaves_in, default_registry, treedef_tuple_in
from .paths import explain_unflattenable, tree_flatten_with_path
from .prefix import prefix_errors

T = TypeVar("T")
Leaf = Any


class Unspecified:
    """The type of the default of a missing argument."""

    def __repr__(self) -> str:
        return "..."


_unspecified = Unspecified()
_flatten = default_registry.flatten


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Leaf], PyTreeDef]:
    """Flattens a tree to its leaves, left to right, and its structure.

    Args:
      tree: tuples, lists, dicts, namedtuples, None, OrderedDicts, defaultdicts and
        registered types are nodes; anything else is a leaf.
      is_leaf: called for every subtree; if it returns True, the subtree is a leaf.

    Raises:
      ValueError: the keys of a dict cannot be sorted.
      RecursionError: the tree is nested too deeply.

    Examples:

      >>> jax.tree_util.tree_flatten([1, (2,)])
      ([1, 2], PyTreeDef([*, (*,)]))

      >>> leaves, structure = jax.tree.flatten({"b": [1, 2], "a": 3})
      >>> leaves
      [3, 1, 2]
      >>> structure
      PyTreeDef({'a': *, 'b': [*, *]})
    """
    try:
        return _flatten(tree, is_leaf)
    except (ValueError, SystemError) as e:
        explain_unflattenable(e, tree, is_leaf)
        raise


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Leaf]:
    """Return the leaves of a tree, from left to right. Dictionaries are in the order of their sorted keys.

    Args:
      tree: containers of containers of leaves. None has no leaf.
      is_leaf: ``node -> bool``: true for a node that counts as a leaf.

    Returns:
      A list.

    Examples:

      >>> jax.tree_util.tree_leaves([1, {"a": 2}])
      [1, 2]

      >>> jax.tree.leaves({"b": [1, None], "a": (2, 3)})
      [2, 3, 1]
    """
    try:
        return _flatten(tree, is_leaf)[0]
    except (ValueError, SystemError) as e:
        explain_unflattenable(e, tree, is_leaf)
        raise


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """Return the structure of a tree: its containers, without the leaves.

    Args:
      tree: containers of containers of leaves.
      is_leaf: ``node -> bool``: true for a node that counts as a leaf.

    Returns:
      A `PyTreeDef`. Structures are compared by ``==``.

    Examples:

      >>> jax.tree_util.tree_structure((1, [2]))
      PyTreeDef((*, [*]))

      >>> jax.tree.structure({"a": 1, "b": (2, None)})
      PyTreeDef({'a': *, 'b': (*, None)})
    """
    try:
        return _flatten(tree, is_leaf)[1]
    except (ValueError, SystemError) as e:
        explain_unflattenable(e, tree, is_leaf)
        raise


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Leaf]) -> Any:
    """Build a tree of a structure and leaves. It is the inverse of `tree_flatten`.

    Args:
      treedef: a structure, from `tree_structure` or `tree_flatten`.
      leaves: as many objects as the structure has leaves, from left to right.

    Returns:
      The tree.

    Raises:
      ValueError: the number of leaves is another one.

    Examples:

      >>> jax.tree_util.tree_unflatten(jax.tree.structure((0, [0])), [1, 2])
      (1, [2])

      >>> leaves, structure = jax.tree.flatten({"a": 1, "b": (2, 3)})
      >>> jax.tree.unflatten(structure, [-x for x in leaves])
      {'a': -1, 'b': (-2, -3)}
    """
    return treedef.unflatten(leaves)


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return whether each element of `iterable` is a leaf. None is a node.

    Args:
      iterable: the objects.
      is_leaf: ``node -> bool``: true for a node that counts as a leaf.

    Examples:

      >>> jax.tree_util.all_leaves([1, 2]), jax.tree_util.all_leaves([1, [2]])
      (True, False)
    """
    if is_leaf is None:
        return all_leaves_in(default_registry, iterable)
    return all(is_leaf(x) or not default_registry.is_node(type(x)) for x in iterable)


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Applies `f` to every leaf of `tree`, and to the subtrees of `rest` at the same position.

    Args:
      f: takes `1 + len(rest)` arguments.
      tree: the tree with the structure of the result.
      rest: trees that have `tree` as a prefix.
      is_leaf: if it returns True, a subtree of `tree` is a leaf.

    Raises:
      ValueError: `tree` is not a prefix of one of `rest`; the message names the position.

    Examples:

      >>> jax.tree_util.tree_map(lambda x: -x, (1, [2]))
      (-1, [-2])

      >>> jax.tree.map(lambda x: 10 * x, {"a": 1, "b": [2, 3]})
      {'a': 10, 'b': [20, 30]}
      >>> jax.tree.map(lambda x, y: x + y, [1, 2], [10, 20])
      [11, 22]
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in leaves])
    columns = [leaves, *_up_to(treedef, "tree_map tree", tree, rest, is_leaf)]
    return treedef.unflatten(list(map(f, *columns)))


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Like `tree_map`, for a function that takes the key path of the leaf, too.

    Args:
      f: takes ``(key_path, leaf, *subtrees)``; see `tree_flatten_with_path`.
      tree: the tree with the structure of the result.
      rest: trees that have `tree` as a prefix.
      is_leaf: if it returns True, a subtree of `tree` is a leaf.
      is_leaf_takes_path: call ``is_leaf(path, subtree)`` instead of ``is_leaf(subtree)``.

    Examples:

      >>> jax.tree.map_with_path(lambda path, x: jax.tree_util.keystr(path), {"a": [10, 20]})
      {'a': ["['a'][0]", "['a'][1]"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [*zip(*pairs)] if pairs else [(), ()]
    columns += _up_to(treedef, "tree_map_with_path tree", tree, rest, is_leaf, is_leaf_takes_path)
    return treedef.unflatten(list(map(f, *columns)))


def _up_to(
    treedef: PyTreeDef, name: str, tree: Any, rest: Iterable[Any], is_leaf, is_leaf_takes_path: bool = False
) -> list[list[Any]]:
    """The subtrees of every tree of `rest` at the leaves of `treedef`, the structure of `tree`."""
    columns = []
    for other in rest:
        try:
            columns.append(treedef.flatten_up_to(other))
        except ValueError:
            for make_error in prefix_errors(tree, other, is_leaf, is_leaf_takes_path):
                raise make_error(name) from None
            raise
    return columns


def tree_reduce(
    function: Callable[[T, Any], T],
    tree: Any,
    initializer: T | Unspecified = _unspecified,
    is_leaf: Callable[[Any], bool] | None = None,
) -> T:
    """`functools.reduce` over the leaves of a tree.

    Args:
      function: takes the result so far and a leaf.
      tree: the tree.
      initializer: the first result. Default: the first leaf.
      is_leaf: if it returns True, a subtree of `tree` is a leaf.

    Raises:
      TypeError: there are no leaves and no `initializer`.

    Examples:

      >>> jax.tree_util.tree_reduce(lambda x, y: x * y, [2, (3, 4)])
      24

      >>> jax.tree.reduce(lambda total, x: total + x, {"a": 1, "b": [2, 3]}, 100)
      106
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is _unspecified:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[T, T], T],
    tree: Any,
    *,
    identity: T | Unspecified = _unspecified,
    is_leaf: Callable[[Any], bool] | None = None,
) -> T:
    """Reduces the leaves with an associative `operation`, as a balanced tree of calls.

    The depth is logarithmic in the number of leaves, so sums lose less precision and
    independent calls can run in parallel.

    Args:
      operation: takes two leaves or results.
      tree: the tree.
      identity: the result without leaves.
      is_leaf: if it returns True, a subtree of `tree` is a leaf.

    Raises:
      TypeError: there are no leaves and no `identity`.

    Examples:

      >>> jax.tree.reduce_associative(lambda x, y: x + y, [1, 2, (3, 4)])
      10
    """
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is _unspecified:
            raise TypeError("tree_reduce_associative: a tree without leaves needs an identity; pass it")
        return identity

    def reduce(lo: int, hi: int) -> T:
        if hi - lo == 1:
            return leaves[lo]
        mid = (lo + hi) // 2
        return operation(reduce(lo, mid), reduce(mid, hi))

    return reduce(0, len(leaves))


def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return whether all leaves of a tree are true. It is True for a tree without leaves.

    Args:
      tree: containers of containers of booleans.
      is_leaf: ``node -> bool``: true for a node that counts as a leaf.

    Examples:

      >>> jax.tree_util.tree_all([True, False])
      False

      >>> jax.tree.all({"x": True, "y": [True, False]})
      False
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Turns a tree of structure (outer, inner) into one of structure (inner, outer).

    Args:
      outer_treedef: the structure of the tree's upper part.
      inner_treedef: the structure at each of its leaves; None: that of the first one.
      pytree_to_transpose: the tree.

    Raises:
      TypeError: the tree has another structure.

    Examples:

      >>> outer, inner = jax.tree.structure([0, 0]), jax.tree.structure((0, 0))
      >>> jax.tree_util.tree_transpose(outer, inner, [(1, 2), (3, 4)])
      ([1, 3], [2, 4])

      >>> outer, inner = jax.tree.structure([0, 0]), jax.tree.structure({"x": 0, "y": 0})
      >>> jax.tree.transpose(outer, inner, [{"x": 1, "y": 2}, {"x": 3, "y": 4}])
      {'x': [1, 3], 'y': [2, 4]}
    """
    treedef = tree_structure(pytree_to_transpose)
    try:
        subtrees = [tree_flatten(x) for x in outer_treedef.flatten_up_to(pytree_to_transpose)]
    except ValueError as e:
        raise TypeError(f"Mismatch: the outer structure\n{outer_treedef}\nis not a prefix of\n{treedef}\n{e}") from None
    if inner_treedef is None:
        if not subtrees:
            raise TypeError("tree_transpose cannot find inner_treedef: the outer structure has no leaves; pass it.")
        inner_treedef = subtrees[0][1]
    inner_size = inner_treedef.num_leaves
    if any(len(sub) != inner_size for sub, _ in subtrees):
        raise TypeError(f"Mismatch\n{treedef}\n != \n{outer_treedef.compose(inner_treedef)}")
    columns = [[sub[i] for sub, _ in subtrees] for i in range(inner_size)]
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A tree like `full_tree` in which every leaf is the corresponding leaf of `prefix_tree`.

    Args:
      prefix_tree: a tree that is a prefix of `full_tree`.
      full_tree: the tree with the structure of the result.
      is_leaf: if it returns True, a subtree of `prefix_tree` is a leaf.

    Raises:
      ValueError: `prefix_tree` is not a tree prefix of `full_tree`; the message names the position.

    Examples:

      >>> jax.tree.broadcast({"x": 1, "y": 2}, {"x": [10, 20], "y": 30})
      {'x': [1, 1], 'y': 2}
    """
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    (subtrees,) = _up_to(treedef, "tree_broadcast prefix_tree", prefix_tree, (full_tree,), is_leaf)
    structures = [tree_structure(x) for x in subtrees]
    return treedef.unflatten([s.unflatten([x] * s.num_leaves) for x, s in zip(leaves, structures)])


def tree_broadcast_leaves(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of `tree_broadcast`, one per leaf of `full_tree` (a leaf of the prefix may itself be a tree)."""
    leaves, treedef = tree_flatten(prefix_tree, is_leaf)
    (subtrees,) = _up_to(treedef, "tree_broadcast prefix_tree", prefix_tree, (full_tree,), is_leaf)
    out: list[Any] = []
    for x, sub in zip(leaves, subtrees):
        out += [x] * tree_structure(sub).num_leaves
    return out


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """The tree of structure `treedef` from nested iterables, one per node, of its children."""
    return treedef.from_iterable_tree(xs)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the root's children.

    Examples:

      >>> jax.tree_util.treedef_children(jax.tree.structure([0, (0, 0)]))
      [PyTreeDef(*), PyTreeDef((*, *))]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether a structure has one node only: it is a leaf, or a container without children.

    Examples:

      >>> jax.tree_util.treedef_is_leaf(jax.tree.structure(7))
      True
    """
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple whose elements have these structures.

    Examples:

      >>> jax.tree_util.treedef_tuple([jax.tree.structure(0), jax.tree.structure([0, 0])])
      PyTreeDef((*, [*, *]))
    """
    return treedef_tuple_in(default_registry, list(treedefs))


def make_from_node_data_and_children(
    registry: Any, node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]
) -> PyTreeDef:
    """The structure with the root `node_data` (a result of `PyTreeDef.node_data()`) and `children`."""
    treedef = PyTreeDef.from_node_data_and_children(registry, node_data, children)
    repr(treedef)  # jaxlib's engine checks that children fit the node only when it prints
    return treedef
