"""Windows: reductions over sliding windows (pooling), and operations that select one element of each.

A window is described by five tuples with an entry per axis: `window_dimensions`, `window_strides`,
`padding` (pairs), `base_dilation` (of the operand) and `window_dilation`; together a `Windows`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from bedrax import pytree
from bedrax.core import dims, staging
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.codes import coded
from bedrax.core.tables import pure_shapes
from bedrax.core.tracing import Primitive
from bedrax.core.typing import ArrayLike, Shape
from bedrax.lax.elementwise_kinds import check_numbers
from bedrax.lax.filling import full
from bedrax.lax.primitives import elementwise, reductions
from bedrax.lax.primitives.elementwise import ANY, NUMBER
from bedrax.lax.primitives.reductions import check_fold, combiner_jaxpr, fold_operands, monoid_of, typed_scalar
from bedrax.lax.primitives.shaping import broadcast_in_dim, like, pad, reshape, slice_in_dim
from bedrax.lax.primitives.shaping import slice as strided_slice

pure_shapes.add(__name__)

reduce_window_p: Final = Primitive("reduce_window", "windows", multiple_results=True)
reduce_window_sum_p: Final = Primitive("reduce_window_sum", "windows")
reduce_window_max_p: Final = Primitive("reduce_window_max", "windows")
reduce_window_min_p: Final = Primitive("reduce_window_min", "windows")
select_and_scatter_p: Final = Primitive("select_and_scatter", "windows")
select_and_scatter_add_p: Final = Primitive("select_and_scatter_add", "windows")
select_and_gather_add_p: Final = Primitive("select_and_gather_add", "windows")


class Windows(NamedTuple):
    """The positions of windows; the fields are the names of the primitives' parameters."""

    window_dimensions: tuple[Any, ...]
    window_strides: tuple[Any, ...]
    padding: tuple[Any, ...]
    base_dilation: tuple[Any, ...]
    window_dilation: tuple[Any, ...]

    @staticmethod
    def of(
        window_dimensions: tuple[int, ...],
        window_strides: tuple[int, ...],
        padding: tuple[tuple[Any, ...], ...],
        base_dilation: Any = None,
        window_dilation: Any = None,
    ) -> Windows:
        """`Windows` from parameters; dilations may be None or empty."""
        ones = (1,) * len(window_dimensions)
        return Windows(window_dimensions, window_strides, padding, base_dilation or ones, window_dilation or ones)

    def output_shape(self, shape: Sequence[Any]) -> tuple[Any, ...]:
        """The number of windows along each axis of an array of `shape`."""
        out = []
        for n, size, stride, (low, high), base, dilation in zip(shape, *self):
            padded = low + dims.dilate_dim(n, base) + high
            out.append(dims.stride_dim(padded, dims.dilate_dim(size, dilation), stride))
        return tuple(out)

    def apart(self) -> bool:
        """Whether nothing is dilated, and no element belongs to two windows."""
        shorter = all(size <= stride for size, stride in zip(self.window_dimensions, self.window_strides))
        return shorter and set(self.base_dilation) | set(self.window_dilation) <= {1}

    def offsets(self) -> Any:
        """The positions inside a window, in row-major order."""
        return itertools.product(*map(range, self.window_dimensions))

    def slices(self, offset: Sequence[int], out_shape: Sequence[int]) -> tuple[list[Any], list[Any], tuple[Any, ...]]:
        """Start, limit and stride, in the padded operand, of the elements at `offset` of all windows."""
        # Without windows, the operand may end before the offset.
        start = [o * d if n else 0 for o, d, n in zip(offset, self.window_dilation, out_shape)]
        limit = [s + (n - 1) * stride + 1 if n else s for s, n, stride in zip(start, out_shape, self.window_strides)]
        return start, limit, self.window_strides

    def pad_config(self) -> list[Any]:
        """The operand's padding and dilation, for `lax.pad`."""
        return [(low, high, base - 1) for (low, high), base in zip(self.padding, self.base_dilation)]


