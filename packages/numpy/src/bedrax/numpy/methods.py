"""The NumPy methods of arrays: `x[...]`, `x.at`, `x.sum()`, `x.T`..., installed on every kind of array."""

from __future__ import annotations

import importlib
from typing import Any

import bedrax.numpy as jnp
import numpy as np
from bedrax import lax
from bedrax.core import array, dtypes, offers
from bedrax.core.array import Array
from bedrax.core.codes import coded
from bedrax.lax.choices import one_of
from bedrax.lax.operators import equal
from bedrax.lax.operators import operator as _operator
from bedrax.numpy import dtype_queries, indexing, manipulation, reductions, selection, ufuncs
from bedrax.numpy.products import matmul
from bedrax.numpy.updates import At

# Methods that are the function of the same name in a module of this package.
_BY_NAME = {
    "reductions": "all any argmax argmin max mean min prod ptp std sum var",
    "cumulative": "cumprod cumsum",
    "manipulation": "ravel repeat squeeze swapaxes",
    "selection": "choose",
    "diagonals": "diagonal",
    "searching": "nonzero take",
    "sorting": "argpartition argsort searchsorted sort",
    "products": "dot trace",
}


def _lazy(module: str, name: str):
    """A method that finds its function on first use, so that importing this package loads little."""
    function = None

    def method(self, *args, **kwargs):
        nonlocal function
        if function is None:
            function = getattr(importlib.import_module(f"{__package__}.{module}"), name)
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    method.__doc__ = f"`jax.numpy.{name}` of this array."
    return method


def _astype(self, dtype: Any, copy: bool = False, device: Any = None) -> Array:
    """This array converted to another dtype."""
    return dtype_queries.astype(self, dtype, copy=copy, device=device)


def _reshape(self, *args: Any, order: str = "C", out_sharding: Any = None) -> Array:
    """The elements in another shape, given as one sequence or as several ints."""
    shape = args[0] if len(args) == 1 else args
    return manipulation.reshape(self, shape, order, out_sharding=out_sharding)


def _transpose(self, *args: Any) -> Array:
    """The axes in another order, given as one sequence or as several ints; none: reversed."""
    if not args or args == (None,):
        return manipulation.transpose(self)
    return manipulation.transpose(self, args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args)


