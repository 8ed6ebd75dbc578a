"""Reductions: primitives that combine all elements along some axes into one.

`reduce_sum` and similar ones take an operand and `axes`; `argmax` and `argmin` return indices; `reduce`
folds several arrays together with any associative function, held as a jaxpr of scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bedrax import pytree
from bedrax.core import caches, dims, dtypes, positions, staging
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.defining import named
from bedrax.core.tables import pure_shapes
from bedrax.core.tracing import Primitive, Tracer
from bedrax.core.typing import ArrayLike, DTypeLike
from bedrax.lax.primitives import elementwise
from bedrax.lax.primitives.elementwise import ANY, BITS, NUMBER, ORDERED
from bedrax.lax.primitives.placement import placed_result
from bedrax.lax.primitives.shaping import concatenate, like, slice_in_dim, squeeze
from bedrax.pytree import PyTreeDef

if TYPE_CHECKING:
    from bedrax.core.ir import Jaxpr


pure_shapes.add(__name__)


def _reduced_shape(aval: ShapedArray, axes: tuple) -> tuple:
    shape = aval.shape
    if len(set(axes)) != len(axes):
        raise ValueError(f"a reduction names an axis twice: {axes}")
    if any(not 0 <= axis < len(shape) for axis in axes):
        raise ValueError(f"a reduction over axes {axes}: {aval.str_short()} does not have all of them")
    return tuple([n for i, n in enumerate(shape) if i not in axes])


def _axes(axes: Sequence[int]) -> tuple:
    return tuple([a if type(a) is int else dims.integer(a, "an axis") for a in axes])


def _reduction(
    name: str, categories: tuple[str, ...], what: str, placed: bool = False, example: str = ""
) -> tuple[Primitive, Any]:
    """A reduction along axes: the primitive and its function; `placed`: whether that takes `out_sharding`."""
    prim = Primitive(name, "reductions")
    ok = elementwise.accepted(categories)

    @prim.abstract
    def shape_rule(operand, *, axes):
        if not ok[operand.dtype]:
            raise elementwise.dtype_refused(name, operand.dtype, categories)
        return like(operand, _reduced_shape(operand, axes))

    def plain(operand: ArrayLike, axes: Sequence[int]) -> Array:
        return prim.bind(operand, axes=_axes(axes))

    def with_place(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
        if out_sharding is not None:
            return placed_result(out_sharding, plain, operand, axes=_axes(axes))
        return prim.bind(operand, axes=_axes(axes))

    function = with_place if placed else plain
    more = "\n      out_sharding: optional placement of the result." if placed else ""
    text = f"""{what}, in the operand's dtype.

    Args:
      operand: array, {" or ".join(categories)}.
      axes: which axes, each in ``[0, rank)``; they are absent from the result.{more}

    Raises:
      TypeError: another dtype. ValueError: an axis that is not there, or twice.
    """
    return prim, named(function, name, __name__, text, example)


reduce_sum_p, reduce_sum = _reduction(
    "reduce_sum",
    NUMBER,
    "The sum of the elements along `axes`; 0 where there are none",
    placed=True,
    example="""
    >>> lax.reduce_sum(jnp.array([[1, 2], [3, 4]]), axes=(1,))
    Array([3, 7], dtype=int32)
    """,
)
reduce_prod_p, reduce_prod = _reduction(
    "reduce_prod",
    NUMBER,
    "The product along `axes`; 1 where there are none",
    example="""
    >>> lax.reduce_prod(jnp.array([[1, 2], [3, 4]]), axes=(1,))
    Array([ 2, 12], dtype=int32)
    """,
)
_BY_PARTS = "complex numbers by real, then imaginary part; NaN if there is one; where there are none, the"
reduce_max_p, reduce_max = _reduction(
    "reduce_max",
    ANY,
    f"The largest along `axes`, {_BY_PARTS} least value",
    placed=True,
    example="""
    >>> lax.reduce_max(jnp.array([[1, 5], [7, 2]]), axes=(0,))
    Array([7, 5], dtype=int32)
    """,
)
reduce_min_p, reduce_min = _reduction(
    "reduce_min",
    ANY,
    f"The smallest along `axes`, {_BY_PARTS} greatest value",
    placed=True,
    example="""
    >>> lax.reduce_min(jnp.array([[1, 5], [7, 2]]), axes=(0, 1))
    Array(1, dtype=int32)
    """,
)
reduce_and_p, reduce_and = _reduction(
    "reduce_and",
    BITS,
    'Bitwise (of bools: logical) "and" along `axes`',
    example="""
    >>> lax.reduce_and(jnp.array([[True, False], [True, True]]), axes=(0,))
    Array([ True, False], dtype=bool)
    """,
)
reduce_or_p, reduce_or = _reduction(
    "reduce_or",
    BITS,
    'Bitwise (of bools: logical) "or" along `axes`',
    example="""
    >>> lax.reduce_or(jnp.array([[True, False], [False, False]]), axes=(1,))
    Array([ True, False], dtype=bool)
    """,
)
reduce_xor_p, reduce_xor = _reduction(
    "reduce_xor",
    BITS,
    'Bitwise (of bools: logical) "exclusive or" along `axes`',
    example="""
    >>> lax.reduce_xor(jnp.array([1, 2, 4]), axes=(0,))
    Array(7, dtype=int32)
    """,
)


# -- where the extreme elements are ---------------------------------------------------------


def _position(name: str, which: str, example: str) -> tuple[Primitive, Callable]:
    prim = Primitive(name, "reductions")
    ok = elementwise.accepted(ORDERED)

    @prim.abstract
    def shape_rule(operand, *, axes, index_dtype):
        if not ok[operand.dtype]:
            raise elementwise.dtype_refused(name, operand.dtype, ORDERED)
        (axis,) = axes
        shape = operand.shape
        if not 0 <= axis < len(shape):
            raise ValueError(f"{name}: axis {axis} is out of bounds for shape {shape}")
        if dims.is_constant_dim(shape[axis]) and shape[axis] < 1:
            raise ValueError(f"argmin and argmax of an axis without elements: axis {axis} of shape {shape}")
        if not dtypes.issubdtype(index_dtype, np.integer):
            raise TypeError(f"{name}: index_dtype is an integer dtype, got {index_dtype}")
        positions.check(name, shape[axis], index_dtype)
        return like(operand, shape[:axis] + shape[axis + 1 :]).update(dtype=index_dtype, weak_type=False)

    def function(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
        return prim.bind(
            operand, axes=(dims.integer(axis, "axis"),), index_dtype=dtypes.canonicalize_dtype(index_dtype)
        )

    text = f"""The index of the {which} element along an axis: the first of equal ones; the first NaN, if there is one.

    Args:
      operand: array of real numbers or booleans.
      axis: which axis; absent from the result.
      index_dtype: integer dtype of the result.

    Raises:
      OverflowError: `index_dtype` cannot count along the axis. Without x64, int64 is int32.
    """
    return prim, named(function, name, __name__, text, example)


argmax_p, argmax = _position(
    "argmax",
    "largest",
    example="""
    >>> lax.argmax(jnp.array([[1, 9], [7, 2]]), axis=1, index_dtype=jnp.int32)
    Array([1, 0], dtype=int32)
    """,
)
argmin_p, argmin = _position(
    "argmin",
    "smallest",
    example="""
    >>> lax.argmin(jnp.array([[1, 9], [7, 2]]), axis=1, index_dtype=jnp.int32)
    Array([0, 1], dtype=int32)
    """,
)


# -- any associative function -----------------------------------------------------------------

reduce_p: Final = Primitive("reduce", "reductions", multiple_results=True)


def check_fold(
    name: str, operands: Sequence[ShapedArray], inits: Sequence[ShapedArray], kind: type = ValueError
) -> None:
    """Raise unless operands have one shape and initial values are scalars of their dtypes; `kind` if shapes differ."""
    for x, init in zip(operands, inits):
        if x.dtype != init.dtype:
            raise TypeError(f"{name}: operands and initial values have one dtype, got {x.dtype} and {init.dtype}")
        if init.shape:
            raise kind(f"{name}: initial values are scalars, got {init.str_short()}")
        if not dims.same_shape(x.shape, operands[0].shape):
            raise kind(f"{name}: operands have one shape, got {', '.join(str(a.shape) for a in operands)}")


def fold_operands(name: str, operands: Any, init_values: Any) -> tuple[list[Any], list[Any], Any]:
    """The leaves of operands and initial values, numbers made of the operands' dtypes, and their structure."""
    leaves, tree = pytree.tree_flatten(operands)
    inits, init_tree = pytree.tree_flatten(init_values)
    if tree != init_tree:
        raise ValueError(f"{name}: operands are structured like the initial values, got {tree} and {init_tree}")
    if not leaves:
        raise ValueError(f"{name}: at least one operand is needed, got none")
    return leaves, [typed_scalar(init, aval_of(x)) for x, init in zip(leaves, inits)], tree


