"""Abstract values: the types of the values in a program.

`ShapedArray` is the type of every array in a jaxpr: shape, dtype, and whether the dtype is
weak (came from a Python scalar and gives way in promotion). It has room for a sharding, a memory space and the mesh
axes over which the value varies (`vma`), which stay at their defaults on one device.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from bedrax.core import blame, config, dims, dtypes, objects, offers
from bedrax.core.codes import coded
from bedrax.core.public import public

_NO_AXES: frozenset[Any] = frozenset()
any_split: bool = False  # whether any type has had a split; until then, values are not checked


class AbstractValue:
    """Base of every type in the IR.

    Examples:

      >>> isinstance(jax.typeof(jnp.ones(3)), jax.core.AbstractValue)
      True

      >>> from jax.experimental import hijax

      >>> class Coin(hijax.AbstractValue):
      ...     def short(self):
      ...         return "coin"
      ...
      >>> toss_p = jax.extend.core.Primitive("toss_a_coin")
      >>> _ = toss_p.def_abstract_eval(lambda x: Coin())
      >>> jax.make_jaxpr(toss_p.bind)(1.)
      { lambda ; a:f32[]. let b:coin = toss_a_coin a in (b,) }
    """

    __slots__ = ()
    is_array = False
    mutable = False  # whether values of the type can be written to
    tracer_class: type | None = None  # of values in a program; None: that of arrays
    token: int | None = None  # a number that stands for the type in keys of caches; see `plain_aval`
    is_high = False  # whether a library defines the type
    represented: bool = False  # whether arrays represent its values (`lo_ty`), and programs may have such values
    split: Any = None  # of arrays: the split over explicit axes of a mesh
    has_qdd = False  # whether the state of its values changes while a program is recorded

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def to_tangent_aval(self) -> AbstractValue:
        raise TypeError(f"values of type {self} have no tangent space")

    def strip_weak_type(self) -> AbstractValue:
        return self

    def short(self) -> str:
        return str(self)

    # Methods for libraries that define types. Values of other types represent themselves.

    def lo_ty(self) -> list[AbstractValue]:
        """Return the types of the values that represent one value of this type."""
        return [self]

    def lower_val(self, value: Any) -> list[Any]:
        """Return the values that represent `value`."""
        return [value]

    def raise_val(self, *values: Any) -> Any:
        """Return the value that these values represent."""
        (value,) = values
        return value

    def row_type(self, size: Any) -> Any:
        """Return the type of one of `size` elements along the first axis."""
        raise TypeError(f"values of type {self} have no first axis")

    def rows_type(self, size: Any) -> Any:
        """Return the type of `size` values along a new first axis."""
        raise TypeError(f"values of type {self} cannot be stacked")

    def as_operand(self, value: Any) -> Any:
        """Return a Python object as an operand of an operation: a tracer, if it holds tracers."""
        return value

    def normalize(self) -> AbstractValue:
        """Return the type itself."""
        return self


def _axes(entry: Any) -> str:
    if isinstance(entry, tuple) and len(entry) == 1:
        return str(entry[0])
    return f"({','.join(map(str, entry))})" if isinstance(entry, tuple) else str(entry)


def _sets(aval: ShapedArray) -> str:
    """Return the axes over which values vary, are partial sums, or are sums: ``{V:x, U:y}``; kinds: ``U_max``."""
    sets = {"V": aval.vma}
    if aval.split is not None:
        spec = aval.split.spec
        kind = getattr(spec.unreduced_kind, "name", "sum")
        sets |= {"U" if kind == "sum" else f"U_{kind}": spec.unreduced, "R": spec.reduced}
    text = ", ".join(f"{name}:{_axes(tuple(sorted(axes, key=str)))}" for name, axes in sets.items() if axes)
    return f"{{{text}}}" if text else ""


class ShapedArray(AbstractValue):
    """The type of an array. Equality and hash cover every field; immutable.

    Args:
      shape: a sequence of dimensions.
      dtype: a dtype, or what NumPy reads as one.
      weak_type: whether the dtype gives way in promotion.
      sharding: the split of the array over explicit axes of a mesh; None: not split. The attribute `split` is the same.
      memory_space: that of a reference; None for arrays, whose shardings name it.
      vma: the axes of meshes over which values vary inside `shard_map`.
      manual_axis_type: the same as a `jax.sharding.ManualAxisType`, with partial sums; None: `vma` is read.
      layout: None: types have no layouts.

    Partial sums over explicit and over manual axes are in the spec of `split`.

    Raises:
      NotImplementedError: if `layout` is given.

    Examples:

      >>> jax.core.ShapedArray((2, 3), jnp.dtype("float32"))
      ShapedArray(float32[2,3])

      >>> from jax.experimental import hijax

      >>> kind = hijax.ShapedArray((2, 3), jnp.dtype("int8"))
      >>> kind, kind.size, kind == jax.typeof(jnp.ones((2, 3), "int8"))
      (ShapedArray(int8[2,3]), 6, True)
    """

    __slots__ = ("_hash", "dtype", "memory_space", "shape", "split", "token", "vma", "weak_type")
    is_array = True

    def __init__(
        self,
        shape: Sequence[Any],
        dtype: Any,
        weak_type: bool = False,
        *,
        sharding: Any = None,
        manual_axis_type: Any = None,
        memory_space: Any = None,
        layout: None = None,
        vma: frozenset[Any] = _NO_AXES,
    ) -> None:
        if layout is not None:
            raise NotImplementedError(
                public(
                    f"ShapedArray: types have no layouts, got {layout}; a jax.experimental.layout.Format gives the"
                    " layout of an argument or a result, as in jit(f, in_shardings=...)"
                )
            )
        self.shape: tuple[Any, ...] = shape if type(shape) is tuple else dims.canonical_shape(shape)
        self.dtype: Any = dtype if isinstance(dtype, np.dtype) else dtypes.as_dtype(dtype)
        self.weak_type: bool = weak_type
        self.split: Any | None = None if sharding is None or sharding.mesh.empty else sharding
        self.memory_space: Any = memory_space
        self.vma: frozenset[Any] | Any = vma
        if manual_axis_type is not None:
            self.vma = manual_axis_type.varying
            self.split = offers.offered("split by manual axes")(self, manual_axis_type)
        if self.split is not None:
            global any_split
            any_split = True
        self._hash = None
        self.token: int | None = None  # see `plain_aval`

    layout: None = None  # see __init__

    def __getstate__(self) -> Any:
        fields, slots = object.__getstate__(self)
        return fields, slots | {"_hash": None, "token": None}  # both are numbers of this process

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return dims.size(self.shape)

    @property
    def sharding(self) -> Any:
        return self.split or offers.offered("sharding of types", lambda *_: None)(self)

    @property
    def manual_axis_type(self) -> Any:
        return offers.offered("manual axis type")(self)

    mat = manual_axis_type

    def update(self, **changes: Any) -> ShapedArray:
        """A copy with some fields changed."""
        fields = dict(
            shape=self.shape,
            dtype=self.dtype,
            weak_type=self.weak_type,
            sharding=self.split,
            memory_space=self.memory_space,
            vma=self.vma,
        )
        return ShapedArray(**fields | changes)

    def _of_shape(self, shape: tuple, split: Any) -> ShapedArray:
        return ShapedArray(
            shape, self.dtype, self.weak_type, sharding=split, memory_space=self.memory_space, vma=self.vma
        )

    def with_axis(self, d: int, size: Any) -> ShapedArray:
        """The type of several such arrays along a new axis, which is not split."""
        split = None if self.split is None else self.split.with_dimension(d, ())
        return self._of_shape((*self.shape[:d], size, *self.shape[d:]), split)

    def without_axis(self, d: int) -> ShapedArray:
        """The type of an element along an axis."""
        split = None if self.split is None else self.split.without_dimension(d)
        return self._of_shape(self.shape[:d] + self.shape[d + 1 :], split)

    def row_type(self, size: Any) -> ShapedArray:
        return self.without_axis(0)

    def rows_type(self, size: Any) -> ShapedArray:
        return self.with_axis(0, size)

    # The same for libraries, whose types have these methods for mapping specifications of their own.

    def inc_rank(self, size: Any, spec: int | None) -> ShapedArray:
        """The type of a batch of such arrays along axis `spec`; None: the batch is one array."""
        return self if spec is None else self.with_axis(spec % (self.ndim + 1), size)

    def dec_rank(self, size: Any, spec: int | None) -> ShapedArray:
        """The type of an element along axis `spec`; None: every element is the array."""
        return self if spec is None else self.without_axis(spec % self.ndim)

    def leading_axis_spec(self) -> int:
        """The mapping over the first axis."""
        return 0

    def shard(self, mesh: Any, manual_axes: Any, check_vma: bool, spec: Any) -> ShapedArray:
        """The type of a block of such an array."""
        return offers.offered("type of a block")(self, mesh, manual_axes, check_vma, spec)

    def unshard(self, mesh: Any, check_vma: bool, spec: Any) -> ShapedArray:
        """The type of an array with such blocks."""
        return offers.offered("type of a whole array")(self, mesh, check_vma, spec)

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """Floats and complex numbers are their own tangent space; the rest has `float0`."""
        if dtypes.is_inexact(self.dtype):
            return self
        dtype = getattr(self.dtype, "tangent_dtype", dtypes.float0)  # extended dtypes may name theirs
        return ShapedArray(self.shape, dtype, sharding=self.split, vma=self.vma)

    at_least_vspace = to_tangent_aval  # the name that Distrax uses

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            type(other) is ShapedArray
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.weak_type == other.weak_type
            and self.vma == other.vma
            and self.memory_space == other.memory_space
            and self.split == other.split
        )

    def __hash__(self) -> int:
        found = self._hash
        if found is None:
            found = self._hash = hash((self.shape, self.dtype, self.weak_type, self.vma))
        return found

    def short(self) -> str:
        """The form used in jaxprs, e.g. ``f32[3,4]``, or ``f32[3@x]{V:y, U:z}``: split over `x`, varying over `y`, and
        partial sums over `z`."""
        return f"{dtypes.short_name(self.dtype)}{self._dims()}"

    def _dims(self) -> str:
        entries = [*(() if self.split is None else self.split.spec), *[None] * len(self.shape)]
        dims = [str(n) if e is None else f"{n}@{_axes(e)}" for n, e in zip(self.shape, entries, strict=False)]
        return f"[{','.join(dims)}]" + (_sets(self) if self.vma or self.split is not None else "")

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        full = "float0" if self.dtype == dtypes.float0 else str(getattr(self.dtype, "name", self.dtype))
        return f"{dtypes.short_name(self.dtype) if short_dtypes else full}{self._dims()}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __str__(self) -> str:
        return "~" * self.weak_type + self.str_short()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]


class AbstractToken(AbstractValue):
    """The type of the values that order effects.

    Examples:

      >>> from jax.extend import core

      >>> program = jax.make_jaxpr(lambda: lax.create_token())()
      >>> program
      { lambda ; . let a:Tok = create_token in (a,) }
      >>> program.out_avals[0] == core.AbstractToken()
      True
    """

    __slots__ = ()

    def to_tangent_aval(self) -> Any:
        return self

    def __eq__(self, other: object) -> bool:
        return type(other) is AbstractToken

    def __hash__(self) -> int:
        return hash(AbstractToken)

    def __repr__(self) -> str:
        return "Tok"

    short = __repr__

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return "Tok"


abstract_token: Final = AbstractToken()


class Token:
    """The one value of type `abstract_token` when operations run eagerly.

    Examples:

      >>> from jax.extend import core

      >>> token = lax.create_token()
      >>> type(token) is core.Token, jax.typeof(token)
      (True, Tok)
    """

    __slots__ = ()
    aval = abstract_token


token: Final = Token()

# The functions that return the type of a concrete value: `type -> function of the value`. Packages above
# add their array types (jaxlib's array, key arrays).
aval_functions: dict[type, Callable[[Any], AbstractValue]] = {}


_tokens = itertools.count(2)  # True == 1


@functools.lru_cache(4096)
def plain_aval(shape: tuple[int, ...], dtype: np.dtype, weak_type: bool, /) -> ShapedArray:
    """Return the type of an array on one device. Equal types are mostly the same object, so comparisons are fast.

    Its `token` stands for it in keys of caches: a number that no other type has, whose hash needs no call of Python.
    """
    # Every later type of equal sizes is this object, so a shape of NumPy integers becomes one of Python's.
    found = ShapedArray(dims.canonical_shape(shape), dtype, weak_type)
    found.token = next(_tokens)
    return found


def interned(aval: AbstractValue) -> AbstractValue:
    """Return the type as `plain_aval` returns it, if it is that of an array on one device; else the type itself."""
    if type(aval) is not ShapedArray or aval.token or aval.vma or (aval.split or aval.memory_space) is not None:
        return aval
    return plain_aval(aval.shape, aval.dtype, aval.weak_type)


def scalar_aval(dtype: np.dtype, weak_type: bool = False) -> ShapedArray:
    """Return the type of a scalar."""
    return plain_aval((), dtype, weak_type)


def _python_scalar_aval(kind: type) -> Callable[[Any], AbstractValue]:
    """Return the function for values of `kind` or of a subclass (an `IntEnum`)."""
    known = [scalar_aval(dtypes.python_scalar_dtype(kind, x64), kind is not bool) for x64 in (False, True)]

    def type_of(x):
        if kind is int:
            dtypes.check_python_int(x)
        return known[config.enable_x64.value]

    return type_of


for _type in (bool, int, float, complex):
    aval_functions[_type] = _python_scalar_aval(_type)


def _ndarray_aval(x) -> ShapedArray:
    if x.dtype.kind in "OSUMmV" and not dtypes.has_numbers(x.dtype):
        raise TypeError(coded("BX-ARRAY-OF", f"arrays hold numbers and bools, got {x!r} of dtype {x.dtype}"))
    return plain_aval(x.shape, dtypes.canonicalize_dtype(x.dtype), False)


aval_functions[np.ndarray] = _ndarray_aval
aval_functions[Token] = lambda x: abstract_token


def aval_of(x: Any) -> AbstractValue:
    """Return the type of `x`: a tracer, an array, a NumPy array or scalar, or a Python scalar.

    Raises:
      TypeError: `x` is none of these.
    """
    try:
        found = aval_functions[type(x)]
    except KeyError:
        return _aval_of_other(x)
    return found(x)


def _aval_of_other(x: Any) -> AbstractValue:
    """Return `aval_of` of a value whose class is new."""
    aval = getattr(x, "aval", None)
    if isinstance(aval, AbstractValue):
        return aval
    if isinstance(x, np.generic):  # before the loop: np.float64 is a subclass of float
        aval_functions[type(x)] = _ndarray_aval
        return _ndarray_aval(x)
    if hasattr(x, "mask") and isinstance(x, np.ma.MaskedArray):
        raise ValueError("masked arrays have no counterpart here: pass x.filled(value), or x.data and x.mask")
    for cls, function in list(aval_functions.items()):
        if isinstance(x, cls):
            aval_functions[type(x)] = function
            return function(x)
    if hasattr(x, "__jax_array__"):
        return aval_of(x.__jax_array__())
    # The documents quote the last words, among the questions about jit.
    text = f"{x!r} of type {type(x)} is not a valid JAX type"
    if isinstance(x, list | tuple | dict | str | bytes):
        raise blame.not_an_array(x, text, otherwise=True)
    raise TypeError(coded("BX-VALUE-TYPE", text))


def typeof(x: Any) -> AbstractValue:
    """Return the type of a value: a `ShapedArray` for arrays, tracers and scalars.

    Examples:

      >>> jax.typeof(jnp.ones((2, 3)))
      ShapedArray(float32[2,3])
      >>> jax.typeof(1)
      ShapedArray(int32[], weak_type=True)
    """
    found = objects.kinds.get(type(x))
    return aval_of(x) if found is None else found.typeof(x)


def is_valid_value(x: Any) -> bool:
    """Return whether `x` can be an operand of a primitive."""
    try:
        aval_of(x)
    except (TypeError, OverflowError):
        return False
    return True


class ShapeDtypeStruct:
    """The type of an array, as an argument of functions that read only types (`eval_shape`, `jit(f).lower`).

    Args:
      shape: sequence of dimensions.
      dtype: a dtype or anything that NumPy reads as one.
      sharding: optional placement.
      weak_type: whether the dtype gives way in promotion.
      manual_axis_type: optional, over which mesh axes the values differ inside `shard_map`.
      is_ref: whether it is the type of a reference to such an array.
      _memory_space: None or ``jax.memory.Space.Device``: the memory of an array is part of `sharding`.

    Raises:
      ValueError: if there is no dtype.
      NotImplementedError: if `_memory_space` is another one, or no package with references is installed.

    Examples:

      >>> spec = jax.ShapeDtypeStruct((2, 3), jnp.float32)
      >>> jax.eval_shape(jnp.transpose, spec)
      ShapeDtypeStruct(shape=(3, 2), dtype=float32)
      >>> jax.typeof(jax.ShapeDtypeStruct((3,), jnp.float32, is_ref=True))
      Ref{float32[3]}
    """

    __slots__ = ("dtype", "is_ref", "manual_axis_type", "shape", "sharding", "weak_type")

    def __init__(
        self,
        shape: Sequence[Any],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: Any = None,
        is_ref: bool = False,
        _memory_space: Any = None,
    ) -> None:
        if _memory_space is not None and getattr(_memory_space, "name", None) != "Device":
            raise NotImplementedError(
                f"ShapeDtypeStruct: the memory of an array is part of its sharding, got {_memory_space}; give a sharding with"
                " that memory_kind"
            )
        if dtype is None:
            raise ValueError(
                f"ShapeDtypeStruct needs a dtype, got None for shape {shape}; pass one, such as jnp.float32"
            )
        self.shape: tuple[Any, ...] = dims.canonical_shape(shape)
        self.dtype: Any = dtype if isinstance(dtype, dtypes.ExtendedDType) else dtypes.as_dtype(dtype)
        self.sharding: Any = sharding
        self.weak_type: bool = weak_type
        self.manual_axis_type: Any = manual_axis_type
        self.is_ref: bool = is_ref
        if is_ref and offers.target("type of references") is None:
            raise NotImplementedError(
                "ShapeDtypeStruct(is_ref=True): no installed package has references; install bedrax-state"
            )

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """Return the struct of `x`: an array, a scalar, a reference, or an object with a shape and a dtype."""
        aval = abstractify(x)
        place = getattr(x, "split", getattr(x, "sharding", aval.split))
        return cls(aval.shape, aval.dtype, sharding=place, weak_type=aval.weak_type, is_ref=aval.mutable)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return dims.size(self.shape)

    @property
    def is_fully_addressable(self) -> bool:
        return self.sharding is None or self.sharding.is_fully_addressable

    @property
    def aval(self) -> Any:
        found = ShapedArray(self.shape, self.dtype, self.weak_type, manual_axis_type=self.manual_axis_type)
        tells = getattr(self.sharding, "sharding_of_type", None)
        found = found if tells is None else found.update(sharding=tells(found))
        return offers.offered("type of references")(found) if self.is_ref else found

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with some fields changed."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        fields.update(changes)
        return ShapeDtypeStruct(**fields)

    def __repr__(self) -> str:
        parts = [f"shape={self.shape}", f"dtype={getattr(self.dtype, 'name', self.dtype)}"]
        if self.sharding is not None:
            parts.append(f"sharding={self.sharding}")
        parts += ["weak_type=True"] * self.weak_type
        if self.manual_axis_type is not None:
            parts.append(f"manual_axis_type={self.manual_axis_type}")
        parts += ["is_ref=True"] * self.is_ref
        return f"ShapeDtypeStruct({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def _fields(self) -> tuple:
        return self.shape, self.dtype, self.sharding, self.weak_type, self.manual_axis_type, self.is_ref


def struct_of(aval: Any) -> Any:
    """Return the struct of an array or a reference of a type, with the sharding if it has one; a library's type itself."""
    if aval.represented:
        return aval
    place = getattr(aval, "split", None)
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=place, weak_type=aval.weak_type, is_ref=aval.mutable)


def abstractify(x: Any) -> AbstractValue:
    """Return `aval_of(x)`. `x` may also be an object with a shape and a dtype, which has 32 bits without x64, or a type
    of a library that arrays represent."""
    if isinstance(x, ShapeDtypeStruct):
        dtype = dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True)
        return (x if dtype == x.dtype else x.update(dtype=dtype)).aval
    try:
        return aval_of(x)
    except TypeError:
        if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, np.ndarray | np.generic):
            dtype = dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True)
            return ShapedArray(dims.canonical_shape(x.shape), dtype, getattr(x, "weak_type", False))
        if isinstance(x, AbstractValue) and x.represented:
            return x
        raise


def check_value(x: Any) -> None:
    """Raise TypeError if `x` is the type of an array, where the array is needed."""
    if isinstance(x, ShapeDtypeStruct):
        raise TypeError(f"{x} is the type of an array and has no value; give an array of this type")
