"""Queries of dtypes and values, and conversion: `result_type`, `issubdtype`, `can_cast`, `astype`..."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes

import numpy as np
from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.typing import ArrayLike, Axis, DTypeLike
from bedrax.lax import lattice
from bedrax.lax.primitives.shaping import canonical_axis
from bedrax.lax.promotion import operand
from bedrax.numpy.creation import place

finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo


def result_type(*args: Any) -> np.dtype:
    """The dtype that values and dtypes combine to; see `bedrax.core.lattice.result_type`.

    Examples:

      >>> jnp.result_type(jnp.int32, 1.5)
      dtype('float32')
      >>> jnp.result_type(jnp.bfloat16, jnp.float16)
      dtype('float32')
    """
    return lattice.result_type(*args)


def promote_types(a: Any, b: Any) -> np.dtype:
    """The least dtype that both dtypes convert to implicitly.

    Args:
      a, b: dtypes.

    Raises:
      TypePromotionError: no dtype is common to both, as for two different 8-bit floats. It is a ValueError.

    Examples:

      >>> jnp.promote_types(jnp.int32, jnp.bfloat16)
      dtype(bfloat16)
    """
    return lattice.promote_types(a, b)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether the dtype or kind `arg1` is, or is of the kind, `arg2`, e.g. `jnp.floating`.

    Args:
      arg1, arg2: dtypes, or kinds such as `jnp.floating`.

    Examples:

      >>> jnp.issubdtype(jnp.bfloat16, jnp.floating)
      True
    """
    return dtypes.issubdtype(arg1, arg2)


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether values of a dtype can be converted to another by a rule.

    Args:
      from_, to: dtypes.
      casting: the rule: ``"no"``, only to itself; ``"equiv"``, if the byte order alone differs; ``"safe"``, without loss of
        values; ``"same_kind"``, also to a narrower dtype of the same kind; ``"unsafe"``, always.

    Examples:

      >>> jnp.can_cast(jnp.int8, jnp.float32)
      True
      >>> jnp.can_cast(jnp.float32, jnp.int8)
      False
    """
    return np.can_cast(_np_dtype(from_), _np_dtype(to), casting)


def _np_dtype(x: Any) -> np.dtype:
    return dtypes.as_dtype(x) if not isinstance(x, (int, float, complex)) else dtypes.dtype_of(x)


_KINDS: dict[str, tuple[Any, ...]] = {
    "bool": (np.bool_,),
    "signed integer": (np.signedinteger,),
    "unsigned integer": (np.unsignedinteger,),
    "integral": (np.integer,),
    "real floating": (np.floating,),
    "complex floating": (np.complexfloating,),
    "numeric": (np.number,),
}


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
      dtype: the dtype.
      kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
        "numeric"; a dtype; or a tuple of these; one must fit.

    Raises:
      ValueError, TypeError: `kind` is none of these.

    Examples:

      >>> jnp.isdtype(jnp.int8, "signed integer")
      True
      >>> jnp.isdtype(jnp.float32, ("integral", "complex floating"))
      False
    """
    dtype = dtypes.as_dtype(dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in _KINDS:
            if any(dtypes.issubdtype(dtype, k) for k in _KINDS[one]):
                return True
            continue
        if isinstance(one, str) and one not in dtypes._BY_NAME:
            raise ValueError(f"isdtype: no kind and no dtype is called {one!r}; kinds are {sorted(_KINDS)}")
        if not isinstance(one, (str, type, np.dtype, dtypes.ExtendedDType)):
            raise TypeError(f"isdtype: a kind is a dtype, its name, or a tuple of them, got {kind!r}")
        if dtypes.as_dtype(one) == dtype:
            return True
    return False


def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: Any = None) -> Array:
    """`x` converted to another dtype.

    Args:
      x: array or scalar. Complex numbers lose their imaginary part with a warning.
      dtype: the dtype; None means the default float type.
      copy: make a new array even if the dtype stays.
      device: where to put the result.

    Raises:
      TypeError: `x` is not an array or scalar.

    Examples:

      >>> jnp.astype(jnp.array([0.2, 1.9, -2.5]), jnp.int32)
      Array([ 0,  1, -2], dtype=int32)
    """
    x = operand("astype", x)
    requested = dtypes.default_float_dtype() if dtype is None else dtypes.explicit_dtype(dtype, "astype")
    if dtypes.is_complex(aval_of(x).dtype) and requested == np.bool_:
        x = lax.ne(x, np.zeros((), aval_of(x).dtype))
    out = lax.convert_element_type(x, requested)
    if copy and out is x:
        out = lax.copy_p.bind(out)
    return place(out if isinstance(out, Array) else lax.asarray(out), device)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of `x` is complex.

    Examples:

      >>> jnp.iscomplexobj(jnp.array([1 + 0j]))
      True
    """
    if x is None:
        return False
    return dtypes.is_complex(_dtype_of(x))


def isrealobj(x: Any) -> bool:
    """Return whether the dtype of `x` is not complex. The values do not matter: ``1+0j`` is complex.

    Examples:

      >>> jnp.isrealobj(jnp.array([1 + 0j]))
      False
    """
    return not iscomplexobj(x)


def _dtype_of(x: Any):
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, (np.dtype, dtypes.ExtendedDType)):
        return dtype
    return np.asarray(x).dtype


def isscalar(element: Any) -> bool:
    """Whether `element` is a Python or NumPy scalar, or an array of rank 0.

    Examples:

      >>> jnp.isscalar(3.5)
      True
      >>> jnp.isscalar(jnp.array([3.5]))
      False
    """
    if hasattr(element, "__jax_array__"):
        element = element.__jax_array__()
    if isinstance(element, (Array, np.ndarray)):
        return element.ndim == 0
    return np.isscalar(element)


def iterable(y: Any) -> bool:
    """Whether one can iterate over `y`; arrays of rank 0 cannot be.

    Examples:

      >>> jnp.iterable(jnp.arange(3)), jnp.iterable(jnp.array(3))
      (True, False)
    """
    if isinstance(y, Array):
        return y.ndim > 0
    return np.iterable(y)


def shape(a: Any) -> tuple[Any, ...]:
    """The shape of an array, a scalar, or anything that has a `.shape`.

    Examples:

      >>> jnp.shape(jnp.ones((2, 3)))
      (2, 3)
    """
    found = getattr(a, "shape", None)
    return found if isinstance(found, tuple) else _shape_of_other("shape", a)


def _shape_of_other(name: str, a: Any) -> tuple[Any, ...]:
    """The shape of a value without the attribute `shape`."""
    if a is not None and not isinstance(a, (list, tuple)):
        return aval_of(operand(name, a)).shape
    warnings.warn(  # TensorFlow Probability passes None
        f"jnp.{name} is for arrays and scalars, got {type(a).__name__} {a!r:.60}; it will be an error. Use"
        f" {'np.' + name if a is not None else 'a comparison with None'} instead.",
        DeprecationWarning,
        stacklevel=3,
    )
    return () if a is None else np.shape(a)


def ndim(a: Any) -> int:
    """The number of axes of an array, a scalar, or anything that has a `.ndim`.

    Examples:

      >>> jnp.ndim(jnp.ones((2, 3)))
      2
    """
    found = getattr(a, "ndim", None)
    if isinstance(found, int):
        return found
    found = getattr(a, "shape", None)
    return len(found if isinstance(found, tuple) else _shape_of_other("ndim", a))


def size(a: Any, axis: Axis = None) -> int:
    """The number of elements of an array, or the product of some of its lengths.

    Args:
      a: array or scalar.
      axis: None (all), one axis, or several.

    Raises:
      ValueError: an axis is out of bounds, or occurs twice.

    Examples:

      >>> jnp.size(jnp.ones((2, 3)))
      6
      >>> jnp.size(jnp.ones((2, 3)), axis=1)
      3
    """
    lengths = getattr(a, "shape", None)
    if not isinstance(lengths, tuple):
        lengths = _shape_of_other("size", a)
    if axis is None:
        return dims.size(lengths)
    axes = [canonical_axis(i, len(lengths)) for i in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(axes)) < len(axes):
        raise ValueError(f"jnp.size: repeated axis in axis={axis}; each axis is named once")
    return dims.size([lengths[i] for i in axes])