@reduce_p.abstract
def _reduce_shape(*avals, dimensions, jaxpr):
    half = len(avals) // 2
    operands, inits = avals[:half], avals[half:]
    check_fold("reduce", operands, inits)
    shape = _reduced_shape(operands[0], dimensions)
    return [like(x, shape).update(weak_type=x.weak_type and i.weak_type) for x, i in zip(operands, inits)]


lowest = lambda dtype: _bounds(dtype)[0]
greatest = lambda dtype: _bounds(dtype)[1]


def _bounds(dtype) -> tuple:
    """The identities of max and min: the extreme values of a dtype."""
    if dtype == np.bool_:
        return np.False_, np.True_
    if dtypes.issubdtype(dtype, np.integer):
        info = dtypes.iinfo(dtype)
        return np.asarray(info.min, dtype)[()], np.asarray(info.max, dtype)[()]
    if dtypes.issubdtype(dtype, np.complexfloating):
        return np.asarray(-np.inf, dtype)[()], np.asarray(np.inf, dtype)[()]
    with np.errstate(all="ignore"):
        low, high = np.asarray(-np.inf).astype(dtype), np.asarray(np.inf).astype(dtype)
    if not np.isinf(low):  # a type without infinities
        info = dtypes.finfo(dtype)
        low, high = np.asarray(info.min, dtype), np.asarray(info.max, dtype)
    return low[()], high[()]


