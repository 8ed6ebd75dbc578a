"""Indexing with computed positions: `gather` and the scatters, and the primitives of `bedrax.lax.dynamic_slices`.

Gather and scatter follow StableHLO's definition (https://openxla.org/stablehlo/spec#gather), with the
vector of indices always in the last dimension of the index array. A `GatherScatterMode` determines the behavior
out of bounds.
"""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from bedrax.core import dims, dtypes, positions
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.codes import coded
from bedrax.core.defining import named
from bedrax.core.staging import program_of
from bedrax.core.tables import pure_shapes
from bedrax.core.tracing import Primitive, Tracer
from bedrax.core.typing import ArrayLike, Shape
from bedrax.lax import filling
from bedrax.lax.primitives import conversions, elementwise, shaping

pure_shapes.add(__name__)

__all__ = [
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "ScatterDimensionNumbers",
    "dynamic_slice_p",
    "dynamic_update_slice_p",
    "gather",
    "gather_p",
    "index_take",
    "scatter",
    "scatter_add",
    "scatter_add_p",
    "scatter_apply",
    "scatter_max",
    "scatter_max_p",
    "scatter_min",
    "scatter_min_p",
    "scatter_mul",
    "scatter_mul_p",
    "scatter_p",
    "scatter_sub",
    "scatter_sub_p",
]

gather_p: Final = Primitive("gather", "indexing")
scatter_p: Final = Primitive("scatter", "indexing")
scatter_add_p: Final = Primitive("scatter-add", "indexing")
scatter_sub_p: Final = Primitive("scatter-sub", "indexing")
scatter_mul_p: Final = Primitive("scatter-mul", "indexing")
scatter_min_p: Final = Primitive("scatter-min", "indexing")
scatter_max_p: Final = Primitive("scatter-max", "indexing")
dynamic_slice_p: Final = Primitive("dynamic_slice", "indexing")
dynamic_update_slice_p: Final = Primitive("dynamic_update_slice", "indexing")

scatter_primitives: Final = (scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p)


class GatherScatterMode(enum.Enum):
    """The treatment of a window that is not wholly inside the operand of a gather or scatter.

    ``CLIP`` moves it inside. ``FILL_OR_DROP`` fills the whole gathered window with a constant, and drops
    the whole scattered window. With ``PROMISE_IN_BOUNDS`` the caller promises that there is no such window. The promise
    is not checked; derivatives are wrong if it is broken.

    Examples:

      >>> x = jnp.array([1, 2, 3])
      >>> x.at[jnp.array([0, 9])].get(mode=lax.GatherScatterMode.CLIP)
      Array([1, 3], dtype=int32)
      >>> lax.GatherScatterMode.from_any("drop") == lax.GatherScatterMode.FILL_OR_DROP
      True
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode for a mode, for its name (``"clip"``, ``"fill"``, ``"drop"``...), or for None."""
        if isinstance(s, GatherScatterMode):
            return s
        found = _MODES.get(s) if s is None or isinstance(s, str) else None
        if found is None:
            raise ValueError(f"no mode of scatter is named {s!r}; there are {', '.join(filter(None, _MODES))}")
        return found


