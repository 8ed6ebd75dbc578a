"""Making arrays: from data, filled with a constant, and like another array."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes, executors
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded
from bedrax.core.typing import ArrayLike, DTypeLike, ShapeLike
from bedrax.lax import lattice
from bedrax.lax.promotion import broadcast_to as _broadcast
from bedrax.lax.promotion import operand

_SCALARS = (bool, int, float, complex)


def _placed(x: Array, source: Any, device: Any, out_sharding: Any) -> Array:
    """Place `x` by `device` or `out_sharding`. Without both, the executor places arrays that are made of host data."""
    if device is None and out_sharding is None:
        return x if isinstance(source, Array) or not executors.any_offered() else executors.get().made_here(x)
    return place(x, device, out_sharding)


def place(x: ArrayLike, device: Any = None, out_sharding: Any = None) -> Any:
    """`x` on a device or with a sharding; unchanged if neither is given."""
    where = device if device is not None else out_sharding
    if where is None:
        return x
    return lax.placed(x, where, "device" if device is not None else "out_sharding")


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array.

    Args:
      object: an array, a scalar, nested sequences of them, or anything that NumPy reads as an array.
      dtype: of the result; default: the promoted dtype of the elements. A Python scalar without it is weakly typed.
      *args: `copy`, `order` and `ndmin` by position.
      copy: whether the result must be new.
      order: "K", "C" or None; arrays have no other order.
      ndmin: leading axes are added to reach this rank.
      device, out_sharding: the device or the sharding of the array.

    Raises:
      TypeError: there are elements that are not numbers.
      ValueError: an element is None, or sequences have different lengths.
      OverflowError: an integer does not fit the dtype.

    Examples:

      >>> jnp.array([1, 2, 3])
      Array([1, 2, 3], dtype=int32)
      >>> jnp.array([1, 2.5])
      Array([1. , 2.5], dtype=float32)
      >>> jnp.array([[1, 2], [3, 4]], dtype=jnp.bfloat16)
      Array([[1, 2],
             [3, 4]], dtype=bfloat16)
    """
    if args:
        copy, order, ndmin = (*args, *(copy, order, ndmin)[len(args) :])
    if order is not None and order not in ("K", "C", "A"):
        raise NotImplementedError(f"array: order={order!r} is not supported, arrays are always in C order")
    out = from_data(object, dtype, copy, "array")
    if ndmin and out.ndim < ndmin:
        out = lax.broadcast_to_rank(out, ndmin)
    return _placed(out, object, device, out_sharding)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """`a` as an array. The result may be `a` itself.

    Args:
      a, dtype, order, device, out_sharding: as in `array`.
      copy: True makes a new array. None copies NumPy arrays and the like, because their owner may write to them later.
        False raises an error if the elements have to be reordered or converted; a NumPy array in C order that keeps its
        dtype is accepted.

    Raises:
      ValueError: `copy` is False, and `a` is not an array, has another dtype than the result, or is not in C order.

    Examples:

      >>> x = jnp.asarray([1., 2.])
      >>> jnp.asarray(x) is x
      True
      >>> jnp.asarray(range(3), dtype=float)
      Array([0., 1., 2.], dtype=float32)
    """
    if order is not None and order not in ("K", "C", "A"):
        raise NotImplementedError(f"asarray: order={order!r} is not supported, arrays are always in C order")
    if dtype is None and not copy and device is None and out_sharding is None and isinstance(a, Array):
        return a
    out = from_data(a, dtype, None if copy is None else bool(copy), "asarray")
    if copy is False and (why := _why_copied(a, out.dtype)) is not None:
        raise ValueError(f"jnp.asarray: a copy is needed: {why}. Use copy=None")
    return _placed(out, a, device, out_sharding)


def _why_copied(x: Any, dtype: Any) -> str | None:
    """The reason that an array of this dtype needs a copy of the elements of `x`; None if it needs none."""
    if hasattr(x, "__jax_array__"):
        return _why_copied(x.__jax_array__(), dtype)
    if not isinstance(x, Array):
        if isinstance(x, (list, tuple, range, *_SCALARS, np.generic)) or dims.is_symbolic(x):
            return f"{type(x).__name__} is not an array"
        x = np.asarray(x)
        if not x.flags.c_contiguous:
            return f"the array of shape {x.shape} is not in C order"
    return None if x.dtype == dtype else f"the dtype has to change from {x.dtype} to {dtype}"


