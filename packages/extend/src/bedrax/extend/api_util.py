"""Trees of arguments as flat lists, for libraries with their own transformations of functions.

Needed by Flax (`debug_info`, `flatten_fun`, `flatten_fun_nokwargs`, in core.partial_eval, core.axes_scan and jax_utils).
The other names complete `jax.api_util`. Bedrax itself uses none of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bedrax import pytree
from bedrax.core import source
from bedrax.core.avals import abstractify
from bedrax.core.ir import DebugInfo
from bedrax.core.signatures import Signature, leaf_names, normalized, parameter_names
from bedrax.extend.linear_util import WrappedFun, transformation2, transformation_with_aux2
from bedrax.pytree import PyTreeDef


def shaped_abstractify(x: Any) -> Any:
    """The type of an array, or of any object with a shape and dtype.

    Examples:

      >>> from jax import api_util

      >>> api_util.shaped_abstractify(np.ones((2, 3), np.float32))
      ShapedArray(float32[2,3])
    """
    return abstractify(x)


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: tuple[int, ...] = (),
    static_argnames: tuple[str, ...] = (),
    result_paths_thunk: Callable[..., Any] | None = None,
    sourceinfo: str | None = None,
    signature: Any = None,
) -> DebugInfo:
    """Return the names for messages about a function and its arguments.

    Args:
      traced_for: the transformation that traces the function.
      fun: the function.
      args, kwargs: its arguments. Their structure gives the names of the leaves.
      static_argnums, static_argnames: positions and names of the arguments that are not part of the program.
      result_paths_thunk: called if the names of results are needed.
      sourceinfo: the source location of the function. Default: that of its code.
      signature: the signature of the function. Default: from the function itself.

    Examples:

      >>> from jax import api_util

      >>> def loss(weights, batch):
      ...     pass
      ...
      >>> info = api_util.debug_info("loss", loss, ({"w": 1., "b": 0.}, 2.), {})
      >>> info.arg_names
      ("weights['b']", "weights['w']", 'batch')
    """
    named = fun
    if signature is not None:
        named = lambda *args, **kwargs: None
        named.__signature__ = signature
    positions = parameter_names(named)[: len(args)]
    static_argnums = Signature(named, static_argnums).static_positions(len(args))
    static = static_argnums | {i for i, n in enumerate(positions) if n in static_argnames}
    given = tuple(x for i, x in enumerate(args) if i not in static)
    by_name = {k: x for k, x in kwargs.items() if k not in static_argnames}
    names = leaf_names(named, pytree.tree_structure((given, by_name)), sorted(static))
    return DebugInfo(traced_for, sourceinfo or source.describe_function(fun), tuple(names), result_paths_thunk)


def _flatten_call(inner, store, in_tree, *leaves):
    args, kwargs = pytree.tree_unflatten(in_tree, leaves)
    out, tree = pytree.tree_flatten(inner(*args, **kwargs))
    store.store(tree)
    return out


def _flatten_positional_call(inner, store, in_tree, *leaves):
    out, tree = pytree.tree_flatten(inner(*pytree.tree_unflatten(in_tree, leaves)))
    store.store(tree)
    return out


def flatten_fun(
    fun: WrappedFun, in_tree: PyTreeDef, *, use_eq_store: bool = False, unk_names: bool = False
) -> tuple[WrappedFun, Callable[..., Any]]:
    """Return `fun` as a function of leaves, and a function that returns the treedef of its result.

    Args:
      fun: a `WrappedFun` of any positional and keyword arguments.
      in_tree: the treedef of ``(args, kwargs)``.
      use_eq_store, unk_names: no effect. A store accepts an equal value again, and names of results are not kept.

    Returns:
      (a `WrappedFun` from the leaves of ``(args, kwargs)`` to the list of the leaves of the result, a function without
      arguments that returns the treedef of the result after a call).

    Examples:

      >>> from jax import api_util

      >>> from jax.extend.linear_util import wrap_init
      >>> leaves, tree = jax.tree.flatten(((1, {"a": 2}), {"scale": 10}))
      >>> flat, out_tree = api_util.flatten_fun(wrap_init(lambda x, y, scale: {"sum": scale * (x + y["a"])}), tree)
      >>> flat.call_wrapped(*leaves), out_tree()
      ([30], PyTreeDef({'sum': *}))
    """
    return transformation_with_aux2(_flatten_call, fun, in_tree)


def flatten_fun_nokwargs(fun: WrappedFun, in_tree: Any, *, use_eq_store: bool = False, unk_names: bool = False) -> Any:
    """Return `fun` as a function of leaves, and a function that returns the treedef of its result.

    Args:
      fun: a `WrappedFun` of positional arguments.
      in_tree: the treedef of the tuple of its arguments.
      use_eq_store, unk_names: no effect. A store accepts an equal value again, and names of results are not kept.

    Returns:
      (a `WrappedFun` from the leaves of the arguments to the list of the leaves of the result, a function without
      arguments that returns the treedef of the result after a call).

    Examples:

      >>> from jax import api_util

      >>> from jax.extend.linear_util import wrap_init
      >>> leaves, tree = jax.tree.flatten((1, {"a": 2}))
      >>> flat, out_tree = api_util.flatten_fun_nokwargs(wrap_init(lambda x, y: (x, y["a"])), tree)
      >>> flat.call_wrapped(*leaves), out_tree()
      ([1, 2], PyTreeDef((*, *)))
    """
    return transformation_with_aux2(_flatten_positional_call, fun, in_tree)


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None, argnames: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the same parameters. Either may be None: it is derived from the other."""
    positions, names = (
        None if given is None else (given,) if isinstance(given, int | str) else tuple(given)
        for given in (argnums, argnames)
    )
    parameters = list(sig.parameters.values())
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if positions is None:
        return tuple(
            i for i, p in enumerate(parameters) if p.name in (names or ()) and p.name in positional
        ), names or ()
    if names is None:
        count = len(parameters)
        chosen = [parameters[i].name for i in positions if -count <= i < count]
        names = tuple(name for name in chosen if name in positional)
    return positions, names