_MODES = {
    "clip": GatherScatterMode.CLIP,
    None: GatherScatterMode.FILL_OR_DROP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


class GatherDimensionNumbers(NamedTuple):
    """The relation between the dimensions of a gather's operand, indices and result; all fields are tuples of ints.

    Attributes:
      offset_dims: dimensions of the result that run through the window, ascending.
      collapsed_slice_dims: dimensions of the operand where the window has size 1 and which the result
        lacks, ascending.
      start_index_map: the operand dimension that each component of an index vector addresses.
      operand_batching_dims: dimensions of the operand (window size 1) paired with those of the indices.
      start_indices_batching_dims: their partners, in the same order.

    The last dimension of the index array is the index vector.

    Examples:

      >>> rows = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
      >>> x = jnp.array([[1, 2], [3, 4], [5, 6]])
      >>> lax.gather(x, jnp.array([[2], [0]]), rows, slice_sizes=(1, 2))
      Array([[5, 6],
             [1, 2]], dtype=int32)
    """

    # The public fields, which callers name; the same holds for the classes below.
    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """The relation between the dimensions of a scatter's operand, indices and updates: the mirror of a gather's.

    Attributes:
      update_window_dims: dimensions of the updates that run through the window, ascending.
      inserted_window_dims: dimensions of the operand (window size 1) that the updates lack, ascending.
      scatter_dims_to_operand_dims: the operand dimension each component of an index vector addresses.
      operand_batching_dims: dimensions of the operand paired with those of the indices.
      scatter_indices_batching_dims: their partners, in the same order.

    Examples:

      >>> entries = lax.ScatterDimensionNumbers(
      ...     update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
      ... )
      >>> lax.scatter_add(jnp.zeros(3), jnp.array([[0], [2], [2]]), jnp.array([1., 2., 3.]), entries)
      Array([1., 0., 5.], dtype=float32)
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


def as_scatter(numbers: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """The dimension numbers of the scatter that puts back the windows of a gather."""
    return ScatterDimensionNumbers(*numbers)


def as_gather(numbers: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """The dimension numbers of the gather that takes the windows of a scatter."""
    return GatherDimensionNumbers(*numbers)


def window_sizes(
    operand_ndim: int, updates_shape: tuple[Any, ...], numbers: ScatterDimensionNumbers
) -> tuple[Any, ...]:
    """The size of a scatter's window in each dimension of the operand."""
    absent = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    sizes = iter([updates_shape[d] for d in numbers.update_window_dims])
    return tuple([1 if d in absent else next(sizes) for d in range(operand_ndim)])


def _tuples(numbers):
    return type(numbers)(*[tuple([operator.index(d) for d in field]) for field in numbers])


# Shape rules


def _check_dims(op: str, what: str, ds: tuple, rank: int, of: str, ascending: bool = False) -> None:
    if any(not 0 <= d < rank for d in ds):
        raise TypeError(f"{op}: {what} must be axes in 0..{rank - 1} of {of}, got {ds}")
    if len(set(ds)) != len(ds):
        raise TypeError(f"{op}: {what} names an axis twice, got {ds}")
    if ascending and tuple(sorted(ds)) != tuple(ds):
        raise TypeError(f"{op}: {what} must be in ascending order, got {ds}")


def _check_numbers(op: str, operand, indices, fields, names) -> None:
    """Checks common to gather and scatter: dims lacking in the window, index map, batching dims."""
    lacking, index_map, operand_batch, indices_batch = fields
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"{op}: indices must be integers, got {indices.dtype}")
    if not indices.ndim:
        raise TypeError(f"{op}: indices have one axis at least, that of the index vectors; got a scalar")
    _check_dims(op, names[0], lacking, operand.ndim, "operand", ascending=True)
    _check_dims(op, names[1], index_map, operand.ndim, "operand")
    _check_dims(op, "operand_batching_dims", operand_batch, operand.ndim, "operand", ascending=True)
    _check_dims(op, names[2], indices_batch, indices.ndim - 1, "indices without the index vector")
    if indices.shape[-1] != len(index_map):
        raise TypeError(f"{op}: index vectors have {indices.shape[-1]} elements, and {names[1]} has {len(index_map)}")
    if {*lacking} & {*operand_batch} or {*index_map} & {*operand_batch}:
        raise TypeError(
            f"{op}: operand_batching_dims {operand_batch} share dimensions with {names[0]} {lacking} or {names[1]}"
            f" {index_map}"
        )
    sizes = [tuple([a.shape[d] for d in ds]) for a, ds in ((operand, operand_batch), (indices, indices_batch))]
    if sizes[0] != sizes[1]:
        raise TypeError(f"{op}: batching dimensions on both sides have equal sizes, got {sizes[0]} and {sizes[1]}")


def _check_mode(op: str, mode) -> None:
    if mode is GatherScatterMode.ONE_HOT:
        raise NotImplementedError(f"{op}: mode 'one_hot' is not supported; use 'fill', 'clip' or 'promise_in_bounds'.")