def _all_ones(dtype):
    return np.True_ if dtype == np.bool_ else np.invert(np.zeros((), dtype))[()]


# The reduction of a function of scalars, if it is a primitive: (reduction, dtype -> its identity).
identities: dict[Primitive, Callable[..., Any]] = {
    reduce_sum_p: lambda dtype: np.zeros((), dtype)[()],
    reduce_prod_p: lambda dtype: np.ones((), dtype)[()],
    reduce_max_p: lowest,
    reduce_min_p: greatest,
    reduce_and_p: _all_ones,
    reduce_or_p: lambda dtype: np.zeros((), dtype)[()],
    reduce_xor_p: lambda dtype: np.zeros((), dtype)[()],
}

monoids: dict[Any, Primitive] = {
    elementwise.add: reduce_sum_p,
    elementwise.mul: reduce_prod_p,
    elementwise.max: reduce_max_p,
    elementwise.min: reduce_min_p,
    elementwise.bitwise_and: reduce_and_p,
    elementwise.bitwise_or: reduce_or_p,
    elementwise.bitwise_xor: reduce_xor_p,
}


def monoid_of(computation: Callable[..., Any], operand: ArrayLike, init: ArrayLike) -> Primitive | None:
    """The known reduction that equals `computation` from `init`; None if there is none."""
    try:
        prim = monoids.get(computation)
    except TypeError:
        return None
    if prim is None or isinstance(init, Tracer):
        return None
    aval = aval_of(operand)
    if aval.dtype != aval_of(init).dtype or (aval.dtype == np.bool_ and prim in (reduce_sum_p, reduce_prod_p)):
        return None
    identity = identities[prim](aval.dtype)
    value = np.asarray(init).astype(aval.dtype)
    return prim if value.shape == () and bool(value == identity) else None


def combiner_jaxpr(
    computation: Callable[..., Any], avals: Sequence[ShapedArray], in_tree: PyTreeDef, what: str
) -> Jaxpr:
    """The program of a function of two trees of scalars.

    Args:
      computation: called with two trees; returns a tree like each.
      avals: the types of the arrays that it will fold.
      in_tree: the structure of one of its arguments.

    Returns:
      A jaxpr of ``2 n`` scalars to ``n`` scalars, constants closed in.
    """
    scalars = tuple([ShapedArray((), a.dtype, a.weak_type) for a in avals])
    key = (combiner_jaxpr, scalars, in_tree, caches.context())
    known = caches.traces.of(computation)
    found = known.get(key)
    if found is None:
        found = _trace_combiner(computation, scalars, in_tree, what)
        known.keep(key, found)
    return found


