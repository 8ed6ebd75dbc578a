"""Symbolic shapes from specifications."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from bedrax import pytree
from bedrax.core import dims, dtypes
from bedrax.core.avals import ShapeDtypeStruct, aval_of
from bedrax.shape_poly.bounds import bounds
from bedrax.shape_poly.expressions import SymbolicDim
from bedrax.shape_poly.parsing import parse_shape
from bedrax.shape_poly.scope import SymbolicScope


def is_symbolic_dim(p: Any) -> bool:
    """Whether a dimension is symbolic (constant expressions are ints).

    Examples:

      >>> from jax import export

      >>> (n,) = export.symbolic_shape("n")
      >>> export.is_symbolic_dim(n + 1), export.is_symbolic_dim(3)
      (True, False)
    """
    return isinstance(p, SymbolicDim)


def symbolic_dim_bounds(dimension: Any) -> tuple[float, float]:
    """The known inclusive bounds of a dimension.

    They are sound, and may not be tight: an infinite bound means that no bound is known.

    Args:
      dimension: an integer or a symbolic dimension.

    Returns:
      ``(lower, upper)``: integers, -inf, or inf.

    Raises:
      TypeError: `dimension` is neither an integer nor a symbolic dimension.
      InconclusiveDimensionOperation: an operation in `dimension` may be undefined, such as a division by zero.

    Examples:

      >>> from jax import export

      >>> a, = jax.export.symbolic_shape("a", constraints=["a <= 10"])
      >>> jax.export.symbolic_dim_bounds(2 * a + 1)
      (3, 21)
    """
    return bounds(dimension if is_symbolic_dim(dimension) else operator.index(dimension))


def _scope(scope: SymbolicScope | None, constraints: Sequence[str]) -> SymbolicScope:
    if scope is not None and len(constraints):
        raise ValueError(f"Cannot specify both a `scope` and `constraints`. Got {constraints}; add them to the scope")
    return SymbolicScope(constraints) if scope is None else scope


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """A symbolic shape from its text.

    Args:
      shape_spec: comma-separated dimensions, in parentheses or not: integers, variables, and expressions of
        them with ``+ - * // % ^`` and parentheses, ``floordiv(x, y)``, ``mod(x, y)``, ``max(x, y)``, ``min(x, y)``;
        ``_`` for one dimension of `like`, ``...`` at the end for all remaining ones. None means ``"..."``.
      constraints: constraints on the variables, besides that they are at least 1: strings ``"e1 >= e2"``,
        ``"e1 <= e2"`` or ``"e1 == e2"``.
      scope: the scope of the dimensions, so that they can be combined with others of it.
      like: a shape that supplies placeholders; None in it stands for unknown dimensions.

    Returns:
      A tuple of ints and symbolic dimensions.

    Raises:
      ValueError: syntax errors, unfilled placeholders, unsatisfiable constraints, both `scope` and `constraints`.

    Examples:

      >>> from jax import export

      >>> rows, columns = export.symbolic_shape("n, 2*n")
      >>> columns - rows
      n
    """
    return parse_shape(shape_spec, _scope(scope, constraints), like)


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Argument types with symbolic shapes, from example arguments.

    Args:
      args: pytree of arrays (or of objects with a shape and a dtype); dtypes and placeholders come from it.
      shapes_specs: pytree prefix of `args` with specifications as in `symbolic_shape`; a string applies to all
        arrays below it, None keeps the shapes.
      constraints, scope: as in `symbolic_shape`.

    Returns:
      A pytree like `args` of `ShapeDtypeStruct`.

    Examples:

      >>> from jax import export

      >>> spec = export.symbolic_args_specs(jnp.ones((4, 3)), "batch, 3")
      >>> export.export(jax.jit(jnp.sin))(spec).out_avals
      (ShapedArray(float32[batch,3]),)
    """
    scope = _scope(scope, constraints)
    leaves, tree = pytree.tree_flatten(args)
    is_spec = lambda x: x is None or isinstance(x, str)
    if isinstance(shapes_specs, list) and isinstance(args, tuple):
        shapes_specs = tuple(shapes_specs)
    elif isinstance(shapes_specs, tuple) and isinstance(args, list):
        shapes_specs = list(shapes_specs)
    try:
        found = pytree.tree_broadcast_leaves(shapes_specs, args, is_leaf=is_spec)
    except (ValueError, TypeError) as e:
        raise ValueError(f"pytree structure error: shapes_specs must be a pytree prefix of the arguments: {e}") from e
    out = []
    for leaf, spec in zip(leaves, found, strict=True):
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
            shape, dtype = tuple(leaf.shape), leaf.dtype
        else:
            aval = aval_of(leaf)
            shape, dtype = aval.shape, aval.dtype
        is_ref = getattr(leaf, "is_ref", False)
        out.append(ShapeDtypeStruct(parse_shape(spec, scope, shape), dtypes.canonicalize_dtype(dtype), is_ref=is_ref))
    return pytree.tree_unflatten(tree, out)


def symbolic_shapes(
    shapes: Sequence[Sequence[int | None]],
    specs: Sequence[str | None],
    constraints: Sequence[str] = (),
    name: Callable[[int], str] = "argument {}".format,
) -> list[tuple[Any, ...]]:
    """Shapes of several arguments, in one scope.

    Args:
      shapes: the shapes; None for unknown dimensions.
      specs: a specification (or None) per argument.
      name: the name of an argument in messages, by its position.

    Raises:
      ValueError: a specification does not fit; the message names the argument.
    """
    scope = SymbolicScope(constraints)
    out = []
    for i, (shape, spec) in enumerate(zip(shapes, specs, strict=True)):
        try:
            out.append(parse_shape(spec, scope, shape))
        except ValueError as e:
            raise ValueError(f"polymorphic shape of {name(i)} (of shape {tuple(shape)}): {e}") from None
    return out


def constraints_of(avals: Sequence[Any]) -> tuple[str, ...]:
    """The explicit constraints on the dimension variables in the shapes of `avals`."""
    for aval in avals:
        for d in getattr(aval, "shape", ()):
            if dims.is_symbolic(d):
                return d.scope.constraints_str
    return ()


def scope_of(shapes: Sequence[Sequence[Any]]) -> SymbolicScope | None:
    """The scope of the symbolic dimensions in `shapes`; None without symbolic dimensions.

    Raises:
      ValueError: there are several scopes.
    """
    first = None
    for shape in shapes:
        for d in shape:
            if dims.is_symbolic(d):
                if first is None:
                    first = d
                first.scope.check(d, first, "in the shapes of one function's arguments")
    return None if first is None else first.scope