@gather_p.abstract
def _gather_shape(
    operand, indices, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices, mode, fill_value
):
    offset, collapsed, index_map, operand_batch, indices_batch = dimension_numbers
    _check_numbers(
        "gather",
        operand,
        indices,
        (collapsed, index_map, operand_batch, indices_batch),
        ("collapsed_slice_dims", "start_index_map", "start_indices_batching_dims"),
    )
    _check_mode("gather", mode)
    rank = indices.ndim - 1 + len(offset)
    _check_dims("gather", "offset_dims", offset, rank, "the result", ascending=True)
    if len(slice_sizes) != operand.ndim:
        raise TypeError(f"gather: slice_sizes has one entry per axis, {operand.ndim}, got {tuple(slice_sizes)}")
    lacking = {*collapsed, *operand_batch}
    if len(offset) != operand.ndim - len(lacking):
        raise TypeError(
            f"gather: offset_dims, collapsed_slice_dims and operand_batching_dims name each of the {operand.ndim}"
            f" axes of the operand; got {offset}, {collapsed}, {operand_batch}"
        )
    for i, (size, bound) in enumerate(zip(slice_sizes, operand.shape, strict=True)):
        if not dims.at_least(size, 0) or not dims.at_least(bound, size):
            raise TypeError(f"gather: slice_sizes[{i}] is {size}; it must be in 0..{bound}")
        if i in lacking and not (dims.is_constant_dim(size) and size <= 1):
            raise TypeError(f"gather: axis {i} is collapsed, so its slice size is 1, got {size}")
    window = iter([size for d, size in enumerate(slice_sizes) if d not in lacking])
    batch = iter(indices.shape[:-1])
    shape = tuple([next(window) if d in offset else next(batch) for d in range(rank)])
    return shaping.like(operand, shape)


def _scatter_shape(
    operand,
    indices,
    updates,
    *,
    dimension_numbers,
    indices_are_sorted,
    unique_indices,
    mode,
    update_jaxpr=None,
    update_consts=(),
    name="scatter",
):
    window, inserted, index_map, operand_batch, indices_batch = dimension_numbers
    if operand.dtype != updates.dtype:
        raise TypeError(f"{name}: operand and updates have one dtype, got {operand.dtype} and {updates.dtype}")
    if name != "scatter" and dtypes.is_extended(operand.dtype):
        raise TypeError(f"{name} combines numbers, got dtype {operand.dtype}, whose elements can only be replaced")
    if operand.dtype == np.bool_ and name in ("scatter_add", "scatter_sub", "scatter_mul"):
        raise TypeError(f"{name} combines numbers, got dtype bool; convert them, or use scatter_max for 'or'")
    _check_numbers(
        "scatter",
        operand,
        indices,
        (inserted, index_map, operand_batch, indices_batch),
        ("inserted_window_dims", "scatter_dims_to_operand_dims", "scatter_indices_batching_dims"),
    )
    _check_mode("scatter", mode)
    rank = indices.ndim - 1 + len(window)
    if updates.ndim != rank:
        raise TypeError(f"{name}: updates have rank {rank}, that of the windows and of the places, got {updates.ndim}")
    _check_dims("scatter", "update_window_dims", window, rank, "the updates", ascending=True)
    if operand.ndim != len(window) + len(inserted) + len(operand_batch):
        raise TypeError(
            f"{name}: update_window_dims, inserted_window_dims and operand_batching_dims name each axis of the"
            f" operand, {operand.ndim}; got {len(window) + len(inserted) + len(operand_batch)}"
        )
    sizes = window_sizes(operand.ndim, updates.shape, dimension_numbers)
    for d, (size, bound) in enumerate(zip(sizes, operand.shape, strict=True)):
        if d not in inserted and d not in operand_batch and not dims.at_least(bound, size):
            raise TypeError(f"{name}: windows of size {size} along {d} do not fit an operand of shape {operand.shape}")
    scattered = [d for d in range(rank) if d not in window]
    for i, (d, bound) in enumerate(zip(scattered, indices.shape[:-1], strict=True)):
        if updates.shape[d] != bound:
            raise TypeError(f"{name}: one window per index vector, {bound} along axis {i}, got {updates.shape[d]}")
    return operand


for _prim in scatter_primitives:
    _prim.abstract(functools.partial(_scatter_shape, name=_prim.name.replace("-", "_")))


