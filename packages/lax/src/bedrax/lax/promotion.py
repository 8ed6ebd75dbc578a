"""Implicit promotion of operands: dtypes by the lattice, shapes by NumPy's broadcasting.

The operators of arrays and all of `bedrax.numpy` go through here, once per call, so the common
cases come first: two arrays of one type, and an array with a Python number, which becomes a
constant of the array's dtype without an operation.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax.core import blame, config, dims, dtypes, errors, executors, source
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded
from bedrax.core.one_program import one_program
from bedrax.core.quiet import quietly
from bedrax.core.staging import StagingTrace
from bedrax.core.tracing import cast_together, current, eval_trace
from bedrax.lax import flags, lattice
from bedrax.lax.primitives import conversions, shaping

_SCALARS = frozenset((bool, int, float, complex))
_INEXACT = frozenset(d for d in dtypes.all_dtypes if dtypes.is_inexact(d))
_BOOL = dtypes.bool_dtype


def _scalar_casts() -> dict[tuple, Callable]:
    """(Python type, dtype of an array) -> the scalar's value in that dtype, if promotion yields the dtype of the array."""
    casts: dict[tuple[Any, ...], Callable[..., Any]] = {}
    for dtype in dtypes.all_dtypes:
        own = {}
        if dtypes.is_inexact(dtype):
            own[int] = own[float] = dtype.type
        if dtypes.is_complex(dtype):
            own[complex] = dtype.type
        if dtypes.is_integer(dtype) and dtypes.is_native(dtype):
            own[int] = _int_cast(dtype)
        wide = dtype.itemsize == (16 if dtypes.is_complex(dtype) else 8)
        casts.update({(kind, dtype): _wide_cast(cast) if wide else cast for kind, cast in own.items()})
    return casts


def _wide_cast(cast: Callable) -> Callable:
    """The cast for arrays made with 64-bit types enabled; these may be disabled at the use."""

    def checked(value):
        if not config.enable_x64.value:
            raise _OutOfUse
        return cast(value)

    return checked


class _OutOfUse(Exception):
    """New values cannot have this dtype now; operands are promoted to its replacement."""


def _int_cast(dtype: np.dtype) -> Callable:
    make, bits = dtype.type, dtype.itemsize * 8

    def cast(value: int):
        try:
            return make(value)
        except OverflowError:  # integers wrap around, as when an array is converted
            dtypes.check_python_int(value)
            return np.asarray(value % (1 << bits), f"u{bits // 8}").view(dtype)[()]

    return cast


_casts = _scalar_casts()
_Inconclusive = dims.InconclusiveDimensionOperation


def promote_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands as values of one dtype and of one shape, or of rank 0.

    Args:
      name: of the function, for errors.
      x, y: arrays, tracers, NumPy values, Python scalars, objects with `__jax_array__`.

    Raises:
      TypeError: an operand is none of these, or the shapes do not broadcast.
      TypePromotionError: the dtypes have no common type.
    """
    a, b = pair_or_none(name, x, y)
    if b is None:
        a, b = promote(name, (x, y))
    return a, b


def pair_or_none(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """`promote_pair`; or ``(None, None)`` if the caller should run as one program of `x` and `y` (see `together`).

    These are two arrays of several dtypes or shapes, in an eager call: conversions would be operations of their own.
    """
    kx, ky = type(x), type(y)
    if ky in _SCALARS:
        if kx not in _SCALARS:
            a = x.aval if hasattr(kx, "weak_type") else None
            if a is not None:
                if a.weak_type:
                    if a.dtype == dtypes.python_scalar_dtype(ky):
                        return x, y
                else:
                    cast = _casts.get((ky, a.dtype))
                    if cast is not None:
                        try:
                            return x, cast(y)
                        except _OutOfUse:
                            pass
    elif kx in _SCALARS:
        b = y.aval if hasattr(ky, "weak_type") else None
        if b is not None and not b.weak_type:
            cast = _casts.get((kx, b.dtype))
            if cast is not None:
                try:
                    return cast(x), y
                except _OutOfUse:
                    pass
    else:
        # of the type: an object with `__jax_array__` may forward all attributes of its array
        a, b = x.aval if hasattr(kx, "weak_type") else None, y.aval if hasattr(ky, "weak_type") else None
        if a is None and isinstance(x, _NUMPY):
            a, x = _canonical(x)
        if b is None and isinstance(y, _NUMPY):
            if a is not None and y.dtype is a.dtype and a.shape == y.shape and a.dtype in _NARROW:
                return x, y
            b, y = _canonical(y)
        if a is not None and b is not None and a.dtype == b.dtype:
            s, t = a.shape, b.shape
            try:
                if s == t or not s or not t:
                    return x, y
                if _are_one_program(x, y):
                    return None, None
                shape = _known_shape(s, t)
            except _Inconclusive:
                shape = None
            if shape is not None and (len(s) == len(t) or flags.numpy_rank_promotion.value == "allow"):
                x, y = cast_together((x, y))
                return x if s == shape else _widen(x, s, shape), y if t == shape else _widen(y, t, shape)
        elif _are_one_program(x, y):
            return None, None
    x, y = promote(name, (x, y))
    return x, y


def _are_one_program(x: Any, y: Any) -> bool:
    """Whether a function of two arrays should be one program: it is called eagerly, and the backend compiles."""
    if current.trace is not eval_trace or executors.active is None or not executors.active.compiles:
        return False
    arrays = executors.active.array_types
    if type(x) not in arrays or type(y) not in arrays or config.disable_jit.value:
        return False
    return x.aval.split is None and y.aval.split is None and flags.numpy_rank_promotion.value == "allow"


def together(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function ``(x, y)`` as one program, for the operands for which `pair_or_none` returns None."""
    return one_program(function)