def check_windows(name: str, shape: Sequence[Any], windows: Windows) -> tuple[Any, ...]:
    """Raise unless the windows fit an operand of `shape`; returns the result's shape."""
    window_dimensions = windows.window_dimensions
    if len(shape) != len(window_dimensions):
        raise TypeError(f"{name}: window_dimensions has one per axis of shape {tuple(shape)}, got {window_dimensions}")
    for field in ("window_strides", "padding", "base_dilation", "window_dilation"):
        given = getattr(windows, field)
        if len(given) != len(window_dimensions):
            raise TypeError(f"{name}: {field} has one per window dimension, {len(window_dimensions)}, got {given}")
    for field in ("window_dimensions", "window_strides", "base_dilation", "window_dilation"):
        given = getattr(windows, field)
        if any(dims.is_constant_dim(n) and n <= 0 for n in given):
            raise TypeError(f"{name}: {field} are positive, got {given}")
    return windows.output_shape(shape)


def reduce_window_shape_tuple(
    operand_shape: Shape,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: tuple[tuple[Any, ...], ...],
    base_dilation: Any = None,
    window_dilation: Any = None,
) -> tuple[Any, ...]:
    """The shape of `reduce_window`'s result.

    Args:
      operand_shape: the shape of the operand.
      window_dimensions, window_strides: as in `reduce_window`.
      padding: a pair (low, high) per axis.
      base_dilation, window_dilation: as in `reduce_window`.

    Examples:

      >>> lax.reduce_window_shape_tuple((8, 8), (2, 2), (2, 2), [(0, 0), (0, 0)])
      (4, 4)
    """
    windows = Windows.of(window_dimensions, window_strides, padding, base_dilation, window_dilation)
    return check_windows("reduce_window", operand_shape, windows)


def padtype_to_pads(
    in_shape: Shape, window_shape: Shape, window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """The padding ``(low, high)`` along each axis that a name denotes.

    Args:
      in_shape, window_shape, window_strides: one entry per axis.
      padding: ``"VALID"`` (none), ``"SAME"`` (results at every stride-th element; an odd one more
        is added after the array), ``"SAME_LOWER"`` (... before the array).

    Examples:

      >>> lax.padtype_to_pads((8, 8), (3, 3), (1, 1), "SAME")
      [(1, 1), (1, 1)]
    """
    name = getattr(padding, "name", padding)
    if not isinstance(name, str):
        raise TypeError(f"padding is a name or a sequence of pairs, got {padding!r}")
    name = name.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(coded("BX-PADDING", f"padding is 'VALID', 'SAME', 'SAME_LOWER' or pairs, got {padding!r}"))
    if any(dims.is_constant_dim(s) and s < 1 for s in window_strides):
        raise ValueError(f"window_strides are positive, got {tuple(window_strides)}")
    out = []
    for n, window, stride in zip(in_shape, window_shape, window_strides):
        windows = (n + stride - 1) // stride
        total = dims.non_negative((windows - 1) * stride + window - n)
        half = total // 2
        out.append((half, total - half) if name == "SAME" else (total - half, half))
    return out


def _ints(values, default: int, rank: int) -> tuple:
    return (default,) * rank if values is None else dims.canonical_shape(values)


def make_windows(
    shape: tuple[int, ...],
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...] | None,
    padding: str | tuple[tuple[Any, ...], ...],
    base_dilation: tuple[int, ...] | None = None,
    window_dilation: tuple[int, ...] | None = None,
) -> Windows:
    """A user's window parameters (names of paddings, None for ones) in canonical form."""
    window_dimensions = dims.canonical_shape(window_dimensions)
    rank = len(window_dimensions)
    strides = _ints(window_strides, 1, rank)
    base = _ints(base_dilation, 1, rank)
    dilation = _ints(window_dilation, 1, rank)
    if isinstance(padding, str):
        if len(shape) == rank == len(strides) == len(base) == len(dilation):
            dilated = [dims.dilate_dim(n, b) for n, b in zip(shape, base)]
            spans = [dims.dilate_dim(n, d) for n, d in zip(window_dimensions, dilation)]
            padding = padtype_to_pads(dilated, spans, strides, padding)
        else:
            padding_name = padding
            padding = ((0, 0),) * rank
            if padding_name.upper() not in ("VALID", "SAME", "SAME_LOWER"):
                padtype_to_pads((), (), (), padding_name)
    pairs = tuple([dims.canonical_shape(pair) for pair in padding]) if isinstance(padding, Iterable) else None
    if pairs is None or any(len(pair) != 2 for pair in pairs):
        raise TypeError(f"padding is a name or a pair (low, high) per axis, got {padding!r}")
    return Windows(window_dimensions, strides, pairs, base, dilation)