def _check_starts(name: str, operand, starts) -> None:
    if len(starts) != operand.ndim:
        raise ValueError(f"{name} needs one start index for each of the {operand.ndim} dimensions, got {len(starts)}")
    if starts:
        first = starts[0].dtype
        if any(s.dtype != first for s in starts) or not dtypes.issubdtype(first, np.integer):
            got = ", ".join(str(s.dtype) for s in starts)
            raise TypeError(f"{name}: start indices are integers of one dtype, got {got}")
        if any(s.ndim for s in starts):
            raise TypeError(f"{name}: start indices are scalars, got {starts}")


@dynamic_slice_p.abstract
def _dynamic_slice_shape(operand, *starts, slice_sizes):
    shape = operand.shape
    _check_starts("dynamic_slice", operand, starts)
    if len(slice_sizes) != len(shape):
        raise TypeError(f"dynamic_slice: slice_sizes {slice_sizes} for shape {shape}; one per axis is needed")
    for size, bound in zip(slice_sizes, shape, strict=True):
        if not dims.at_least(bound, size):
            raise TypeError(
                coded("BX-SLICE", f"dynamic_slice: slice_sizes {tuple(slice_sizes)} do not fit into shape {shape}")
            )
        if not dims.at_least(size, 0):
            raise TypeError(f"dynamic_slice: slice_sizes are not negative, got {slice_sizes}")
    return shaping.like(operand, tuple(slice_sizes))


@dynamic_update_slice_p.abstract
def _dynamic_update_slice_shape(operand, update, *starts):
    if operand.dtype != update.dtype:
        raise TypeError(f"dynamic_update_slice: both arrays have one dtype, got {operand.dtype} and {update.dtype}")
    if operand.ndim != update.ndim:
        raise TypeError(f"dynamic_update_slice: update {update.shape} for {operand.shape}; the ranks must be equal")
    _check_starts("dynamic_update_slice", operand, starts)
    if not all(dims.at_least(bound, size) for bound, size in zip(operand.shape, update.shape, strict=True)):
        raise TypeError(f"dynamic_update_slice: an update of shape {update.shape} does not fit into {operand.shape}")
    return operand.update(weak_type=False)


# gather and scatter

_NAN = float("nan")  # one object, because nan as a parameter must equal itself


def _default_fill(dtype) -> Any:
    if not isinstance(dtype, np.dtype):
        return None
    if dtypes.issubdtype(dtype, np.inexact):
        return _NAN
    if dtype == np.bool_:
        return True
    info = dtypes.iinfo(dtype)
    return int(info.min) if dtypes.issubdtype(dtype, np.signedinteger) else int(info.max)


def _canonical_fill(value) -> Any:
    if isinstance(value, (bool, int, complex)):
        return value
    if not isinstance(value, float):
        if isinstance(value, Tracer) or np.ndim(value):
            raise TypeError(f"gather: fill_value must be a concrete scalar, got {value!r}")
        value = np.asarray(value)
        # Low-precision scalars have no Python type.
        value = value.astype(np.float64).item() if value.dtype.kind == "V" else value.item()
    return _NAN if value != value and not isinstance(value, complex) else value


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: float | np.generic | None = None,
) -> Array:
    """Take windows of an array at computed positions.

    Most programs use array indexing, ``x[...]`` or ``x.at[...].get()``, which calls this function.

    Args:
      operand: the array to take from.
      start_indices: integers; each vector along the last dimension is the start of one window.
      dimension_numbers: a `GatherDimensionNumbers`.
      slice_sizes: the window's size in each dimension of `operand`.
      unique_indices: a promise that windows do not overlap.
      indices_are_sorted: a promise that index vectors are in ascending order.
      mode: a `GatherScatterMode` or its name; None means in bounds is promised, or, where a
        `fill_value` is given, filling.
      fill_value: the value that fills a window out of bounds in mode ``"fill"``; by default nan, the least value
        (signed), the greatest value (unsigned), or True.

    Returns:
      An array with the operand's dtype, of the shape that the dimension numbers determine.

    Raises:
      TypeError, ValueError: sizes, ranks, or dimension numbers do not fit together.

    Examples:

      >>> rows = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
      >>> x = jnp.array([[1, 2], [3, 4], [5, 6]])
      >>> lax.gather(x, jnp.array([[2], [0]]), rows, slice_sizes=(1, 2))
      Array([[5, 6],
             [1, 2]], dtype=int32)
    """
    if mode is None:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS if fill_value is None else GatherScatterMode.FILL_OR_DROP
    else:
        mode = GatherScatterMode.from_any(mode)
    if mode is not GatherScatterMode.FILL_OR_DROP:
        fill = None
    elif fill_value is None:
        fill = _default_fill(dtypes.dtype_of(operand))
    else:
        fill = _canonical_fill(fill_value)
        if isinstance(fill, complex) and not dtypes.is_complex(dtypes.dtype_of(operand)):
            raise TypeError(f"gather: fill_value is complex, got {fill!r} for elements of {dtypes.dtype_of(operand)}")
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=_tuples(dimension_numbers),
        slice_sizes=dims.canonical_shape(slice_sizes),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=mode,
        fill_value=fill,
    )