def from_data(x: ArrayLike, dtype: DTypeLike, copy: bool | None, where: str) -> Array:
    """The common part of `array` and `asarray`.

    If `copy` is None, only an array that is not ours is copied: its owner may write to it later.
    """
    if dtype is not None:
        dtype = dtypes.explicit_dtype(dtype, where)
    if isinstance(x, Array):
        out = x if dtype is None or x.dtype == dtype and not x.weak_type else lax.convert_to(x, dtype, False)
        return lax.copy_p.bind(out) if copy and out is x and not dtypes.is_extended(out.dtype) else out
    kind = type(x)
    if kind in _SCALARS:
        if dtype is None:
            return lax.asarray(x)
        return lax.asarray(_python_scalar(x, dtype))
    if isinstance(x, (np.ndarray, np.generic)):
        if isinstance(x, np.ma.MaskedArray):
            aval_of(x)  # raises: masked arrays are not supported
        return _from_numpy(np.asarray(x), dtype, copy is not False)
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, dtype)
    if x is None:
        raise ValueError(coded("BX-ARRAY-OF", "jnp.array: None is not a number; use jnp.nan or jnp.zeros(())"))
    if hasattr(x, "__jax_array__"):
        return from_data(x.__jax_array__(), dtype, copy, where)
    if dims.is_symbolic(x):
        return from_data(dims.dim_as_value(x), dtype, copy, where)
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return _from_numpy(np.asarray(x), dtype, copy is not False)
    if isinstance(x, (range, memoryview, bytearray, bytes)) and not isinstance(x, bytes):
        return _from_numpy(np.asarray(x), dtype or (np.dtype(int) if kind is range else None), copy is not False)
    if isinstance(x, (bool, int, float, complex)):  # subclasses, e.g. of enum.IntEnum
        return from_data(dtypes.scalar_type_of(x)(x), dtype, copy, where)
    if isinstance(x, (str, bytes)):
        raise TypeError(coded("BX-ARRAY-OF", f"jnp.array: arrays hold numbers and bools, got the text {x!r}"))
    try:
        view = memoryview(x)
    except TypeError:
        raise TypeError(coded("BX-ARRAY-OF", f"jnp.array: no array can be made of a {kind}")) from None
    return _from_numpy(np.asarray(view), dtype, copy is not False)


def _python_scalar(x: Any, dtype: Any) -> np.ndarray:
    if dtypes.is_integer(dtype) and isinstance(x, int):
        return np.asarray(x, dtype)  # OverflowError where it does not fit
    with np.errstate(all="ignore"):
        if isinstance(x, complex) and not dtypes.is_inexact(dtype):
            x = x.real
        if dtypes.is_integer(dtype):
            return dtypes.as_integers(x, dtype)
        if isinstance(x, complex) and not dtypes.is_complex(dtype):
            warnings.warn(
                "Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning, stacklevel=2
            )
            x = x.real
        return np.asarray(x).astype(dtype)


def _from_numpy(x: np.ndarray, dtype: Any, copy: bool) -> Array:
    own = x.dtype
    if not dtypes.has_numbers(own):
        raise TypeError(coded("BX-ARRAY-OF", f"jnp.array: arrays hold numbers and bools, got {x!r} of dtype {own}"))
    if own == dtypes.float0:
        return x  # has no content: unchanged
    target = dtypes.canonicalize_dtype(own) if dtype is None else dtype
    if target != own:
        if dtype is not None and (dtypes.is_floating(own) or dtypes.is_complex(own)):
            return lax.asarray(lax.convert_element_type(x, target))
        with np.errstate(all="ignore"):
            x = x.astype(target)
    elif copy and not executors.any_offered():  # an executor copies
        x = np.array(x, order="C")
    return lax.asarray(x)


def _leaf_types(x: Any, seen: dict) -> bool:
    """Collects one leaf per type of nested sequences; returns whether some leaf is an `Array`."""
    ours = False
    for item in x:
        kind = type(item)
        if kind in _SCALARS:
            seen.setdefault(kind, item)
        elif isinstance(item, (list, tuple)):
            ours |= _leaf_types(item, seen)
        elif isinstance(item, Array) or hasattr(item, "__jax_array__") or dims.is_symbolic(item):
            ours = True
        elif item is None:
            raise ValueError(coded("BX-ARRAY-OF", "jnp.array: None is not a number; use jnp.nan or jnp.zeros(())"))
        elif isinstance(item, (np.ndarray, np.generic)):
            seen.setdefault(item.dtype, item)
        elif isinstance(item, (int, float, complex)):
            seen.setdefault(kind, dtypes.scalar_type_of(item)(item))
        else:
            array = np.asarray(item)
            seen.setdefault(array.dtype, array)
    return ours