def flatten_axes(name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False) -> list[Any]:
    """Return one entry of a prefix tree per leaf of `treedef`. None counts as an entry.

    Args:
      name: the name of the argument `axis_tree` in the message of an error.
      treedef: the structure of the values.
      axis_tree: a pytree prefix of that structure. Each entry holds for all leaves below it.
      kws, tupled_args: no effect. The message of an error shows the whole tree.

    Raises:
      ValueError: `axis_tree` is not a prefix.

    Examples:

      >>> from jax import api_util

      >>> tree = jax.tree.structure({"x": 0, "y": [0, 0]})
      >>> api_util.flatten_axes("in_axes", tree, {"x": 0, "y": None})
      [0, None, None]
    """
    dummy = pytree.tree_unflatten(treedef, [object()] * treedef.num_leaves)
    try:
        return list(pytree.tree_broadcast_leaves(axis_tree, dummy, is_leaf=lambda x: x is None))
    except ValueError as e:
        raise ValueError(
            f"{name} must be a prefix of the tree {treedef}, one entry for each of its parts; got {axis_tree!r}: {e}"
        ) from None


def _with_fixed(inner, fixed, dynamic, *args, **kwargs):
    merged = [None] * (len(fixed) + len(dynamic))
    for i, x in fixed:
        merged[i] = x
    for i, x in zip(dynamic, args, strict=True):
        merged[i] = x
    return inner(*merged, **kwargs)


