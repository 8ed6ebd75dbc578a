"""Error messages of loops and branches for carries and results with types that do not fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bedrax import pytree
from bedrax.core import dims, source
from bedrax.core.codes import coded
from bedrax.core.signatures import signature_of
from bedrax.pytree import PyTreeDef

if TYPE_CHECKING:
    from bedrax.core.avals import ShapedArray


def short(tree: Any) -> Any:
    """A pytree of types, as messages show it."""
    return pytree.tree_map(lambda a: a.str_short(), tree) if not hasattr(tree, "str_short") else tree.str_short()


def weaker_match(given: ShapedArray, wanted: ShapedArray) -> bool:
    """Whether two types differ at most in weakness."""
    return given.is_array == wanted.is_array and (
        not given.is_array or (given.dtype == wanted.dtype and dims.same_shape(given.shape, wanted.shape))
    )


def check_carry(
    name: str,
    init_tree: PyTreeDef,
    in_types: tuple[ShapedArray, ...],
    out_tree: PyTreeDef,
    out_types: list[ShapedArray],
    fun: Callable[..., Any],
    position: int = 0,
) -> None:
    """Raise if a loop body does not return a carry of the type it got.

    Args:
      fun: the user's body.
      position: of the carry among its parameters.
    """
    given = pytree.tree_unflatten(init_tree, list(in_types))
    got = pytree.tree_unflatten(out_tree, list(out_types))
    body, role = getattr(fun, "traces_of", (fun, ""))
    if role.startswith("fori_loop"):  # its body takes the index and the value; the loop carries an index and bounds
        before = len(given) - 1
        name, fun, position, given, got = "fori_loop", body, 1, given[-1], got[-1]
        in_types, out_types = in_types[before:], out_types[before:]
        init_tree, out_tree = pytree.tree_structure(given), pytree.tree_structure(got)
    what = _parameter_name(fun, position)
    where = source.describe_function(fun)
    if out_tree != init_tree:
        raise TypeError(
            coded(
                "BX-CARRY-STRUCTURE",
                f"{name}: the body returns a carry of another structure than it gets:\n"
                f"  * {structure_difference(given, got, f'the input carry {what}', 'the carry output')}\n"
                f"{where} has to return what it gets.",
            )
        )
    differing = []
    paths = [p for p, _ in pytree.tree_flatten_with_path(given)[0]]
    for path, a, b in zip(paths, in_types, out_types, strict=True):
        if not weaker_match(a, b):
            part = f"component {what}{pytree.keystr(path)}" if path else what
            differing.append(f"  * {part}: got {a.str_short()}, returned {b.str_short()}: {type_difference(a, b)}")
    if differing:
        raise TypeError(
            coded(
                "BX-CARRY-TYPES",
                f"{name}: the body returns a carry of other types than it gets:\n"
                + "\n".join(differing)
                + f"\nConvert what {where} returns, or the carry that the loop starts from.",
            )
        )


def type_difference(a: ShapedArray, b: ShapedArray) -> str:
    """The differences between two array types, as text."""
    differing = [
        what
        for what, equal in (
            ("shapes", dims.same_shape(getattr(a, "shape", ()), getattr(b, "shape", ()))),
            ("dtypes", getattr(a, "dtype", None) == getattr(b, "dtype", None)),
        )
        if not equal
    ]
    return f"the {' and '.join(differing) or 'kinds of values'} do not match"


def structure_difference(a: Any, b: Any, name_a: str, name_b: str) -> str:
    """The first difference in structure between two pytrees, as text."""
    path: tuple[Any, ...] = ()
    while True:
        kinds = [_node(x) for x in (a, b)]
        at = pytree.keystr(path)
        if kinds[0] != kinds[1]:
            return f"{name_a}{at} is {kinds[0]}, but {name_b}{at} is {kinds[1]}"
        children = [pytree.tree_flatten_with_path(x, is_leaf=lambda y, x=x: y is not x)[0] for x in (a, b)]
        for (p, x), (_, y) in zip(*children, strict=False):
            if pytree.tree_structure(x) != pytree.tree_structure(y):
                path, a, b = (*path, *p), x, y
                break
        else:
            return f"{name_a}{at} has structure {pytree.tree_structure(a)}, but {name_b}{at} has {pytree.tree_structure(b)}"


def _node(x: Any) -> str:
    tree = pytree.tree_structure(x)
    if pytree.treedef_is_leaf(tree):
        return "a leaf"
    if x is None:
        return "None"
    count = len(tree.children())
    keys = (
        f" with keys {sorted([str(k) for k in x])}"
        if isinstance(x, dict)
        else f" of {count} child{'ren' if count != 1 else ''}"
    )
    return f"a {type(x).__name__}{keys}"


def _parameter_name(fun: Callable, position: int) -> str:
    """The name of the parameter at a position in the user's function."""
    try:
        parameters = list(signature_of(fun, follow_wrapped=False).parameters.values())
    except (TypeError, ValueError):
        return "carry"
    if position < len(parameters) and parameters[position].kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        return parameters[position].name
    return "carry"


def check_branches(
    functions: tuple[Callable[..., Any], ...], names: tuple[str, ...], results: list[tuple[Any, ...]]
) -> None:
    """Raise if the branches of `cond` or `switch` differ in the types of their results."""
    what = "cond" if "true_fun" in names else "switch"
    order = list(zip(names, functions, results, strict=True))
    if what == "cond":
        order.reverse()  # the user passes true_fun first
    (name, fun, (tree, types)), *others = order
    for other, other_fun, (other_tree, other_types) in others:
        kept = (
            f"where {name} is {source.describe_function(fun)}\n  and {other} is {source.describe_function(other_fun)}"
        )
        if other_tree != tree:
            given = [pytree.tree_unflatten(t, list(a)) for t, a in ((tree, types), (other_tree, other_types))]
            raise TypeError(
                coded(
                    "BX-BRANCH-STRUCTURE",
                    f"{what}: the branches return results of different structures:\n"
                    f"  * {structure_difference(*given, f'the output of {name}', f'the output of {other}')},\n  {kept}\n"
                    "All branches have to return the same structure.",
                )
            )
        paths = [p for p, _ in pytree.tree_flatten_with_path(pytree.tree_unflatten(tree, list(types)))[0]]
        differing = [
            f"  * the result{pytree.keystr(p)} of {name} has type {a.str_short()}, that of {other} {b.str_short()}:"
            f" {type_difference(a, b)}"
            for p, a, b in zip(paths, types, other_types, strict=True)
            if not weaker_match(a, b)
        ]
        if differing:
            raise TypeError(
                coded(
                    "BX-BRANCH-TYPES",
                    f"{what}: the branches return results of different types:\n"
                    + "\n".join(differing)
                    + f",\n  {kept}\nConvert the results to one type.",
                )
            )