def _from_sequence(x: Any, dtype: Any) -> Array:
    seen: dict[Any, Any] = {}
    if not _leaf_types(x, seen):
        if dtype is None:
            kind = next(iter(seen), float)
            if type(kind) is type and kind in _SCALARS and len(seen) <= 1:  # of an empty list, too
                dtype = dtypes.python_scalar_dtype(kind)
            else:
                for item in seen.values():
                    if getattr(item, "dtype", None) is not None and item.dtype.kind in "OUSMm":
                        raise TypeError(
                            coded(
                                "BX-ARRAY-OF",
                                f"jnp.array: arrays hold numbers and bools, got {x!r}, of dtype {item.dtype}",
                            )
                        )
                dtype = lattice.result_type(
                    *(
                        dtypes.python_scalar_dtype(k) if isinstance(k, type) and len(seen) == 1 else v
                        for k, v in seen.items()
                    )
                )
            if all(isinstance(k, type) for k in seen) or len(seen) == 1:
                return lax.asarray(np.array(x, dtype=dtype))
            if dtypes.is_integer(dtype):
                _check_ints(x, dtype)
            return lax.asarray(np.array(x).astype(dtype))
        if dtypes.is_integer(dtype) and not all(k in (int, bool) for k in seen):
            return _from_numpy(np.array(x), dtype, False)
        return lax.asarray(np.array(x, dtype=dtype))
    parts = [from_data(item, None, False, "array") for item in x]
    shapes = {p.shape for p in parts}
    if len(shapes) > 1:
        raise ValueError(f"jnp.array: elements of a sequence have one shape, got {', '.join(map(str, shapes))}")
    found = lattice.result_type(*parts) if dtype is None else dtype
    if dtypes.is_integer(found):
        _check_ints(x, found)
    return lax.stack([lax.convert_to(p, found, False) for p in parts], 0)


def _check_ints(x: Any, dtype: np.dtype) -> None:
    """Raise OverflowError if a Python int in nested sequences, which does not decide the dtype, does not fit it."""
    for item in x:
        if type(item) is int:
            np.asarray(item, dtype)
        elif isinstance(item, (list, tuple)):
            _check_ints(item, dtype)


# ---- constants ----------------------------------------------------------------------------------------------


def _float_or(dtype: Any, where: str):
    return dtypes.default_float_dtype() if dtype is None else dtypes.explicit_dtype(dtype, where)


