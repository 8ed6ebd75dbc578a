"""``x.at[idx]``: arrays with some elements changed, as scatters."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes, positions, source, tracing
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded
from bedrax.core.jitting import jit
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax import lattice
from bedrax.lax.dynamic_slices import dynamic_update_slice
from bedrax.lax.operators import power, true_divide
from bedrax.lax.primitives import indexing as prims
from bedrax.lax.primitives.indexing import GatherScatterMode, ScatterDimensionNumbers
from bedrax.lax.promotion import convert, operand
from bedrax.numpy import indexing
from bedrax.numpy.creation import asarray, place
from bedrax.numpy.index_plans import ARRAYS, FULL, NEW, RANGE, WINDOW, Index, Plan, read

_BOOL = dtypes.bool_dtype


class At:
    """The value of ``x.at``: index it with the elements to change."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array: Any = array

    def __getitem__(self, index: Any) -> Update:
        return Update(self.array, index)

    def __repr__(self) -> str:
        return f"At({self.array!r})"


class Update:
    """``x.at[idx]``: each method returns a new array, `x` with the elements at `idx` changed.

    All methods take:

    * ``indices_are_sorted``, ``unique_indices``: promises about index arrays that allow faster programs,
    * ``mode``: the treatment of indices out of bounds: ``"drop"`` (also ``"fill"``; the default of updates) ignores
      them, ``"clip"`` moves them inside, ``"promise_in_bounds"`` promises that there are none,
    * ``wrap_negative_indices``: whether negative indices count from the end.

    Elements that several indices name are changed several times; for `set`, one of the values wins.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array: Any = array
        self.index: Any = index

    def __repr__(self) -> str:
        return f"Update({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """``x[idx]``, with a choice of the elements at indices out of bounds.

        Args:
          mode: by default and with ``"clip"`` they are moved inside, with ``"fill"`` the result is `fill_value`.
          fill_value: default: nan, or the least (signed), greatest (unsigned) integer, or True.
        """
        x, index = _read(self.array, self.index, wrap_negative_indices)
        options = (index, mode, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices)
        if out_sharding is not None:
            read = lambda x: lax.placed_call(out_sharding, lambda x: indexing.get(x, *options), x)
            return (jit(read) if lax.is_split(x) else read)(x)  # in a program, types need not hold the split
        return indexing.get(x, *options)

    def apply(
        self,
        func: Callable[..., Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """`func`, a function of one element, applied to the elements, once for every index."""
        x, index = _read(self.array, self.index, wrap_negative_indices)
        with positions.scope(*x.shape):
            wraps = indexing.which_wrap(index.starts, wrap_negative_indices)
            numbers, indices, shape, one = _scatter_operands(index, wraps)
            indices = lax.asarray(indices)
        return prims.scatter_apply(
            x,
            indices,
            func,
            numbers,
            update_shape=shape,
            indices_are_sorted=one or indices_are_sorted,
            unique_indices=not index.arrays or unique_indices,
            mode=mode,
        )

    def divide(self, values: Any, **options: Any) -> Array:
        """``x[idx] / values``; the result is floating. Options as in `set`."""
        return true_divide(self.array, self._ones(values).multiply(values, **options))

    def power(self, values: Any, **options: Any) -> Array:
        """``x[idx] ** values``. Options as in `set`."""
        return power(self.array, self._ones(values).multiply(values, **options))

    def _ones(self, values: Any) -> Update:
        """Ones of the shape and weak type of the array, which `values` multiply. Integers would cut floats."""
        dtype = self.array.dtype
        if not dtypes.is_inexact(dtype):
            values = asarray(values) if isinstance(values, (list, tuple)) else operand("at[]", values, 1)
            common = lattice.result_type(self.array, values)
            dtype = common if dtypes.is_inexact(common) else dtype
        ones = lax.full_like(self.array, 1, dtype)
        return Update(lax.convert_to(ones, dtype, aval_of(self.array).weak_type), self.index)


def _operation(name: str, doc: str) -> Callable:
    def method(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        out = update(
            self.array, self.index, values, name, indices_are_sorted, unique_indices, mode, wrap_negative_indices
        )
        if out_sharding is None:
            return out
        return place(out, None, out_sharding)

    method.__name__ = name
    method.__qualname__ = f"Update.{name}"
    method.__doc__ = doc
    return method


# name -> (primitive, primitive for bools or None, description)
_OPERATIONS = {
    "set": (prims.scatter_p, prims.scatter_p, "`values` in place of the elements."),
    "add": (prims.scatter_add_p, prims.scatter_max_p, "`values` added to the elements."),
    "subtract": (prims.scatter_sub_p, None, "`values` subtracted from the elements."),
    "multiply": (prims.scatter_mul_p, prims.scatter_min_p, "The elements multiplied by `values`."),
    "min": (prims.scatter_min_p, prims.scatter_min_p, "The minimum of the elements and `values`."),
    "max": (prims.scatter_max_p, prims.scatter_max_p, "The maximum of the elements and `values`."),
}
for _name, (_, _, _doc) in _OPERATIONS.items():
    setattr(Update, _name, _operation(_name, _doc + " `values` are converted to the dtype of the array."))
Update.mul = Update.multiply  # type: ignore[attr-defined]


def _read(x: Any, idx: Any, wrap: bool) -> tuple[Any, Index]:
    index, shape = read(x.shape, idx, wrap)
    return (x if shape is None else lax.reshape(x, shape)), index


def update(
    x: Array,
    idx: slice | tuple[Any, ...] | ArrayLike,
    values: Any,
    name: str,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | None = None,
    wrap: bool = True,
) -> Array:
    """``x.at[idx].<name>(values)``."""
    shape = x.shape
    x, index = _read(x, idx, wrap)
    out = update_at(x, index, values, name, indices_are_sorted, unique_indices, mode, wrap)
    return out if out.shape is shape or out.shape == shape else lax.reshape(out, shape)


def update_at(
    x: Array,
    index: Index,
    values: Any,
    name: str,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | None = None,
    wrap: bool = True,
) -> Array:
    """`update` at an index that has been read."""
    values = _values(x, values, name)
    mode = GatherScatterMode.from_any(mode)
    plan, starts, arrays, _, inside = index
    constants = plan, name, indices_are_sorted, unique_indices, mode, indexing.which_wrap(starts, wrap), inside
    if not positions.are_wide(*plan.shape):
        return _update_in_scope(x, starts, arrays, values, constants)
    with positions.scope(*plan.shape):
        return _update_in_scope(x, starts, arrays, values, constants)


def _update_in_scope(x, starts, arrays, values, constants):
    plan = constants[0]
    if tracing.current.trace is indexing._eval_trace and indexing._plain(x, starts):
        dtype = indexing._index_dtype(plan.shape)
        starts = [np.asarray(s, dtype) if type(s) is int else s for s in starts]
        return _update_now.of(*constants)(x, starts, arrays, values)
    return _update(x, starts, arrays, values, *constants)


def _values(x: Any, values: Any, name: str) -> Any:
    """`values` as an operand of the dtype of `x`."""
    dtype = x.dtype
    if isinstance(values, (list, tuple)):  # here, unlike in other functions, lists are converted to arrays
        values = asarray(values)
    values = operand(f"at[].{name}", values, 1)
    aval = aval_of(values)
    if aval.dtype == dtype:
        return values if not dtypes.is_python_scalar(values) else dtype.type(values)
    if dtypes.is_extended(dtype) or dtypes.is_extended(aval.dtype):
        raise TypeError(f"x.at[...].{name}: cannot convert values of type {aval.dtype} to {dtype}")
    common = lattice.promote([dtype, aval.dtype], [False, aval.weak_type])[0]
    if common != dtype and not _fits(dtype, aval.dtype):
        warnings.warn(
            f"x.at[...].{name}: values of {aval.dtype} do not fit an array of {dtype} and are cut; convert them with"
            f" astype({dtype}) if this conversion is intended. This will be an error.",
            FutureWarning,
            stacklevel=source.stacklevel(),
        )
    if isinstance(values, float) and dtypes.is_integer(dtype):
        return dtypes.as_integers(values, dtype)
    if dtypes.is_python_scalar(values):
        return convert(values, aval, dtype)
    return lax.convert_element_type(values, dtype)


def _fits(dtype: np.dtype, given: np.dtype) -> bool:
    """Whether both dtypes are of one kind: integers, floats or complex numbers. Their widths may differ."""
    kinds = (dtypes.is_integer, dtypes.is_floating, dtypes.is_complex)
    return any(kind(dtype) and kind(given) for kind in kinds)


def _scatter_operands(index: Index, wraps: tuple) -> tuple:
    """(dimension numbers, indices, shape of the updates, whether there is only one window)."""
    plan = index.plan
    numbers, batch, _ = indexing._gather_plan(plan)
    starts = index.starts
    indices = indexing.index_vectors(plan, starts, index.arrays, wraps, batch)
    shape = _without_new(plan)
    return ScatterDimensionNumbers(*numbers), indices, shape, not batch


def _without_new(plan: Plan) -> tuple:
    return Plan(plan.shape, plan.axes, tuple(s for s in plan.layout if s != NEW), plan.block).result_shape


def _update(x, starts, arrays, values, plan, name, indices_are_sorted, unique_indices, mode, wraps, inside):
    indexing.takes_nothing(plan, (indexing.POINT,))
    prim, bool_prim, _ = _OPERATIONS[name]
    if x.dtype == _BOOL:
        if bool_prim is None:
            raise TypeError(f"x.at[...].{name} is not defined for arrays of bool")
        prim = bool_prim
    target = plan.result_shape
    values = _spread(values, target, plan)
    shape = _without_new(plan)
    if inside and not arrays and name == "set" and not any(k[0] == RANGE for k in plan.axes):
        return _set_window(x, plan, starts, values)
    numbers, indices, _, one = _scatter_operands(Index(plan, starts, arrays, True, inside), wraps)
    values = values if aval_of(values).shape == shape else lax.broadcast_in_dim(values, shape, ())
    return prim.bind(
        x,
        indices,
        values,
        dimension_numbers=numbers,
        indices_are_sorted=bool(one or indices_are_sorted),
        unique_indices=bool(not arrays or unique_indices),
        mode=mode,
        update_jaxpr=None,
        update_consts=(),
    )


_update_now = one_program(
    _update, everywhere=True, static=("plan", "name", "indices_are_sorted", "unique_indices", "mode", "wraps", "inside")
)


def _spread(values: Any, target: tuple, plan: Plan) -> Any:
    """`values` broadcast to the shape that the index selects, without the new axes; or a scalar."""
    own = aval_of(values).shape
    if not own:
        return values
    # Axes of length 1 in front may be more than the index has.
    while len(own) > len(target) and dims.definitely_equal(own[0], 1):
        values = lax.squeeze(values, (0,))
        own = own[1:]
    fits = len(own) <= len(target) and all(
        dims.definitely_equal(a, b) or dims.definitely_equal(a, 1)
        for a, b in zip(reversed(own), reversed(target), strict=False)
    )
    if not fits:
        raise ValueError(
            coded("BX-UPDATE", f"values of shape {own} cannot be broadcast to the indexed part, of shape {target}")
        )
    if NEW in plan.layout:
        values = lax.broadcast_to_rank(values, len(target))
        places, i = [], 0
        for s in plan.layout:
            if s == NEW:
                places.append(i)
            i += len(plan.block) if s == ARRAYS else 1
        values = lax.squeeze(values, places)
        target = _without_new(plan)
    own = aval_of(values).shape
    if own == target:
        return values
    return lax.broadcast_in_dim(values, target, range(len(target) - len(own), len(target)))


def _set_window(x: Any, plan: Plan, starts: Any, values: Any) -> Any:
    """`set` of one window that lies inside."""
    it = iter(starts)
    at = [next(it) if k[0] != FULL else 0 for k in plan.axes]
    sizes = tuple(
        n if k[0] == FULL else k[1] if k[0] == WINDOW else 1 for n, k in zip(plan.shape, plan.axes, strict=True)
    )
    shape = aval_of(values).shape
    if not shape:
        values = lax.broadcast_in_dim(values, sizes, ())
    elif shape != sizes:
        values = lax.reshape(values, sizes)
    if sizes == plan.shape:
        return lax.convert_to(values, x.dtype, aval_of(x).weak_type)
    out = dynamic_update_slice(x, values, at, allow_negative_indices=False)
    return lax.convert_to(out, x.dtype, True) if aval_of(x).weak_type else out
