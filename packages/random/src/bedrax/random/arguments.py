"""Reading the arguments that samplers share: shapes, dtypes, placements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core import blame, dims, dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded


def shape_of(shape: Any) -> tuple[Any, ...]:
    """A shape argument as a tuple.

    Raises:
      ValueError: a size is negative.
    """
    shape = dims.canonical_shape(shape)
    for n in shape:
        if type(n) is int and n < 0:
            raise ValueError(coded("BX-NEGATIVE-SIZE", f"shapes have no negative sizes, got {shape}"))
    return shape


def _dtype(name: str, dtype: Any, ok: Callable, kind: str):
    if dtype is None:
        return dtypes.default_float_dtype()
    found = dtypes.explicit_dtype(dtype, name)
    if not ok(found):
        raise ValueError(coded("BX-SAMPLE-DTYPE", f"{name}: dtype is {kind} dtype, got {found}"))
    return found


def float_dtype(name: str, dtype: Any) -> np.dtype:
    """A dtype argument that must be a float; None: the default one."""
    return _dtype(name, dtype, dtypes.is_floating, "a float")


def inexact_dtype(name: str, dtype: Any) -> np.dtype:
    """A dtype argument that must be a float or complex; None: the default float."""
    return _dtype(name, dtype, dtypes.is_inexact, "a float or complex")


def int_dtype(name: str, dtype: Any) -> np.dtype:
    """A dtype argument that must be an integer; None: the default one."""
    found = dtypes.default_int_dtype() if dtype is None else dtypes.explicit_dtype(dtype, name)
    if not dtypes.is_integer(found):
        raise ValueError(coded("BX-SAMPLE-DTYPE", f"{name}: dtype is an integer dtype, got {found}"))
    return found


def joint_shape(shape: Any, *parameters: Any) -> tuple[Any, ...]:
    """The shape of samples. The parameters must broadcast to a given shape; None: their joint shape.

    Raises:
      ValueError: the parameters do not broadcast.
    """
    shapes = [aval_of(p).shape for p in parameters]
    if shape is None:
        return lax.broadcast_shapes(*shapes)
    shape = shape_of(shape)
    for given in shapes:
        if given and lax.broadcast_shapes(shape, given) != shape:
            raise ValueError(f"parameters of shapes {shapes} do not broadcast to the shape of the samples, {shape}")
    return shape


def parameter(name: str, x: Any) -> Any:
    """A parameter of a sampler: an array, or a number.

    Raises:
      TypeError: it is neither.
    """
    if hasattr(x, "__jax_array__"):
        x = x.__jax_array__()
    try:
        aval_of(x)
    except TypeError:
        raise blame.not_an_array(x, name) from None
    return x


def as_dtype(x: Any, dtype: np.dtype) -> Array:
    """A parameter as an array (or NumPy scalar) of `dtype`."""
    if isinstance(x, (bool, int, float, complex, np.generic, np.ndarray)):
        return np.asarray(x).astype(dtype)
    return lax.convert_element_type(x, dtype)


def broadcast_to(x: Any, shape: tuple[Any, ...]) -> Array:
    """`x` broadcast to `shape` as NumPy does."""
    own = aval_of(x).shape
    if own == shape:
        return x
    kept, offset = [], len(shape) - len(own)
    ones = tuple(
        i for i, n in enumerate(own) if dims.definitely_equal(n, 1) and not dims.definitely_equal(shape[i + offset], 1)
    )
    if ones:
        x = lax.squeeze(x, ones)
    kept = [i + offset for i in range(len(own)) if i not in ones]
    return lax.broadcast_in_dim(x, shape, kept)
