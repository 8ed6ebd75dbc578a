"""Dtypes of libraries: their elements are represented by numbers, with their own rules for tangents and sums.

`PrimalTangentDType` has numbers of one dtype, with tangents of another one. A library derives other dtypes from
`ElementDType` and defines their rules in `_rules`. (Flax does so for the scales of its 8-bit floats: their cotangents
are added by `max`.) Operations that move elements run on the arrays that represent them, as for arrays of keys
(`bedrax.lax.element_types`). Only a conversion reads the numbers.
"""

from __future__ import annotations

import copy
import operator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import bedrax.batching  # noqa: F401  # the operations that move elements
from bedrax import lax, pytree
from bedrax.autodiff.tables import Zero, jvp_rules, transpose_rules
from bedrax.batching.tables import batch_rules
from bedrax.core import avals, dtypes, executors
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.tracing import Primitive
from bedrax.core.typing import DTypeLike
from bedrax.lax.tables import decompositions
from bedrax.parallel.explicit import sharding_rules

__all__ = [
    "EArray",
    "ElementDType",
    "PrimalTangentDType",
    "from_edtype_p",
    "primal_tangent_dtype",
    "supports_inf",
    "to_edtype_p",
]


class ElementDType(dtypes.ExtendedDType):
    """Base of the dtypes of libraries.

    `_rules` has for a dtype `dt`: ``physical_element_aval(dt)``, the type that represents an element;
    ``tangent_dtype(dt)``; conversions, with ``allow_conversion`` or ``convert_from(dt, other)`` and
    ``convert_to(other, dt)``; and, if they differ from those of the numbers, ``add(dt, x, y)`` and ``zero(dt)``.
    """

    type: type = dtypes.extended
    _rules: Any

    _element = property(lambda self: self._rules.physical_element_aval(self))

    @property
    def element_shape(self) -> Any:
        return tuple(self._element.shape)

    @property
    def element_dtype(self) -> Any:
        return np.dtype(self._element.dtype)

    @property
    def itemsize(self) -> Any:
        return self._element.size * self.element_dtype.itemsize

    @property
    def tangent_dtype(self) -> Any:
        return self._rules.tangent_dtype(self)

    @staticmethod
    def physical_value(x: EArray) -> Any:
        """The array that represents an array of this dtype."""
        return x._data

    @staticmethod
    def from_physical(base: Any, aval: ShapedArray) -> EArray:
        """The array of type `aval` that `base` represents."""
        return EArray(aval, base)

    def filled(self, shape: Any, value: Any) -> Any:
        """An array of this dtype whose elements consist of one number. Zeros are the sum of no elements."""
        zero = getattr(self._rules, "zero", None)
        if zero is None or not isinstance(value, (int, float)) or value:
            return to_edtype_p.bind(lax.full((*shape, *self.element_shape), value, self.element_dtype), edtype=self)
        return lax.broadcast_in_dim(zero(self), shape, ())

    def sum_of(self, x: Any, y: Any) -> Any:
        """The sum of two cotangents of this dtype."""
        add = getattr(self._rules, "add", None)
        if add is not None:
            return add(self, x, y)
        return to_edtype_p.bind(lax.add(*map(from_edtype_p.bind, (x, y))), edtype=self)

    def converted(self, x: Any, dtype: Any) -> Any:
        """`x`, of this dtype or another, as an array of `dtype`, another or this one.

        Raises:
          TypeError: the rules allow no such conversion.
        """
        other = aval_of(x).dtype if dtype == self else dtype
        way = "convert_to" if dtype == self else "convert_from"
        permits = getattr(self._rules, way, None)
        pair = (other, self) if dtype == self else (self, other)
        allowed = other == self.element_dtype and getattr(self._rules, "allow_conversion", permits and permits(*pair))
        if not allowed:
            raise TypeError(
                f"convert_element_type: from {aval_of(x).dtype} to {dtype}; values of dtype {self} are converted from and to"
                f" {self.element_dtype}, which represents them"
            )
        return to_edtype_p.bind(x, edtype=self) if dtype == self else from_edtype_p.bind(x)


