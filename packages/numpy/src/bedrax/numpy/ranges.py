"""Ranges of numbers and grids: `arange`, `linspace`, `meshgrid`, `mgrid`, `r_`..."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from bedrax import lax
from bedrax.core import config, dims, dtypes, errors, tracing
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.core.public import public
from bedrax.core.typing import ArrayLike, DTypeLike, ShapeLike
from bedrax.lax import lattice
from bedrax.lax.choices import one_of
from bedrax.lax.operators import multiply, power
from bedrax.lax.promotion import broadcast, operand, promote
from bedrax.numpy.arguments import array as as_array
from bedrax.numpy.arguments import axis_index
from bedrax.numpy.creation import asarray, place
from bedrax.numpy.joining import concatenate, stack
from bedrax.numpy.manipulation import moveaxis


def _known(x: Any, what: str) -> Any:
    """An argument of `arange` as a number."""
    if isinstance(x, tracing.Tracer) and x.concrete() is None:
        raise errors.ConcretizationTypeError(x, f"jnp.arange of a computed {what} has no known length; use linspace")
    if isinstance(x, (Array, np.ndarray, np.generic)):
        value = np.asarray(x)
        if value.ndim:
            raise TypeError(public(f"jax.numpy.arange: arguments must be scalars; got {what} of shape {value.shape}"))
        return value[()]
    if isinstance(x, (bool, int, float, complex)):
        return x
    if hasattr(x, "__jax_array__"):
        return _known(x.__jax_array__(), what)
    raise TypeError(public(f"jax.numpy.arange: arguments must be numbers; got {what}={x!r}"))


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: Any = None,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The numbers from `start` (inclusive) to `stop` (exclusive) in steps.

    Args:
      start: the first number; if `stop` is not given, the end of a range that starts at 0.
      stop: the end.
      step: default 1.
      dtype: default: the promoted dtype of the arguments.
      device, out_sharding: the device or the sharding of the array.

    Raises:
      ConcretizationTypeError: an argument is traced.
      ValueError: an argument is complex, or the step is 0.

    Examples:

      >>> jnp.arange(4)
      Array([0, 1, 2, 3], dtype=int32)
      >>> jnp.arange(1, 2, 0.25)
      Array([1.  , 1.25, 1.5 , 1.75], dtype=float32)
      >>> jnp.arange(6, 0, -2, dtype=jnp.int8)
      Array([6, 4, 2], dtype=int8)
    """
    if dtype is not None:
        dtype = dtypes.explicit_dtype(dtype, "arange")
    if any(dims.is_symbolic(v) for v in (start, stop, step)):
        return place(_symbolic_arange(start, stop, step, dtype), device, out_sharding)
    if start is None:
        raise TypeError("jnp.arange requires a start argument")
    start = _known(start, "stop" if stop is None and step is None else "start")
    stop = None if stop is None else _known(stop, "stop")
    step = None if step is None else _known(step, "step")
    given = [v for v in (start, stop, step) if v is not None]
    if dtype is None:
        dtype = lattice.result_type(*given)
    whole = all([isinstance(v, (int, np.integer)) for v in given])
    if not whole and any(isinstance(v, complex) or np.iscomplexobj(v) for v in given):
        raise ValueError(
            public(
                f"jax.numpy.arange: start, stop and step must not be complex, because complex numbers have no order, got {given};"
                " dtype=complex makes a range of complex elements"
            )
        )
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if step == 0:
        raise ValueError("jnp.arange: the step must not be 0")
    count = -((int(start) - int(stop)) // int(step)) if whole else math.ceil((stop - start) / step)
    count = max(0, count)
    if dtype == np.bool_:
        return place(asarray(np.arange(start, stop, step, dtype=bool)), device, out_sharding)
    if dtypes.is_integer(dtype):
        if not whole:
            return place(asarray(np.arange(start, stop, step).astype(dtype)), device, out_sharding)
        start, step = int(start), int(step)
        out = lax.iota(dtype, count)
        if step != 1:
            out = lax.mul(out, np.asarray(step).astype(dtype)[()])
        if start != 0:
            out = lax.add(out, np.asarray(start).astype(dtype)[()])
        return place(out, device, out_sharding)
    # start + i * step has one rounding too many; NumPy's method in double precision is exact for float32.
    values = np.arange(count, dtype=np.float64) * float(step) + float(start)
    if start == 0 and step == 1 and count < 2 ** (dtypes.finfo(dtype).nmant + 1):
        return place(lax.iota(dtype, count), device, out_sharding)
    return place(asarray(values.astype(dtype)), device, out_sharding)


def _symbolic_arange(start, stop, step, dtype):
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if dtype is None and any(isinstance(v, (float, np.floating)) for v in (start, stop, step)):
        dtype = dtypes.default_float_dtype()
    whole = [v if dims.is_symbolic(v) or not float(v).is_integer() else int(v) for v in (start, stop, step)]
    if not all(dims.is_symbolic(v) or isinstance(v, int) for v in whole):
        raise ValueError(f"arange with symbolic dimensions takes whole numbers besides them, got {(start, stop, step)}")
    start, stop, step = whole
    if dims.definitely_equal(step, 0):
        raise ValueError("jnp.arange: the step must not be 0")
    forward = bool(step > 0)  # raises if the sign depends on symbolic sizes
    count = dims.non_negative(-((start - stop) // step) if forward else -((stop - start) // -step))
    dtype = dtypes.default_int_dtype() if dtype is None else dtype
    scalar = lambda v: lax.convert_element_type(dims.dim_as_value(v), dtype)
    return lax.add(lax.mul(lax.iota(dtype, count), scalar(step)), scalar(start))


@one_program(static=("num", "endpoint", "retstep", "dtype", "axis", "device"))
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` numbers at equal distances from `start` to `stop`.

    Args:
      start, stop: scalars or arrays; the ends.
      num: the number of points.
      endpoint: whether `stop` is the last number.
      retstep: return (numbers, their distance).
      dtype: default: a float type; integers are rounded down.
      axis: the axis of the result along which the numbers run.
      device: the device or the sharding of the array.

    Examples:

      >>> jnp.linspace(0, 1, 5)
      Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
      >>> jnp.linspace(0, 1, 4, endpoint=False)
      Array([0.  , 0.25, 0.5 , 0.75], dtype=float32)
    """
    num = dims.canonical_dim(num, "It is needed in jnp.linspace.")
    if isinstance(num, int) and num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    operand("linspace", start, 0), operand("linspace", stop, 1)
    if dtype is None:
        out_dtype = dtypes.to_inexact_dtype(lattice.result_type(start, stop))
    else:
        out_dtype = dtypes.explicit_dtype(dtype, "linspace")
    given = dtypes.to_inexact_dtype(lattice.result_type(start, stop))
    work, inexact = given, dtypes.to_inexact_dtype(out_dtype)
    if dtypes.itemsize_bits(inexact) > 8:  # narrower floats are not promoted
        with config.numpy_dtype_promotion("standard"):  # an argument `dtype` is an explicit conversion
            work = lattice.promote_types(given, inexact)
    a, b = promote("linspace", (start, stop), True)
    a, b = (lax.convert_to(v, work, False) for v in (a, b))
    a, b = broadcast("linspace", (a, b), scalars=False)
    shape = aval_of(a).shape
    gaps = num - 1 if endpoint else num
    real = dtypes.to_real_dtype(work)
    whole = lambda n: real.type(n) if isinstance(n, int) else lax.convert_element_type(dims.dim_as_value(n), real)
    many = not isinstance(num, int) or gaps > 0
    delta = lax.sub(b, a)
    step = lax.div(delta, lax.convert_to(whole(gaps), work, False)) if many else lax.full_like(delta, np.nan)
    if isinstance(num, int) and num == 0:
        out = lax.full((0, *shape), 0, work)
    elif isinstance(num, int) and num == 1:
        out = lax.expand_dims(a, (0,))
    else:
        t = lax.div(lax.iota(real, gaps), whole(gaps))
        t = lax.convert_to(lax.reshape(t, (gaps, *([1] * len(shape)))), work, False)
        one = lax.sub(work.type(1), t)
        # A convex combination: exact at both ends, and symmetric.
        row = lambda v: lax.expand_dims(v, (0,))
        full = lambda v, n=gaps: lax.broadcast_in_dim(v, (n, *shape), range(len(shape) + 1))
        out = lax.add(lax.mul(full(row(a)), full(one)), lax.mul(full(row(b)), full(t)))
        if endpoint:
            last = b
            if not isinstance(num, int):  # which may be 1
                alone = lax.eq(lax.convert_element_type(dims.dim_as_value(num), np.int32), np.int32(1))
                last = lax.select(alone, a, b)
            out = lax.concatenate([out, row(last)], 0)
    if dtypes.is_integer(out_dtype) and not dtypes.is_integer(work):
        out = lax.floor(out)
    axis = axis_index(axis, len(shape) + 1)
    if axis:
        order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
        out = lax.transpose(out, order)
    out = place(lax.asarray(lax.convert_to(out, out_dtype, False)), device)
    return (out, lax.asarray(step)) if retstep else out


@one_program(static=("num", "endpoint", "dtype", "axis"))
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """``base ** linspace(start, stop, ...)``: numbers at equal ratios.

    Args:
      start, stop: scalars or arrays, broadcast against each other; the exponents of the ends.
      num: the number of points.
      endpoint: whether ``base ** stop`` is the last number.
      base: a scalar, or an array that is broadcast against the exponents.
      dtype: of the result. Default: a float type.
      axis: the axis of the result along which the numbers run.

    Examples:

      >>> jnp.logspace(0, 2, 3).round(3)
      Array([  1.     ,  10.     , 100.00001], dtype=float32)
    """
    out_dtype = (
        dtypes.to_inexact_dtype(lattice.result_type(start, stop, base))
        if dtype is None
        else (dtypes.explicit_dtype(dtype, "logspace"))
    )
    work = dtypes.to_inexact_dtype(out_dtype)
    exponents = linspace(start, stop, num, endpoint, dtype=work, axis=axis)
    return lax.convert_element_type(
        power(lax.convert_element_type(as_array("logspace", base), work), exponents), out_dtype
    )


@one_program(static=("num", "endpoint", "dtype", "axis"))
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Numbers at equal ratios from `start` to `stop`.

    Args:
      start, stop: scalars or arrays, broadcast against each other; the ends, which are not 0.
      num: the number of points.
      endpoint: whether `stop` is the last number.
      dtype: of the result. Default: a float type.
      axis: the axis of the result along which the numbers run.

    Examples:

      >>> jnp.geomspace(1, 1000, 4).round(3)
      Array([1.00000000e+00, 1.00000000e+01, 1.00000008e+02, 1.00000006e+03],
            dtype=float32)
    """
    out_dtype = (
        dtypes.to_inexact_dtype(lattice.result_type(start, stop))
        if dtype is None
        else (dtypes.explicit_dtype(dtype, "geomspace"))
    )
    work = dtypes.to_inexact_dtype(out_dtype)
    a, b = (lax.convert_element_type(v, work) for v in promote("geomspace", (start, stop), True))
    # Divided by the sign (direction, if complex) of the start, a positive number has a logarithm.
    unit = lax.sign(a)
    a, b = lax.div(a, unit), lax.div(b, unit)
    out = lax.exp(linspace(lax.log(a), lax.log(b), num, endpoint, dtype=work))
    count = out.shape[0]
    # The ends are the given ones, without the rounding of exp and log.
    if not isinstance(count, int) or count > 0:
        out = out.at[0].set(a)
        if endpoint and (not isinstance(count, int) or count > 1):
            out = out.at[-1].set(b)
    return lax.convert_element_type(moveaxis(multiply(out, unit), 0, axis), out_dtype)


# ---- grids ------------------------------------------------------------------------------------------------------


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate arrays of the grid that vectors span.

    Args:
      *xi: vectors.
      copy: must be True: there are no views.
      sparse: leave out the repetition: axes have length 1.
      indexing: "xy", where the first two axes are exchanged, or "ij".

    Examples:

      >>> x, y = jnp.meshgrid(jnp.array([1, 2, 3]), jnp.array([10, 20]))
      >>> x
      Array([[1, 2, 3],
             [1, 2, 3]], dtype=int32)
      >>> y
      Array([[10, 10, 10],
             [20, 20, 20]], dtype=int32)
    """
    args = [as_array("meshgrid", x) for x in xi]
    if not copy:
        raise ValueError(public("jax.numpy.meshgrid only supports copy=True"))
    one_of("meshgrid", "indexing", indexing, ("xy", "ij"))
    if any(a.ndim > 1 for a in args):
        raise ValueError(public(f"Arguments to jax.numpy.meshgrid must be 1D, got shapes {[a.shape for a in args]}"))
    args = [lax.reshape(a, (a.size,)) for a in args]
    order = list(range(len(args)))
    if indexing == "xy" and len(args) >= 2:
        order[:2] = [1, 0]
    shape = [1 if sparse else args[i].shape[0] for i in order]
    where = {i: k for k, i in enumerate(order)}
    out = []
    for i, a in enumerate(args):
        own = list(shape)
        own[where[i]] = a.shape[0]
        out.append(lax.broadcast_in_dim(a, own, (where[i],)))
    return tuple(out)


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """For each axis of an array of a shape, its index at every position.

    Args:
      dimensions: the shape.
      dtype: default: the default integer type.
      sparse: return a tuple of arrays that broadcast, in place of one array.

    Examples:

      >>> rows, columns = jnp.indices((2, 3))
      >>> rows
      Array([[0, 0, 0],
             [1, 1, 1]], dtype=int32)
      >>> columns
      Array([[0, 1, 2],
             [0, 1, 2]], dtype=int32)
    """
    shape = dims.canonical_shape(dimensions)
    dtype = dtypes.default_int_dtype() if dtype is None else dtypes.explicit_dtype(dtype, "indices")
    if sparse:
        return tuple(
            lax.broadcasted_iota(dtype, [n if k == d else 1 for k in range(len(shape))], d) for d, n in enumerate(shape)
        )
    if not shape:
        return lax.full((0,), 0, dtype)
    return lax.stack([lax.broadcasted_iota(dtype, shape, d) for d in range(len(shape))], 0)


def fromfunction(function: Callable[..., Any], shape: ShapeLike, *, dtype: DTypeLike = float, **kwargs: Any) -> Array:
    """An array with a function of the indices as the element at each position.

    Args:
      function: of one scalar per axis; it is vectorized.
      shape: of the result.
      dtype: of the indices.
      **kwargs: further arguments of the function.

    Examples:

      >>> jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
      Array([[ 0,  1,  2],
             [10, 11, 12]], dtype=int32)
    """
    from bedrax.batching import vmap

    shape = dims.canonical_shape(shape)
    for d in reversed(range(len(shape))):
        function = _mapped(vmap, function, tuple(0 if k == d else None for k in range(len(shape))))
    dtype = dtypes.explicit_dtype(dtype, "fromfunction")
    return function(
        *[lax.iota(dtype, n) if dtype != np.bool_ else asarray(np.arange(n, dtype=bool)) for n in shape], **kwargs
    )


def _mapped(vmap: Callable, function: Callable, axes: tuple) -> Callable:
    return lambda *args, **kwargs: vmap(lambda *a: function(*a, **kwargs), in_axes=axes)(*args)


def _axis_of(s: slice, what: str) -> Array:
    start = 0 if s.start is None else s.start
    step = 1 if s.step is None else s.step
    if s.stop is None:
        raise ValueError(f"jnp.{what} needs slices with an end, got {s}")
    if isinstance(step, complex):  # an imaginary step is a number of points
        return linspace(start, s.stop, int(abs(step)))
    return arange(start, s.stop, step)


class _Grid:
    """Coordinate arrays of a grid, by slices: ``start:stop:step``, or ``start:stop:nj`` for n points."""

    def __init__(self, name: str, sparse: bool) -> None:
        self.name, self.sparse = name, sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _axis_of(key, self.name)
        axes = promote_axes([_axis_of(k, self.name) for k in key])
        grid = meshgrid(*axes, indexing="ij", sparse=self.sparse)
        if self.sparse:
            return list(grid)  # NumPy returns a tuple, every version of upstream a list
        return stack(grid, 0) if grid else lax.full((0,), 0, dtypes.default_int_dtype())

    def __repr__(self) -> str:
        return f"jax.numpy.{self.name}"


def promote_axes(axes: list[Any]) -> list[Any]:
    """Vectors of one dtype."""
    if not axes:
        return axes
    dtype = lattice.result_type(*axes)
    return [lax.convert_element_type(a, dtype) for a in axes]


mgrid: Final = _Grid("mgrid", False)
ogrid: Final = _Grid("ogrid", True)


class _Join:
    """Arrays joined by an index: ``r_[1:4, 0, x]``.

    Slices are ranges (``start:stop:nj``: n points). A string first, ``"axis,rank,where"``, gives the axis to join along,
    the rank of the parts, and the position of their own axes.
    """

    def __init__(self, name: str, axis: int, rank: int, where: int) -> None:
        self.name, self.axis, self.rank, self.where = name, axis, rank, where

    def __getitem__(self, key: tuple[Any, ...]) -> Array:
        key = key if isinstance(key, tuple) else (key,)
        axis, rank, where = self.axis, self.rank, self.where
        if key and isinstance(key[0], str):
            directive, key = key[0], key[1:]
            if directive in ("r", "c"):  # a row or a column of a matrix
                joined = self[key]
                return lax.expand_dims(joined, (0 if directive == "r" else 1,)) if joined.ndim == 1 else joined
            try:
                numbers = [int(v) for v in directive.split(",")]
            except ValueError:
                raise ValueError(f"could not understand directive {directive!r} of jnp.{self.name}") from None
            axis, rank, where = (*numbers, *(axis, rank, where)[len(numbers) :])[:3]
        parts = []
        for item in key:
            if isinstance(item, slice):
                part, ranks = _axis_of(item, self.name), 1
            else:
                part = asarray(item)
                ranks = part.ndim
                part = lax.reshape(part, (1,)) if not ranks else part
            missing = rank - part.ndim
            if missing > 0:
                own = part.ndim
                first = where if where >= 0 else rank + where - own + 1
                first = max(0, min(first, missing)) if ranks or where >= 0 else missing
                part = lax.expand_dims(part, [d for d in range(rank) if not first <= d < first + own])
            parts.append(part)
        return concatenate(parts, axis)

    def __repr__(self) -> str:
        return f"jax.numpy.{self.name}"


r_: Final = _Join("r_", 0, 1, -1)
c_: Final = _Join("c_", -1, 2, 0)


class _IndexExpression:
    """Returns the index in brackets: ``s_[1:3, ::2]``."""

    def __init__(self, always_tuple: bool) -> None:
        self.always_tuple = always_tuple

    def __getitem__(self, key: Any) -> Any:
        return (key,) if self.always_tuple and not isinstance(key, tuple) else key


index_exp: Final = _IndexExpression(True)
s_: Final = _IndexExpression(False)