_NUMPY = (np.ndarray, np.generic)
# The dtypes that arrays have with and without 64-bit types.
_NARROW = frozenset(d for d in dtypes.all_dtypes if d.itemsize < (16 if dtypes.is_complex(d) else 8))


def _canonical(x: np.ndarray | np.generic) -> tuple[Any, Any]:
    """The type of a NumPy value, and the value with the dtype of this type."""
    aval = aval_of(x)
    return aval, x if aval.dtype == x.dtype else convert(x, aval, aval.dtype)


@functools.lru_cache(4096)
def _known_shape(s: tuple, t: tuple) -> tuple | None:
    """The shape that two shapes broadcast to; None if they do not broadcast or are symbolic."""
    if not (dims.is_constant_shape(s) and dims.is_constant_shape(t)):
        return None
    try:
        return shaping.broadcast_shapes(s, t)
    except ValueError:
        return None


def _widen(x: Any, own: tuple, shape: tuple) -> Any:
    where = tuple(range(len(shape) - len(own), len(shape)))
    return shaping.broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=where)


def promote(name: str, args: Sequence[Any], to_inexact: bool = False) -> list[Any]:
    """Like `promote_pair` for any number of operands; with `to_inexact`, integers and bools become floats."""
    return broadcast(name, promote_dtypes(name, args, to_inexact))