def zeros(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of zeros.

    Args:
      shape: an int or a sequence of ints.
      dtype: default: float.
      device, out_sharding: the device or the sharding of the array.

    Examples:

      >>> jnp.zeros((2, 3))
      Array([[0., 0., 0.],
             [0., 0., 0.]], dtype=float32)
    """
    return place(lax.full(dims.canonical_shape(shape), 0, _float_or(dtype, "zeros")), device, out_sharding)


def ones(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """Return an array of ones.

    Args:
      shape: an int, or a sequence of ints.
      dtype: the dtype. Default: the default float dtype.
      device: a device, or a sharding, of the result.
      out_sharding: a sharding of the result.

    Returns:
      An array of this shape and dtype.

    Raises:
      TypeError: a size is negative, or no known integer.

    Examples:

      >>> jnp.ones((2, 2), dtype=int)
      Array([[1, 1],
             [1, 1]], dtype=int32)
    """
    return place(lax.full(dims.canonical_shape(shape), 1, _float_or(dtype, "ones")), device, out_sharding)


def empty(shape: ShapeLike, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """Return an array of zeros. Memory is never left uninitialized, as NumPy leaves it.

    Args:
      shape: an int or a sequence of ints.
      dtype: default: float.
      device, out_sharding: the device or the sharding of the array.

    Examples:

      >>> jnp.empty((2, 3)).shape
      (2, 3)
    """
    return place(lax.full(dims.canonical_shape(shape), 0, _float_or(dtype, "empty")), device, out_sharding)


def full(
    shape: ShapeLike, fill_value: Any, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array filled with a value.

    Args:
      shape: an int or a sequence of ints.
      fill_value: a scalar, or an array that is broadcast to `shape`.
      dtype: default: that of `fill_value`.
      device, out_sharding: the device or the sharding of the array.

    Examples:

      >>> jnp.full((2, 2), 7)
      Array([[7, 7],
             [7, 7]], dtype=int32, weak_type=True)
      >>> jnp.full((2, 2), jnp.array([1., 2.]))
      Array([[1., 2.],
             [1., 2.]], dtype=float32)
    """
    shape = dims.canonical_shape(shape)
    if dtype is not None:
        dtype = dtypes.explicit_dtype(dtype, "full")
    if fill_value is None:
        raise TypeError("jnp.full: fill_value is an array or a number, got None")
    if type(fill_value) in _SCALARS:
        out = lax.full(shape, fill_value, dtype)
    else:
        value = from_data(fill_value, dtype, False, "full")
        out = _broadcast_checked(value, shape)
    return place(out, device, out_sharding)


def _broadcast_checked(x: Array, shape: tuple) -> Array:
    own = x.shape
    fits = len(own) <= len(shape) and all(
        dims.definitely_equal(a, b) or dims.definitely_equal(a, 1)
        for a, b in zip(reversed(own), reversed(shape), strict=False)
    )
    if not fits:
        raise ValueError(
            coded(
                "BX-BROADCAST-TO",
                f"an array of shape {own} cannot be broadcast to shape {shape}; counted from the last, its axes must"
                " have the same length or length 1",
            )
        )
    return _broadcast(x, shape)


def _like(x: Any, dtype: Any, shape: Any, value: Any, name: str, device: Any, out_sharding: Any) -> Array:
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        x = operand(name, x)
    if dtype is not None:
        dtype = dtypes.explicit_dtype(dtype, name)
    if shape is not None:
        shape = dims.canonical_shape(shape)
    return place(lax.full_like(x, value, dtype, shape), device, out_sharding)


def zeros_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Return an array of zeros like another array.

    Args:
      a: an array, or an object with a shape and a dtype.
      dtype: the dtype of the result. Default: that of `a`.
      shape: the shape of the result. Default: that of `a`.
      device: a device, or a sharding, of the result.
      out_sharding: a sharding of the result.

    Returns:
      An array of this shape and dtype.

    Examples:

      >>> jnp.zeros_like(jnp.array([1.5, 2.5]), dtype=int)
      Array([0, 0], dtype=int32)
    """
    return _like(a, dtype, shape, 0, "zeros_like", device, out_sharding)


def ones_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Return an array of ones like another array.

    Args:
      a: an array, or an object with a shape and a dtype.
      dtype: the dtype of the result. Default: that of `a`.
      shape: the shape of the result. Default: that of `a`.
      device: a device, or a sharding, of the result.
      out_sharding: a sharding of the result.

    Returns:
      An array of this shape and dtype.

    Examples:

      >>> jnp.ones_like(jnp.array([5, 6]))
      Array([1, 1], dtype=int32)
    """
    return _like(a, dtype, shape, 1, "ones_like", device, out_sharding)


def empty_like(
    prototype: Any, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, *, device: Any = None
) -> Array:
    """Return an array of zeros like `prototype`. Memory is never left uninitialized, as NumPy leaves it.

    Args:
      prototype: an array, or an object with a shape and a dtype.
      dtype: the dtype of the result. Default: that of `prototype`.
      shape: the shape of the result. Default: that of `prototype`.
      device: a device, or a sharding, of the result.

    Returns:
      An array of this shape and dtype.

    Examples:

      >>> jnp.empty_like(jnp.ones((2, 3), jnp.int8)).dtype
      dtype('int8')
    """
    return _like(prototype, dtype, shape, 0, "empty_like", device, None)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Return an array like another array, in which each element is `fill_value`.

    Args:
      a: an array, or an object with a shape and a dtype.
      fill_value: a number, or an array that is broadcast to the shape.
      dtype: the dtype of the result. Default: that of `a`.
      shape: the shape of the result. Default: that of `a`.
      device: a device, or a sharding, of the result.
      out_sharding: a sharding of the result.

    Returns:
      An array of this shape and dtype.

    Examples:

      >>> jnp.full_like(jnp.array([1, 2, 3]), 0.5, dtype=float)
      Array([0.5, 0.5, 0.5], dtype=float32)
    """
    if np.ndim(fill_value) if not isinstance(fill_value, Array) else fill_value.ndim:
        aval = a if hasattr(a, "shape") and hasattr(a, "dtype") else aval_of(a)
        return full(
            aval.shape if shape is None else shape,
            fill_value,
            aval.dtype if dtype is None else dtype,
            device=device,
            out_sharding=out_sharding,
        )
    return _like(a, dtype, shape, fill_value, "full_like", device, out_sharding)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A new array equal to `a`.

    Args:
      a: array or scalar.
      order: as in `array`.

    Raises:
      TypeError: `a` is not an array or scalar.

    Examples:

      >>> x = jnp.arange(3)
      >>> y = jnp.copy(x)
      >>> y is x
      False
    """
    operand("copy", a)
    return array(a, copy=True, order=order)


# ---- from other libraries, buffers, files ---------------------------------------------------------------------


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array from an object of another library that has ``__dlpack__``.

    Args:
      x: the object.
      device: the device or the sharding of the array.
      copy: True copies, None shares memory where possible.

    Examples:

      >>> jnp.from_dlpack(np.arange(3, dtype=np.float32))
      Array([0., 1., 2.], dtype=float32)
    """
    return executors.get().from_dlpack(x, device=device, copy=copy)


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """The bytes of a buffer as an array of rank 1.

    Args:
      buffer: bytes, or another object with the buffer protocol.
      dtype: of the stored elements. `float` and `int` have 64 bits, as in NumPy. Without x64, the result is converted to
        32 bits.
      count: the number of elements; -1 denotes all.
      offset: the number of bytes to skip.

    Raises:
      ValueError: the buffer is too small, or no whole number of elements.

    Examples:

      >>> jnp.frombuffer(b"\\x01\\x02\\x03", dtype=jnp.uint8)
      Array([1, 2, 3], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer=buffer, dtype=_stored(dtype), count=count, offset=offset))