def _trace_combiner(computation, scalars, in_tree, what):
    def flat(*scalars):
        half = len(scalars) // 2
        out = computation(
            pytree.tree_unflatten(in_tree, scalars[:half]), pytree.tree_unflatten(in_tree, scalars[half:])
        )
        leaves, tree = pytree.tree_flatten(out)
        if tree != in_tree:
            raise TypeError(f"{what}: the computation returns {tree} where it gets {in_tree}")
        return leaves

    jaxpr = staging.program_of(flat, scalars * 2)
    for given, got in zip(scalars, jaxpr.out_avals):
        if got.shape or got.dtype != given.dtype:
            raise TypeError(f"{what}: the computation gets {given.str_short()} and returns {got.str_short()}")
    if any(isinstance(c, Tracer) for c in jaxpr.consts):
        raise NotImplementedError(f"the computation of {what} closes over a traced value; make it an operand instead")
    return jaxpr


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[..., Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Fold arrays along some axes with any associative function.

    Args:
      operands: a tree of arrays of one shape.
      init_values: a tree of scalars like it: neutral elements of `computation`. Another value is combined with the
        elements once, also where there is one element. A GPU may combine it more than once.
      computation: associative function of two trees of scalars like `init_values` that returns one.
      dimensions: the axes to fold; absent from the result.
      out_sharding: optional placement, for sums.

    Returns:
      A tree like `operands`. Known functions (`lax.add` from 0, `lax.max` from its least value...)
      become their separate primitive.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> lax.reduce(x, 0, lax.add, dimensions=(0,))
      Array([4, 6], dtype=int32)
      >>> lax.reduce((x, x), (0, 1), lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,))
      (Array([3, 7], dtype=int32), Array([ 2, 12], dtype=int32))
    """
    leaves, inits, tree = fold_operands("reduce", operands, init_values)
    dimensions = _axes(dimensions)
    if len(leaves) == 1 and tree == pytree.tree_structure(0):
        prim = monoid_of(computation, leaves[0], inits[0])
        if prim is reduce_sum_p:
            return reduce_sum(leaves[0], dimensions, out_sharding=out_sharding)
        if prim is not None:
            return prim.bind(leaves[0], axes=dimensions)
    jaxpr = combiner_jaxpr(computation, [aval_of(x) for x in leaves], tree, "reduce")
    return pytree.tree_unflatten(tree, reduce_p.bind(*leaves, *inits, dimensions=dimensions, jaxpr=jaxpr))


def typed_scalar(init: Any, aval: ShapedArray) -> Any:
    """A Python number, as an initial value, is of the operand's dtype."""
    if hasattr(init, "__jax_array__"):
        init = init.__jax_array__()
    if isinstance(init, (bool, int, float, complex)) and not isinstance(init, np.generic):
        if isinstance(init, float) and dtypes.is_integer(aval.dtype):
            return dtypes.as_integers(init, aval.dtype)  # infinities are the ends of the range
        return np.asarray(init).astype(aval.dtype)
    return init


def fold_halves(combine: Callable[[list[Any], list[Any]], list[Any]], operands: list[Any], axis: int) -> list[Any]:
    """Fold along one axis with any associative function of two lists of arrays, in log2(n) steps.

    The axis must not be empty; it is absent from the results.
    """
    size = aval_of(operands[0]).shape[axis]
    while size > 1:
        half = size // 2
        out = combine(
            [slice_in_dim(x, 0, half, 1, axis) for x in operands],
            [slice_in_dim(x, half, 2 * half, 1, axis) for x in operands],
        )
        if size % 2:
            rest = [slice_in_dim(x, size - 1, size, 1, axis) for x in operands]
            out = [concatenate([x, y], axis) for x, y in zip(out, rest)]
        operands = out
        size = half + size % 2
    return [squeeze(x, (axis,)) for x in operands]


__all__ = [
    "argmax",
    "argmax_p",
    "argmin",
    "argmin_p",
    "reduce",
    "reduce_and",
    "reduce_and_p",
    "reduce_max",
    "reduce_max_p",
    "reduce_min",
    "reduce_min_p",
    "reduce_or",
    "reduce_or_p",
    "reduce_p",
    "reduce_prod",
    "reduce_prod_p",
    "reduce_sum",
    "reduce_sum_p",
    "reduce_xor",
    "reduce_xor_p",
]