def inexact_pair_or_none(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """`pair_or_none`, with integers and bools made floats."""
    kind = type(x) if type(x) not in _SCALARS else type(y)
    if kind not in _SCALARS:
        a = (x if type(x) is kind else y).aval if hasattr(kind, "weak_type") else None
        if a is not None and a.dtype in _INEXACT:
            return pair_or_none(name, x, y)
    if _are_one_program(x, y):
        return None, None
    x, y = promote(name, (x, y), True)
    return x, y


def inexact(name: str, x: Any) -> Any:
    """One operand, as floats or complex numbers."""
    kind = type(x)
    if (
        kind is float
        or kind is complex
        or isinstance(x, _NUMPY)
        and aval_of(x).dtype == x.dtype
        and x.dtype in _INEXACT
    ):
        return x
    return promote_dtypes(name, (x,), True)[0]


_operands: set[type] = {np.ndarray, bool, int, float, complex}  # others are added at first use


def operand(name: str, x: Any, position: int = 0) -> Any:
    """`x` if it can be an operand: an array, a tracer, a NumPy value, or a Python scalar.

    Objects with `__jax_array__` are converted.

    Raises:
      TypeError: it cannot; lists and tuples are not converted implicitly.
    """
    if type(x) in _operands:
        return x
    if isinstance(x, (Array, np.ndarray, np.generic, bool, int, float, complex)):
        _operands.add(type(x))
        return x
    if hasattr(x, "__jax_array__"):
        return x.__jax_array__()
    if dims.is_symbolic(x):
        return dims.dim_as_value(x)
    raise blame.not_an_array(x, f"jnp.{name}", position)


def promote_dtypes(name: str, args: Sequence[Any], to_inexact: bool = False) -> list[Any]:
    """Operands as values of one dtype with unchanged shapes."""
    args = [operand(name, x, i) for i, x in enumerate(args)]
    avals = [aval_of(x) for x in args]
    if args and (not to_inexact or avals[0].dtype in _INEXACT):
        dtype = avals[0].dtype
        for x, a in zip(args, avals, strict=True):
            if a.dtype != dtype or getattr(x, "dtype", None) != dtype:  # NumPy's dtype may be wider than here
                break
        else:
            return args
    dtype, weak = lattice.promote([a.dtype for a in avals], [a.weak_type for a in avals])
    if to_inexact and dtype not in _INEXACT:
        dtype = dtypes.to_inexact_dtype(dtype)
    return [convert(x, a, dtype, weak) for x, a in zip(args, avals, strict=True)]


def convert(x: Any, aval: Any, dtype: np.dtype, weak: bool = False) -> Any:
    """`x`, of type `aval`, in the promoted dtype: constants without an operation; `x` itself if the dtype is equal."""
    kind = type(x)
    if kind in _SCALARS:
        if weak:
            scalar = dtypes.scalar_type_of(dtype)
            if dtypes.python_scalar_dtype(scalar) == dtype:
                return scalar(x)
            return conversions.convert_to(x, dtype, True)
        cast = _casts.get((kind, dtype))
        return np.asarray(x).astype(dtype)[()] if cast is None else cast(x)
    if isinstance(x, (np.ndarray, np.generic)):
        if x.dtype == dtype or (kind is np.ndarray and aval.dtype == dtype and isinstance(current.trace, StagingTrace)):
            return x  # a trace converts and copies each array once
        return quietly(np.asarray(x).astype, dtype)  # float64 beyond float32 becomes infinite
    if aval.dtype == dtype:
        return x  # a weak operand needs no change: a strong operand makes the result strong
    return conversions.convert_to(x, dtype, weak)


def broadcast(name: str, args: Sequence[Any], scalars: bool = True) -> list[Any]:
    """Operands of shapes that NumPy broadcasts, as values of equal shape; rank 0 stays, unless `scalars` is false.

    Raises:
      TypeError, ValueError: the shapes, of one rank or of several, do not broadcast.
    """
    shapes = [aval_of(x).shape for x in args]
    ranked = [s for s in shapes if s or not scalars]
    if not ranked:
        return list(args)
    first = ranked[0]
    if all(s is first or dims.definitely_equal_shape(s, first) for s in ranked):
        return list(args)
    _check_rank_promotion(name, shapes)
    args = cast_together(args)
    try:
        shape = shaping.broadcast_shapes(*ranked)
    except ValueError:
        listed = ", ".join(map(str, shapes))
        # Programs catch these types: TypeError for operands of one rank, ValueError for several ranks.
        kind = TypeError if len(set(map(len, ranked))) == 1 else ValueError
        raise kind(
            coded(
                "BX-BROADCAST",
                f"jnp.{name} got incompatible shapes for broadcasting: {listed}. Counted from the last, the axes of all"
                " operands must have equal length or length 1; x[:, None] adds an axis of length 1.",
                errors.sources_of(args),
            )
        ) from None
    return [
        broadcast_to(x, shape) if (s or not scalars) and s != shape else x for x, s in zip(args, shapes, strict=True)
    ]


def broadcast_to(x: Any, shape: tuple[Any, ...]) -> Any:
    """`x` with leading axes added and axes of length 1 repeated to have `shape`, which must fit."""
    ndim = len(aval_of(x).shape)
    return shaping.broadcast_in_dim(x, shape, range(len(shape) - ndim, len(shape)))


def _check_rank_promotion(name: str, shapes: Sequence[tuple]) -> None:
    if flags.numpy_rank_promotion.value != "allow" and len({len(s) for s in shapes if s}) > 1:
        report_rank_promotion(name, shapes)


def report_rank_promotion(name: str, shapes: Sequence[tuple[Any, ...]]) -> None:
    """Warn of operands of these shapes, or raise ValueError, unless `jax_numpy_rank_promotion` is 'allow'."""
    mode = flags.numpy_rank_promotion.value
    if mode == "allow":
        return
    listed = " ".join(map(str, shapes))
    text = (
        f"rank promotion: jnp.{name} broadcasts operands of different ranks, of shapes {listed}, which"
        " jax_numpy_rank_promotion='warn' reports; set it to 'allow' if this promotion is intended"
    )
    if mode == "warn":
        warnings.warn(text, UserWarning, stacklevel=source.stacklevel())
        return
    raise ValueError(
        f"jnp.{name} got operands of different ranks, of shapes {listed}, and jax_numpy_rank_promotion is 'raise';"
        " give all of them the same number of dimensions"
    )