def _stored(dtype: DTypeLike) -> Any:
    """The dtype of stored elements. ``int``, ``float``, ... mean NumPy's dtypes, with x64 on or off."""
    return np.dtype(dtype) if isinstance(dtype, type) and dtype in _SCALARS else dtypes.as_dtype(dtype)


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """The numbers in a text, as an array of rank 1.

    Args:
      string: the text.
      dtype: of the numbers, as in `frombuffer`.
      count: how many to read; -1 denotes all.
      sep: the text between two numbers.

    Raises:
      ValueError: `sep` is empty.

    Examples:

      >>> jnp.fromstring("1 2 3", sep=" ", dtype=int)
      Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string=string, dtype=_stored(dtype), count=count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> None:
    """Not supported: reading a file is not a pure function. Use ``jnp.asarray(np.fromfile(...))``.

    Examples:

      >>> jnp.fromfile("numbers")
      Traceback (most recent call last):
        ...
      NotImplementedError: ...
    """
    raise NotImplementedError(
        "jnp.fromfile: a file may change between two calls, so reading it is not a pure function; write"
        " jnp.asarray(np.fromfile(...))"
    )


def fromiter(*args: Any, **kwargs: Any) -> None:
    """Not supported: consuming an iterator is not a pure function. Use ``jnp.asarray(np.fromiter(...))``.

    Examples:

      >>> jnp.fromiter(iter([1, 2]), dtype=int)
      Traceback (most recent call last):
        ...
      NotImplementedError: ...
      >>> jnp.asarray(np.fromiter(iter([1, 2]), dtype=int))
      Array([1, 2], dtype=int32)
    """
    raise NotImplementedError(
        "jnp.fromiter: an iterator can be read once, so reading it is not a pure function; write"
        " jnp.asarray(np.fromiter(...))"
    )


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read an array from a ``.npy`` file (or a dictionary of them from ``.npz``); arguments as in `numpy.load`.

    Examples:

      >>> import pathlib, tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp(), "x.npy")
      >>> jnp.save(path, jnp.arange(3))
      >>> jnp.load(path)
      Array([0, 1, 2], dtype=int32)
    """
    out = np.load(file, *args, **kwargs)
    if isinstance(out, np.ndarray):
        if out.dtype.kind == "V" and out.dtype.names is None and out.dtype != dtypes.float0:
            # NumPy writes types from outside NumPy as raw bytes; 2 bytes are most often bfloat16.
            if out.dtype.itemsize == 2:
                out = out.view(dtypes.bfloat16)
        out = asarray(out)
    return out