def _scatter(prim, operand, indices, updates, numbers, indices_are_sorted, unique_indices, mode, jaxpr=None):
    return prim.bind(
        operand,
        indices,
        updates,
        dimension_numbers=_tuples(numbers),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
        update_jaxpr=jaxpr,
        update_consts=(),
    )


def _scatter_function(name: str, prim: Primitive, effect: str, note: str, example: str) -> Callable[..., Array]:
    def function(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:
        return _scatter(
            prim, operand, scatter_indices, updates, dimension_numbers, indices_are_sorted, unique_indices, mode
        )

    text = f"""{effect}

    Most programs want ``x.at[...]``, which is made of this.

    Args:
      operand: the array to start from.
      scatter_indices: integers; each vector along the last dimension is the start of one window.
      updates: the windows; of the operand's dtype.
      dimension_numbers: a `ScatterDimensionNumbers`.
      indices_are_sorted: a promise that index vectors are in ascending order.
      unique_indices: a promise that windows do not overlap; the result is undefined if they do.
      mode: a `GatherScatterMode` or its name: what happens to windows out of bounds. None drops them.

    Returns:
      An array of the type of `operand`. {note}

    Raises:
      TypeError, ValueError: dtypes, sizes, ranks, or dimension numbers do not fit together.
    """
    return named(function, name, __name__, text, example)


_ANY_ORDER = "Where windows overlap, any order of application may be used."
scatter: Final = _scatter_function(
    "scatter",
    scatter_p,
    "Replace windows of an array at computed positions.",
    "Where windows overlap, the result has the element of any one of them.",
    example="""
    >>> rows = lax.ScatterDimensionNumbers(
    ...     update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    ... )
    >>> lax.scatter(jnp.zeros((3, 2)), jnp.array([[1]]), jnp.array([[5., 6.]]), rows)
    Array([[0., 0.],
           [5., 6.],
           [0., 0.]], dtype=float32)
    """,
)
scatter_add: Final = _scatter_function(
    "scatter_add",
    scatter_add_p,
    "Add to windows of an array at computed positions.",
    _ANY_ORDER,
    example="""
    >>> entries = lax.ScatterDimensionNumbers(
    ...     update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    ... )
    >>> lax.scatter_add(jnp.zeros(3), jnp.array([[0], [2], [2]]), jnp.array([1., 2., 3.]), entries)
    Array([1., 0., 5.], dtype=float32)
    """,
)
scatter_sub: Final = _scatter_function(
    "scatter_sub",
    scatter_sub_p,
    "Subtract from windows of an array at computed positions.",
    _ANY_ORDER,
    example="""
    >>> entries = lax.ScatterDimensionNumbers(
    ...     update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    ... )
    >>> lax.scatter_sub(jnp.zeros(3), jnp.array([[0], [2]]), jnp.array([1., 2.]), entries)
    Array([-1.,  0., -2.], dtype=float32)
    """,
)
scatter_mul: Final = _scatter_function(
    "scatter_mul",
    scatter_mul_p,
    "Multiply windows of an array at computed positions.",
    _ANY_ORDER,
    example="""
    >>> entries = lax.ScatterDimensionNumbers(
    ...     update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    ... )
    >>> lax.scatter_mul(jnp.full(3, 2.), jnp.array([[0], [0]]), jnp.array([3., 5.]), entries)
    Array([30.,  2.,  2.], dtype=float32, weak_type=True)
    """,
)
scatter_min: Final = _scatter_function(
    "scatter_min",
    scatter_min_p,
    "Lower windows of an array, at computed positions, to the minimum with `updates`.",
    _ANY_ORDER,
    example="""
    >>> entries = lax.ScatterDimensionNumbers(
    ...     update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    ... )
    >>> lax.scatter_min(jnp.zeros(3), jnp.array([[0], [2]]), jnp.array([-1., 2.]), entries)
    Array([-1.,  0.,  0.], dtype=float32)
    """,
)
scatter_max: Final = _scatter_function(
    "scatter_max",
    scatter_max_p,
    "Raise windows of an array, at computed positions, to the maximum with `updates`.",
    _ANY_ORDER,
    example="""
    >>> entries = lax.ScatterDimensionNumbers(
    ...     update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    ... )
    >>> lax.scatter_max(jnp.zeros(3), jnp.array([[0], [2]]), jnp.array([-1., 2.]), entries)
    Array([0., 0., 2.], dtype=float32)
    """,
)


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[..., Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Shape = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Apply a function of one element to windows of an array at computed positions.

    Args:
      operand, scatter_indices, dimension_numbers, indices_are_sorted, unique_indices, mode: as in `scatter`.
      func: takes and returns a scalar of the operand's dtype; applied once per occurrence where windows overlap.
      update_shape: the shape that `updates` would have.

    It cannot be differentiated.

    Examples:

      >>> entries = lax.ScatterDimensionNumbers(
      ...     update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
      ... )
      >>> x = jnp.array([1., 4., 9.])
      >>> lax.scatter_apply(x, jnp.array([[0], [2]]), jnp.sqrt, entries, update_shape=(2,))
      Array([1., 4., 3.], dtype=float32)
    """
    aval = ShapedArray((), dtypes.dtype_of(operand))
    jaxpr = program_of(lambda x, _: [conversions.convert_element_type(func(x), aval.dtype)], [aval, aval])
    if any(isinstance(c, Tracer) for c in jaxpr.consts):
        raise NotImplementedError("scatter_apply: func closes over traced values; use gather, func and scatter")
    updates = filling.full(update_shape, 0, aval.dtype)
    return _scatter(
        scatter_p, operand, scatter_indices, updates, dimension_numbers, indices_are_sorted, unique_indices, mode, jaxpr
    )


@positions.wide
def index_take(src: ArrayLike, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """Elements of `src` at computed positions along some axes.

    Args:
      src: the array to take from.
      idxs: one integer vector per axis, of equal length ``n``; indices wrap around.
      axes: the axes that they index.

    Returns:
      An array of shape ``(n, *rest)``, where ``rest`` are the other dimensions of `src`.

    Examples:

      >>> x = jnp.array([[1, 2], [3, 4], [5, 6]])
      >>> lax.index_take(x, (jnp.array([2, 0]),), axes=(0,))
      Array([[5, 6],
             [1, 2]], dtype=int32)
    """
    aval = aval_of(src)
    axes = tuple(shaping.canonical_axis(a, aval.ndim) for a in axes)
    columns = []
    counting = positions.dtype_for(*aval.shape)
    for idx, axis in zip(idxs, axes, strict=True):
        # An index of more bits wraps around before it is converted, one of fewer afterwards: its dtype may lack the size.
        if aval_of(idx).dtype.itemsize < counting.itemsize:
            idx = conversions.convert_element_type(idx, counting)
        bound = filling.full_like(idx, aval.shape[axis])
        rem = elementwise.rem(idx, bound)
        rem = elementwise.select(elementwise.lt(rem, filling.full_like(rem, 0)), elementwise.add(rem, bound), rem)
        columns.append(shaping.expand_dims(conversions.convert_element_type(rem, counting), (1,)))
    sizes = tuple(1 if d in axes else n for d, n in enumerate(aval.shape))
    numbers = GatherDimensionNumbers(tuple(range(1, aval.ndim - len(axes) + 1)), tuple(sorted(axes)), axes)
    return gather(src, shaping.concatenate(columns, 1), numbers, sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)