class _PrimalTangentRules:
    allow_conversion = True
    physical_element_aval = staticmethod(lambda dt: ShapedArray((), dt.primal_dtype))
    tangent_dtype = staticmethod(lambda dt: dt._tangent_dtype)


class PrimalTangentDType(ElementDType):
    """Numbers of one dtype whose tangents have another; see `primal_tangent_dtype`."""

    __slots__ = ("_tangent_dtype", "name", "primal_dtype")
    _rules = _PrimalTangentRules

    def __init__(self, primal_dtype: np.dtype, tangent_dtype: np.dtype, name: str) -> None:
        self.primal_dtype: np.dtype = primal_dtype
        self._tangent_dtype = tangent_dtype
        self.name: str = name

    def _key(self) -> tuple:
        return self.primal_dtype, self._tangent_dtype, self.name

    def __eq__(self, other: object) -> bool:
        return type(other) is PrimalTangentDType and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return PrimalTangentDType, self._key()


def primal_tangent_dtype(primal_dtype: Any, tangent_dtype: Any, name: str | None = None) -> PrimalTangentDType:
    """A dtype of numbers with tangents of another dtype, such as 8-bit integers with tangents that are floats.

    Arrays can be converted from and to `primal_dtype`, and their elements can be moved; there is no arithmetic on them.

    Args:
      primal_dtype, tangent_dtype: the dtypes of the numbers, and of their tangents.
      name: the printed name. Default: a name made of both dtypes.

    Examples:

      >>> dtype = jax.experimental.primal_tangent_dtype(jnp.int8, jnp.bfloat16)
      >>> dtype
      PrimalTangentDType{i8/bf16}
      >>> weights = jnp.arange(3, dtype=jnp.int8).astype(dtype)
      >>> _, pullback = jax.vjp(lambda w: w[::-1], weights)
      >>> pullback(jnp.arange(3, dtype=jnp.bfloat16))
      (Array([2, 1, 0], dtype=bfloat16),)
    """
    primal, tangent = (dtypes.canonicalize_dtype(dtypes.as_dtype(d)) for d in (primal_dtype, tangent_dtype))
    shown = name or f"PrimalTangentDType{{{dtypes.short_name(primal)}/{dtypes.short_name(tangent)}}}"
    return PrimalTangentDType(primal, tangent, shown)


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype of floats has infinities; some 8-bit floats have none."""
    with np.errstate(all="ignore"):
        return bool(np.isinf(np.array(np.inf, np.float32).astype(dtype)))


# ---- conversions: the identity on the arrays that represent the elements


to_edtype_p: Final = Primitive("to_edtype")
from_edtype_p: Final = Primitive("from_edtype")


@to_edtype_p.abstract
def _to_type(x, *, edtype):
    n = len(x.shape) - len(edtype.element_shape)
    if x.dtype != edtype.element_dtype or n < 0 or x.shape[n:] != edtype.element_shape:
        raise TypeError(
            f"to_edtype: elements of {edtype} are {edtype.element_dtype}{list(edtype.element_shape)}, got {x}"
        )
    return ShapedArray(x.shape[:n], edtype, vma=x.vma)


@from_edtype_p.abstract
def _from_type(x):
    if not isinstance(x.dtype, ElementDType):
        raise TypeError(f"from_edtype takes an array of a library's dtype, got {x}")
    return ShapedArray((*x.shape, *x.dtype.element_shape), x.dtype.element_dtype, vma=x.vma)


to_edtype_p.def_impl(lambda x, *, edtype: EArray(_to_type(aval_of(x), edtype=edtype), executors.get().asarray(x)))
from_edtype_p.def_impl(lambda x: x._data)
decompositions.add(to_edtype_p, lambda x, *, edtype: x)
decompositions.add(from_edtype_p, lambda x: x)


sharding_rules.add(to_edtype_p, lambda op, *, edtype: op.specs[0][: len(op.outs[0].shape)])
sharding_rules.add(from_edtype_p, lambda op: op.specs[0] + (None,) * (len(op.outs[0].shape) - len(op.specs[0])))
batch_rules.add(to_edtype_p, lambda axis, args, dims, *, edtype: (to_edtype_p.bind(*args, edtype=edtype), dims[0]))
batch_rules.add(from_edtype_p, lambda axis, args, dims: (from_edtype_p.bind(*args), dims[0]))


def _tangent_as(t: Any, out: Any) -> Any:
    """The tangent of a converted value, from the tangent of the operand of the conversion."""
    wanted = aval_of(out).to_tangent_aval()
    if type(t) is Zero or wanted.dtype == dtypes.float0:
        return Zero(wanted)
    return lax.convert_element_type(t, wanted.dtype)


@jvp_rules.rule(to_edtype_p)
def _jvp_to(primals, tangents, *, edtype):
    out = to_edtype_p.bind(*primals, edtype=edtype)
    return out, _tangent_as(tangents[0], out)


@jvp_rules.rule(from_edtype_p)
def _jvp_from(primals, tangents):
    out = from_edtype_p.bind(*primals)
    return out, _tangent_as(tangents[0], out)


transpose_rules.add(to_edtype_p, lambda ct, x, *, edtype: [from_edtype_p.bind(ct)])
transpose_rules.add(from_edtype_p, lambda ct, x: [to_edtype_p.bind(ct, edtype=x.aval.dtype)])


# ---- values


def _of_data(name: str) -> property:
    return property(lambda self: getattr(self._data, name), doc=f"`{name}` of the array that represents this one.")


class EArray(Array):
    """An array of a library's dtype: its type, and the array of numbers that represents it.

    Examples:

      >>> dtype = jax.experimental.primal_tangent_dtype(jnp.int8, jnp.bfloat16)
      >>> x = jnp.arange(3, dtype=jnp.int8).astype(dtype)
      >>> isinstance(x, jax.experimental.EArray), x.shape
      (True, (3,))
      >>> x[1:].astype(jnp.int8)
      Array([1, 2], dtype=int8)
    """

    __slots__ = ("_data", "aval")

    def __init__(self, aval: ShapedArray, data: Any) -> None:
        self.aval: ShapedArray = aval
        self._data = data

    @property
    def shape(self) -> Any:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def nbytes(self) -> Any:
        return self.aval.size * self.aval.dtype.itemsize

    if not TYPE_CHECKING:
        sharding, device, _committed, committed = map(_of_data, ("sharding", "device", "_committed", "committed"))
        is_fully_addressable, is_fully_replicated = map(_of_data, ("is_fully_addressable", "is_fully_replicated"))
        devices, is_deleted, delete, copy_to_host_async, on_device_size_in_bytes, unsafe_buffer_pointer = map(
            _of_data,
            "devices is_deleted delete copy_to_host_async on_device_size_in_bytes unsafe_buffer_pointer".split(),
        )

    def block_until_ready(self) -> EArray:
        """Wait for the end of its computation. Returns the array."""
        self._data.block_until_ready()
        return self

    def addressable_data(self, index: int) -> EArray:
        """The part on one of the devices of this process."""
        part = self._data.addressable_data(index)
        rank = len(self.aval.shape)
        return EArray(self.aval.update(shape=part.shape[:rank]), part)

    def copy(self) -> EArray:
        """A copy in a new buffer."""
        return EArray(self.aval, copy.copy(self._data))

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        return EArray, (self.aval, self._data)

    def __array__(self, dtype: DTypeLike | None = None, copy: Any = None) -> np.ndarray[Any, Any]:
        raise TypeError(
            f"an array of dtype {self.aval.dtype} is none of NumPy's; convert it to {self.aval.dtype.element_dtype} first"
        )

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __repr__(self) -> str:
        return f"EArray({np.asarray(self._data)}, dtype={self.aval.dtype})"


avals.aval_functions[EArray] = operator.attrgetter("aval")
pytree.dispatch_registry.register_node(
    EArray, lambda x: ((x._data,), x.aval), lambda aval, data: EArray(aval, *data), None
)