def _flatten(self, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements along one axis."""
    return manipulation.ravel(self, order, out_sharding=out_sharding)


def _clip(self, min: Any = None, max: Any = None) -> Array:
    """The elements limited to a range."""
    return selection.clip(self, min, max)


def _round(self, decimals: int = 0, out: None = None) -> Array:
    """The elements rounded to a number of digits after the point."""
    return ufuncs.round(self, decimals, out)


def _round_builtin(self, ndigits: int | None = None) -> Array:
    if ndigits is None:
        rounded = ufuncs.round(self)
        return rounded if dtypes.is_complex(self.dtype) else lax.convert_to(rounded, dtypes.default_int_dtype())
    return ufuncs.round(self, ndigits)


def _compress(self, condition: Any, *args: Any, **kwargs: Any) -> Array:
    """The slices along an axis where a condition is true."""
    return jnp.compress(condition, self, *args, **kwargs)


def _conjugate(self) -> Array:
    """The complex conjugate."""
    return ufuncs.conjugate(self)


def _copy(self) -> Array:
    """A new array with the same elements."""
    return lax.copy_p.bind(self)


def _view(self, dtype: Any = None, type: None = None) -> Array:
    """The bytes of this array read as another dtype; the last axis changes length where sizes differ."""
    if type is not None:
        raise NotImplementedError(f"x.view: there are no other classes of arrays, got type={type!r}")
    return view(self, dtype)


def view(x: Any, dtype: Any) -> Array:
    """See `Array.view`."""
    dtype = dtypes.default_float_dtype() if dtype is None else dtypes.explicit_dtype(dtype, "view")
    own = x.dtype
    if own == dtype:
        return x
    old_bits = 8 if own == np.bool_ else dtypes.itemsize_bits(own)
    new_bits = 8 if dtype == np.bool_ else dtypes.itemsize_bits(dtype)
    if old_bits != new_bits:
        if not x.ndim:
            raise ValueError(
                f"view() of an array of rank 0 must keep the size of its elements, got {own} as {dtype}; add an axis first"
            )
        if old_bits < new_bits and x.shape[-1] % (new_bits // old_bits):
            raise ValueError(f"view(): the last axis of shape {x.shape} does not hold whole elements of dtype {dtype}")
    # There is no bit cast of bool and complex numbers: read them as integers and as floats.
    if own == np.bool_:
        x = lax.convert_element_type(x, np.uint8)
    elif dtypes.is_complex(own):
        real = dtypes.to_real_dtype(own)
        x = lax.stack([lax.real(x), lax.imag(x)], x.ndim)
        x = lax.reshape(x, (*x.shape[:-2], x.shape[-2] * 2)) if x.ndim > 1 else x
        if real == dtype and x.ndim:
            return x
        return view(x, dtype)
    if dtypes.is_complex(dtype):
        real = dtypes.to_real_dtype(dtype)
        if not x.ndim:
            raise ValueError(
                f"view() of an array of rank 0 as a complex dtype needs complex elements, got {own} as {dtype}"
            )
        parts = view(x, real)
        parts = lax.reshape(parts, (*parts.shape[:-1], parts.shape[-1] // 2, 2))
        return lax.complex(
            lax.index_in_dim(parts, 0, -1, keepdims=False), lax.index_in_dim(parts, 1, -1, keepdims=False)
        )
    target = np.dtype(np.uint8) if dtype == np.bool_ else dtype
    if old_bits < new_bits:
        x = lax.reshape(x, (*x.shape[:-1], x.shape[-1] // (new_bits // old_bits), new_bits // old_bits))
        x = lax.bitcast_convert_type(x, target)
    elif old_bits > new_bits:
        x = lax.bitcast_convert_type(x, target)
        x = lax.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))
    else:
        x = lax.bitcast_convert_type(x, target)
    return lax.ne(x, np.uint8(0)) if dtype == np.bool_ else x


def _byteswap(self) -> Array:
    """The elements with their bytes in reverse order."""
    if self.dtype.itemsize == 1:
        return self
    if dtypes.is_complex(self.dtype):
        return lax.complex(_byteswap(lax.real(self)), _byteswap(lax.imag(self)))
    parts = lax.bitcast_convert_type(self, np.uint8)
    return lax.bitcast_convert_type(lax.rev(parts, (parts.ndim - 1,)), self.dtype)


def _tobytes(self, order: str = "C") -> bytes:
    """The bytes of the elements; needs a concrete value."""
    return np.asarray(self).tobytes(order)


def _setitem(self, i: Any, x: Any):
    raise TypeError(
        coded(
            "BX-IMMUTABLE",
            "arrays are immutable: instead of x[i] = y write x = x.at[i].set(y), or another method of x.at[i]",
        )
    )


def _contains(self, other: Any) -> bool:
    return bool(reductions.any(equal(self, other)))


def _array_namespace(self, *, api_version: str | None = None):
    """The module with the functions of the array API standard for this array."""
    one_of("__array_namespace__", "api_version", api_version, (None, "2021.12", "2022.12", "2023.12", "2024.12"))
    return offers.offered("array namespace") or jnp


def _module_protocol(self, types: Any):
    """NumPy's dispatch to the module of an argument (NEP 37)."""
    if all(issubclass(t, (Array, np.ndarray)) or t in (int, float, complex, bool) for t in types):
        return jnp
    return NotImplemented


def _no_flat(self):
    raise NotImplementedError("array.flat is not supported; use array.ravel() or iterate over array.reshape(-1)")


METHODS: dict[str, Any] = {
    "__getitem__": indexing.getitem,
    "__setitem__": _setitem,
    "__contains__": _contains,
    "__matmul__": _operator(matmul, "__matmul__"),
    "__rmatmul__": _operator(matmul, "__rmatmul__", True),
    "__round__": _round_builtin,
    "__array_namespace__": _array_namespace,
    "__array_module__": _module_protocol,
    "astype": _astype,
    "reshape": _reshape,
    "transpose": _transpose,
    "flatten": _flatten,
    "clip": _clip,
    "compress": _compress,
    "round": _round,
    "conj": _conjugate,
    "conjugate": _conjugate,
    "copy": _copy,
    "view": _view,
    "byteswap": _byteswap,
    "tobytes": _tobytes,
    "at": property(At, doc="Index it to change elements: ``x.at[idx].set(y)``. See `Update`."),
    "T": property(manipulation.transpose, doc="The axes in reverse order."),
    "mT": property(manipulation.matrix_transpose, doc="The last two axes exchanged."),
    "real": property(ufuncs.real, doc="The real parts."),
    "imag": property(ufuncs.imag, doc="The imaginary parts."),
    "flat": property(_no_flat),
}
METHODS.update({n: _lazy(module, n) for module, names in _BY_NAME.items() for n in names.split()})

array.install_methods(METHODS)