def argnums_partial(
    f: WrappedFun, dyn_argnums: Any, args: Sequence[Any], require_static_args_hashable: bool = True
) -> Any:
    """Fix the arguments of `f` at all positions except the chosen ones.

    Args:
      f: a `WrappedFun` of positional arguments.
      dyn_argnums: the position or positions of the arguments that stay arguments; negative ones count from the end.
      args: the values of all arguments.
      require_static_args_hashable: whether a fixed argument must be hashable.

    Returns:
      (the `WrappedFun` of the chosen arguments, a tuple of the values of these arguments).

    Raises:
      ValueError: a position is out of range or occurs twice, or a fixed argument must be hashable and is not.

    Examples:

      >>> from jax import api_util

      >>> from jax.extend.linear_util import wrap_init
      >>> fun, rest = api_util.argnums_partial(wrap_init(lambda x, y, z: (x, y, z)), (0, 2), (1, 2, 3))
      >>> rest, fun.call_wrapped(10, 30)
      ((1, 3), (10, 2, 30))
    """
    positions = normalized(dyn_argnums, len(args), "argnums_partial: dyn_argnums", distinct=True)
    fixed = tuple((i, x) for i, x in enumerate(args) if i not in positions)
    if require_static_args_hashable:
        for i, x in fixed:
            try:
                hash(x)
            except TypeError:
                raise ValueError(f"argument {i} is static, so it must be hashable; got a {type(x).__name__}") from None
    return transformation2(_with_fixed, f, fixed, positions), tuple(args[i] for i in positions)


def donation_vector(donate_argnums: Any, donate_argnames: Any, in_tree: Any, kws: bool = True) -> tuple[bool, ...]:
    """Return a boolean per leaf of ``(args, kwargs)``: whether the leaf is donated.

    Args:
      donate_argnums: the positions of the donated positional arguments; each leaf of such an argument is donated.
      donate_argnames: the names of the donated keyword arguments.
      in_tree: the treedef of ``(args, kwargs)``, or of ``args`` if `kws` is False.
      kws: whether `in_tree` has keyword arguments.

    Examples:

      >>> from jax import api_util

      >>> api_util.donation_vector((1,), (), jax.tree.structure(((0, [0, 0]), {})))
      (False, True, True)
    """
    args_tree, kwargs_tree = in_tree.children() if kws else (in_tree, None)
    flags: list[bool] = []
    for i, child in enumerate(args_tree.children()):
        flags += [i in donate_argnums] * child.num_leaves
    if kwargs_tree is not None:
        for name, child in zip(kwargs_tree.node_data()[1], kwargs_tree.children(), strict=True):
            flags += [name in donate_argnames] * child.num_leaves
    return tuple(flags)


def rebase_donate_argnums(donate_argnums: Any, static_argnums: Any) -> tuple[int, ...]:
    """Return the donated positions as they are counted without the static arguments.

    Args:
      donate_argnums: the positions of donated arguments, counted among all arguments; not negative.
      static_argnums: the positions of static arguments; not negative.

    Returns:
      A sorted tuple of positions.

    Raises:
      ValueError: an argument is static and donated.

    Examples:

      >>> from jax import api_util

      >>> api_util.rebase_donate_argnums((1, 2), (0,))
      (0, 1)
    """
    static = sorted(static_argnums)
    clash = set(static) & set(donate_argnums)
    if clash:
        raise ValueError(
            f"an argument cannot be static and donated: {sorted(clash)} are in {static_argnums=} and {donate_argnums=}"
        )
    return tuple(sorted(i - sum(s < i for s in static) for i in donate_argnums))


def safe_map(f: Callable[..., Any], *lists: Any) -> list[Any]:
    """`map` of lists of equal length, as a list.

    Args:
      f: the function.
      *lists: the lists, one for each argument of `f`.

    Raises:
      ValueError: the lengths differ.

    Examples:

      >>> from jax import api_util

      >>> list(api_util.safe_map(lambda x, y: x + y, [1, 2], [10, 20]))
      [11, 22]

      >>> from jax.example_libraries import optimizers

      >>> list(optimizers.map(abs, [-1, 2]))
      [1, 2]
    """
    return [f(*xs) for xs in zip(*lists, strict=True)]


def safe_zip(*lists: Any) -> list[Any]:
    """`zip` of lists of equal length, as a list.

    Examples:

      >>> from jax.example_libraries import optimizers

      >>> list(optimizers.zip([1, 2], ["a", "b"]))
      [(1, 'a'), (2, 'b')]
    """
    return list(zip(*lists, strict=True))