# -- reductions over windows ------------------------------------------------------------------


def _window_reduction(prim: Primitive, categories) -> None:
    ok = elementwise.accepted(categories)

    @prim.abstract
    def shape_rule(operand, *, window_dimensions, window_strides, padding, base_dilation, window_dilation):
        if not ok[operand.dtype]:
            raise elementwise.dtype_refused(prim.name, operand.dtype, categories)
        windows = Windows(window_dimensions, window_strides, padding, base_dilation, window_dilation)
        return like(operand, check_windows(prim.name, operand.shape, windows))


_window_reduction(reduce_window_sum_p, NUMBER)
_window_reduction(reduce_window_max_p, ANY)
_window_reduction(reduce_window_min_p, ANY)

# The reduction of each window, for the primitives of one reduction.
window_of: Final = {
    reductions.reduce_sum_p: reduce_window_sum_p,
    reductions.reduce_max_p: reduce_window_max_p,
    reductions.reduce_min_p: reduce_window_min_p,
}
reduction_of: Final = {window: whole for whole, window in window_of.items()}


@reduce_window_p.abstract
def _reduce_window_shape(*avals, jaxpr, **params):
    half = len(avals) // 2
    operands, inits = avals[:half], avals[half:]
    check_fold("reduce_window", operands, inits, TypeError)
    shape = check_windows("reduce_window", operands[0].shape, Windows(**params))
    return [like(x, shape) for x in operands]


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Fold each sliding window of arrays with an associative function.

    Args:
      operand: a tree of arrays of one shape.
      init_value: a tree of scalars like it: neutral elements of `computation`. Folds start from
        them; the padding holds them (XLA's compilers may leave it out instead).
      computation: associative function of two trees of scalars like `init_value` that returns one.
      window_dimensions: the size of the window along each axis.
      window_strides: steps between windows; default 1.
      padding: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"``, or a pair (low, high) per axis.
      base_dilation: distance of the operand's elements, filled up with `init_value`; default 1.
      window_dilation: distance of a window's elements; default 1.

    Returns:
      A tree like `operand`. Sums from 0, maxima from the least value and minima from the greatest
      become a separate primitive with a fast derivative.

    Examples:

      >>> x = jnp.array([1., 5., 2., 4.])
      >>> lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID")
      Array([5., 4.], dtype=float32)
    """
    leaves, inits, tree = fold_operands("reduce_window", operand, init_value)
    avals = [aval_of(x) for x in leaves]
    windows = make_windows(avals[0].shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    params = windows._asdict()
    if len(leaves) == 1 and tree == pytree.tree_structure(0):
        prim = window_of.get(monoid_of(computation, leaves[0], inits[0]))
        if prim is not None:
            x, rest = _whole_axes(leaves[0], prim, windows)
            return prim.bind(x, **rest._asdict())
    check_windows("reduce_window", avals[0].shape, windows)
    jaxpr = combiner_jaxpr(computation, avals, tree, "reduce_window")
    return pytree.tree_unflatten(tree, reduce_window_p.bind(*leaves, *inits, jaxpr=jaxpr, **params))


def _whole_axes(x, prim, windows: Windows):
    """Axes that one window of symbolic size covers are reduced first; windows of symbolic sizes have no other meaning."""
    shape = aval_of(x).shape
    axes = [
        i
        for i, (n, size) in enumerate(zip(shape, windows.window_dimensions))
        if not dims.is_constant_dim(size)
        and dims.definitely_equal(n, size)
        and (windows.padding[i], windows.base_dilation[i], windows.window_dilation[i]) == ((0, 0), 1, 1)
    ]
    if not axes:
        return x, windows
    x = reduction_of[prim].bind(x, axes=tuple(axes))
    x = reshape(x, tuple([1 if i in axes else n for i, n in enumerate(shape)]))
    sizes = tuple([1 if i in axes else n for i, n in enumerate(windows.window_dimensions)])
    return x, windows._replace(window_dimensions=sizes)


# -- selections ---------------------------------------------------------------------------------


@select_and_scatter_add_p.abstract
def _select_and_scatter_add_shape(source, operand, *, select_prim, window_dimensions, window_strides, padding):
    check_numbers("select_and_scatter_add", source, operand)
    windows = Windows.of(window_dimensions, window_strides, padding)
    expected = check_windows("select_and_scatter_add", operand.shape, windows)
    if not dims.same_shape(source.shape, expected):
        raise TypeError(f"select_and_scatter_add: source has the shape of the windows, {expected}, got {source.shape}")
    return like(source, operand.shape)


@select_and_gather_add_p.abstract
def _select_and_gather_add_shape(
    tangents, operand, *, select_prim, window_dimensions, window_strides, padding, base_dilation, window_dilation
):
    check_numbers("select_and_gather_add", tangents, operand)
    if not dims.same_shape(tangents.shape, operand.shape):
        raise TypeError(f"select_and_gather_add: tangents are of shape {operand.shape}, got {tangents.shape}")
    windows = Windows(window_dimensions, window_strides, padding, base_dilation, window_dilation)
    return like(tangents, check_windows("select_and_gather_add", operand.shape, windows))


@select_and_scatter_p.abstract
def _select_and_scatter_shape(
    operand, source, init_value, *, select_jaxpr, scatter_jaxpr, window_dimensions, window_strides, padding
):
    windows = Windows.of(window_dimensions, window_strides, padding)
    expected = check_windows("select_and_scatter", operand.shape, windows)
    if not operand.dtype == source.dtype == init_value.dtype:
        raise TypeError(
            f"select_and_scatter: operand, source and init_value have one dtype, got {operand.dtype}, {source.dtype}"
            f" and {init_value.dtype}"
        )
    if not dims.same_shape(source.shape, expected):
        raise TypeError(f"select_and_scatter: source has the shape of the windows, {expected}, got {source.shape}")
    return operand


def select_and_scatter_add(source: Any, operand: ArrayLike, select_prim: Primitive, windows: Windows) -> Any:
    """Add each element of `source` to the element of its window of `operand` that is selected; 0 elsewhere.

    Args:
      source: one element per window.
      operand: the array that has windows; its padding is never selected.
      select_prim: `ge_p` (the first of the greatest) or `le_p`.
      windows: without dilations.
    """
    return select_and_scatter_add_p.bind(
        source,
        operand,
        select_prim=select_prim,
        window_dimensions=windows.window_dimensions,
        window_strides=windows.window_strides,
        padding=windows.padding,
    )


def select_and_gather_add(tangents: Any, operand: ArrayLike, select_prim: Primitive, windows: Windows) -> Any:
    """For each window of `operand`, the element of `tangents` at the place that is selected."""
    return select_and_gather_add_p.bind(tangents, operand, select_prim=select_prim, **windows._asdict())


def select_and_scatter(
    operand: ArrayLike,
    select: Callable[..., Any],
    windows: Windows,
    source: Any,
    init_value: ArrayLike,
    scatter: Callable[..., Any],
) -> Any:
    """`select_and_scatter_add` with any comparison and any combination.

    Args:
      operand: array of any dtype.
      select: ``select(x, y)`` of scalars: whether to keep `x`.
      windows: without dilations.
      source: one element per window.
      init_value: the start value of every element of the result.
      scatter: associative and commutative function of two scalars.
    """
    scalar = ShapedArray((), aval_of(operand).dtype)
    one = lambda fun: staging.program_of(lambda x, y: [fun(x, y)], [scalar, scalar])
    return select_and_scatter_p.bind(
        operand,
        source,
        typed_scalar(init_value, scalar),
        select_jaxpr=one(select),
        scatter_jaxpr=one(scatter),
        window_dimensions=windows.window_dimensions,
        window_strides=windows.window_strides,
        padding=windows.padding,
    )


# -- windows as slices ----------------------------------------------------------------------------


def padded_slices(x: ArrayLike, fill: Any, windows: Windows, out_shape: Sequence[int]) -> Iterator[Any]:
    """For each position inside a window, the array of the elements there of all windows."""
    padded = pad(x, fill, windows.pad_config())
    for offset in windows.offsets():
        yield strided_slice(padded, *windows.slices(offset, out_shape))


def add_slices(parts: Sequence[Any], windows: Windows, shape: Sequence[int]) -> Any:
    """The transpose of `padded_slices` (with fill 0): put each part where it was cut out, and add up."""
    whole = [
        low + dims.dilate_dim(n, base) + high
        for n, (low, high), base in zip(shape, windows.padding, windows.base_dilation)
    ]
    total = None
    for offset, part in zip(windows.offsets(), parts):
        zero = np.zeros((), aval_of(part).dtype)
        out_shape = aval_of(part).shape
        start, limit, strides = windows.slices(offset, out_shape)
        config = [(lo, n - hi, s - 1) for lo, hi, n, s in zip(start, limit, whole, strides)]
        placed = pad(part, zero, config)
        total = placed if total is None else elementwise.add(total, placed)
    total = pad(total, np.zeros((), aval_of(total).dtype), [(-low, -high, 0) for low, high in windows.padding])
    for axis, base in enumerate(windows.base_dilation):
        if base > 1:
            total = slice_in_dim(total, None, None, base, axis)
    return total


def fold_windows(
    combine: Callable[..., Any], operands: Sequence[Any], inits: Sequence[Any], windows: Windows
) -> list[Any]:
    """`reduce_window` as slices combined one after the other; `combine` takes arrays and returns a list."""
    out_shape = windows.output_shape(aval_of(operands[0]).shape)
    out = [broadcast_in_dim(init, out_shape, ()) for init in inits]
    for parts in zip(*(padded_slices(x, init, windows, out_shape) for x, init in zip(operands, inits))):
        out = combine(*out, *parts)
    return out


def selected_masks(operand: ArrayLike, select_prim: Primitive, windows: Windows) -> list[Any]:
    """For each position inside a window, a bool array: whether the window's selected element is there."""
    shape = aval_of(operand).shape
    out_shape = windows.output_shape(shape)
    dtype = aval_of(operand).dtype
    inside = full(shape, True, np.bool_)
    best = None
    chosen = []
    for part, real in zip(
        padded_slices(operand, np.zeros((), dtype), windows, out_shape),
        padded_slices(inside, np.False_, windows, out_shape),
    ):
        if best is None:
            best, any_real = part, real
            chosen.append(real)
            continue
        kept = elementwise.bitwise_and(any_real, select_prim.bind(best, part))
        take = elementwise.bitwise_and(real, elementwise.bitwise_not(kept))
        best = elementwise.select(take, part, best)
        any_real = elementwise.bitwise_or(any_real, real)
        chosen = [elementwise.bitwise_and(c, elementwise.bitwise_not(take)) for c in chosen]
        chosen.append(take)
    return chosen


__all__ = [
    "padtype_to_pads",
    "reduce_window",
    "reduce_window_max_p",
    "reduce_window_min_p",
    "reduce_window_p",
    "reduce_window_shape_tuple",
    "reduce_window_sum_p",
    "select_and_gather_add_p",
    "select_and_scatter_add_p",
    "select_and_scatter_p",
]
