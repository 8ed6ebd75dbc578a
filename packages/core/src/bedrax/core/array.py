"""`Array`: the base class of array values and of tracers.

Operators and methods live in one place for all of them: `install_methods` puts a function
on `Array` (which tracers and the arrays of our own backends inherit) and on every foreign array
type that a backend has registered with `add_array_type`. The layers above define them. Until the first use, a descriptor
stands for each method and operator. It imports the module that the layer offers (`bedrax.core.offers`).
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax.core import offers

if TYPE_CHECKING:
    from bedrax.core.typing import ArrayAt, ArrayLike, Axis, DTypeLike, ShapeLike

_foreign_types: dict[type, frozenset[str]] = {}  # with the names that each type defines itself
_installed: dict[str, Any] = {}
no_arrays: set[type] = set()  # tracers of values that are not arrays, and classes of libraries' values


class _ArrayMeta(type):
    def __instancecheck__(cls, x: object) -> bool:
        kind = type(x)
        if cls is Array:
            if kind in _foreign_types or type.__subclasscheck__(cls, kind):
                return kind not in no_arrays
        elif issubclass(kind, cls):
            return True
        named = x.__class__  # of a mock, the class that it stands for
        return named is not kind and isinstance(named, type) and issubclass(named, cls)

    def __subclasscheck__(cls, kind: type) -> bool:
        return type.__subclasscheck__(cls, kind) or (cls is Array and kind in _foreign_types)


class Array(metaclass=_ArrayMeta):
    """Base class of array values and of the tracers that represent them.

    Users test with ``isinstance(x, jax.Array)``; instances come from functions such as
    ``jax.numpy.array``, never from this class.

    Examples:

      >>> x = jnp.arange(3)
      >>> isinstance(x, jax.Array), isinstance(np.arange(3), jax.Array)
      (True, False)
      >>> x.at[1].set(10)
      Array([ 0, 10,  2], dtype=int32)

      >>> from jax.experimental import rnn

      >>> isinstance(jax.random.key(0), rnn.PRNGKeyArray), isinstance("a key", rnn.PRNGKeyArray)
      (True, False)
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 100
    __hash__: None  # type: ignore[assignment]
    __hash__ = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # every kind of array has its own
        from bedrax.core.public import public  # `import jax` does without it

        raise TypeError(public("Array is abstract; jax.numpy.array and asarray make arrays"))

    # The properties below read the aval, and so work for tracers, too. `attrgetter` adds no frame of Python.
    if not TYPE_CHECKING:
        shape = property(operator.attrgetter("aval.shape"))
        dtype = property(operator.attrgetter("aval.dtype"))
        weak_type = property(operator.attrgetter("aval.weak_type"))
        ndim = property(lambda self: len(self.aval.shape))
        size = property(operator.attrgetter("aval.size"))
        itemsize = property(operator.attrgetter("aval.dtype.itemsize"))
        nbytes = property(lambda self: self.aval.size * self.aval.dtype.itemsize)

    def __len__(self) -> int:
        return len(self.aval)

    def item(self, *args: int) -> Any:
        """The element (at `args`) as a Python scalar; needs a concrete value."""
        return np.asarray(self).item(*args)

    if TYPE_CHECKING:  # the types of the installed methods, for type checkers

        @property
        def shape(self) -> tuple[int, ...]:
            """The lengths of the axes."""
            ...

        @property
        def dtype(self) -> np.dtype[Any]:
            """The dtype of the elements."""
            ...

        @property
        def weak_type(self) -> bool:
            """Whether the dtype gives way in promotion, as that of a Python scalar does."""
            ...

        @property
        def ndim(self) -> int:
            """The number of axes."""
            ...

        @property
        def size(self) -> int:
            """The number of elements."""
            ...

        @property
        def itemsize(self) -> int:
            """The number of bytes of an element."""
            ...

        @property
        def nbytes(self) -> int:
            """The number of bytes of all elements."""
            ...

        @property
        def aval(self) -> Any:
            """The type of the array, a `ShapedArray`."""
            ...

        @property
        def T(self) -> Array:
            """The axes in reverse order."""
            ...

        @property
        def mT(self) -> Array:
            """The last two axes exchanged."""
            ...

        @property
        def real(self) -> Array:
            """The real parts."""
            ...

        @property
        def imag(self) -> Array:
            """The imaginary parts."""
            ...

        @property
        def at(self) -> ArrayAt:
            """Index it to change elements: ``x.at[idx].set(y)``."""
            ...

        @property
        def sharding(self) -> Any:
            """The sharding of the elements over devices."""
            ...

        @property
        def device(self) -> Any:
            """The device, or the sharding where there are several devices."""
            ...

        @property
        def committed(self) -> bool:
            """Whether the array stays on its devices when it meets others."""
            ...

        @property
        def is_fully_addressable(self) -> bool:
            """Whether this process holds all elements."""
            ...

        @property
        def is_fully_replicated(self) -> bool:
            """Whether each device holds all elements."""
            ...

        @property
        def addressable_shards(self) -> list[Any]:
            """The parts that this process holds."""
            ...

        @property
        def global_shards(self) -> list[Any]:
            """The parts of all processes."""
            ...

        @property
        def format(self) -> Any:
            """The sharding and the layout in memory."""
            ...

        def __eq__(self, other: Any, /) -> Array: ...  # type: ignore[override]  # elementwise, as in NumPy
        def __ne__(self, other: Any, /) -> Array: ...  # type: ignore[override]  # elementwise, as in NumPy
        def __add__(self, other: ArrayLike, /) -> Array: ...
        def __radd__(self, other: ArrayLike, /) -> Array: ...
        def __sub__(self, other: ArrayLike, /) -> Array: ...
        def __rsub__(self, other: ArrayLike, /) -> Array: ...
        def __mul__(self, other: ArrayLike, /) -> Array: ...
        def __rmul__(self, other: ArrayLike, /) -> Array: ...
        def __truediv__(self, other: ArrayLike, /) -> Array: ...
        def __rtruediv__(self, other: ArrayLike, /) -> Array: ...
        def __floordiv__(self, other: ArrayLike, /) -> Array: ...
        def __rfloordiv__(self, other: ArrayLike, /) -> Array: ...
        def __mod__(self, other: ArrayLike, /) -> Array: ...
        def __rmod__(self, other: ArrayLike, /) -> Array: ...
        def __pow__(self, other: ArrayLike, /) -> Array: ...
        def __rpow__(self, other: ArrayLike, /) -> Array: ...
        def __matmul__(self, other: ArrayLike, /) -> Array: ...
        def __rmatmul__(self, other: ArrayLike, /) -> Array: ...
        def __and__(self, other: ArrayLike, /) -> Array: ...
        def __rand__(self, other: ArrayLike, /) -> Array: ...
        def __or__(self, other: ArrayLike, /) -> Array: ...
        def __ror__(self, other: ArrayLike, /) -> Array: ...
        def __xor__(self, other: ArrayLike, /) -> Array: ...
        def __rxor__(self, other: ArrayLike, /) -> Array: ...
        def __lshift__(self, other: ArrayLike, /) -> Array: ...
        def __rlshift__(self, other: ArrayLike, /) -> Array: ...
        def __rshift__(self, other: ArrayLike, /) -> Array: ...
        def __rrshift__(self, other: ArrayLike, /) -> Array: ...
        def __lt__(self, other: ArrayLike, /) -> Array: ...
        def __le__(self, other: ArrayLike, /) -> Array: ...
        def __gt__(self, other: ArrayLike, /) -> Array: ...
        def __ge__(self, other: ArrayLike, /) -> Array: ...
        def __neg__(self) -> Array: ...
        def __pos__(self) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...
        def __divmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...
        def __rdivmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...
        def __getitem__(self, index: Any, /) -> Array: ...
        def __contains__(self, other: ArrayLike, /) -> bool: ...
        def __iter__(self) -> Iterator[Array]: ...
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __index__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __round__(self, ndigits: int | None = None, /) -> Array: ...
        def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
        def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
        def __dlpack__(
            self,
            *,
            stream: Any = None,
            max_version: tuple[int, int] | None = None,
            dl_device: tuple[Any, int] | None = None,
            copy: bool | None = None,
        ) -> Any: ...
        def __dlpack_device__(self) -> tuple[Any, int]: ...

        def all(
            self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
        ) -> Array:
            """Whether all elements along `axis` are true."""
            ...

        def any(
            self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
        ) -> Array:
            """Whether any element along `axis` is true."""
            ...

        def argmax(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
            """The index of the first maximum along `axis`."""
            ...

        def argmin(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
            """The index of the first minimum along `axis`."""
            ...

        def max(
            self,
            axis: Axis = None,
            out: None = None,
            keepdims: bool = False,
            initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
        ) -> Array:
            """The maximum along `axis`."""
            ...

        def min(
            self,
            axis: Axis = None,
            out: None = None,
            keepdims: bool = False,
            initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
        ) -> Array:
            """The minimum along `axis`."""
            ...

        def mean(
            self,
            axis: Axis = None,
            dtype: DTypeLike | None = None,
            out: None = None,
            keepdims: bool = False,
            *,
            where: ArrayLike | None = None,
        ) -> Array:
            """The mean along `axis`."""
            ...

        def prod(
            self,
            axis: Axis = None,
            dtype: DTypeLike | None = None,
            out: None = None,
            keepdims: bool = False,
            initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
            promote_integers: bool = True,
        ) -> Array:
            """The product along `axis`."""
            ...

        def sum(
            self,
            axis: Axis = None,
            dtype: DTypeLike | None = None,
            out: None = None,
            keepdims: bool = False,
            initial: ArrayLike | None = None,
            where: ArrayLike | None = None,
            promote_integers: bool = True,
        ) -> Array:
            """The sum along `axis`."""
            ...

        def ptp(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
            """The maximum minus the minimum along `axis`."""
            ...

        def std(
            self,
            axis: Axis = None,
            dtype: DTypeLike | None = None,
            out: None = None,
            ddof: int = 0,
            keepdims: bool = False,
            *,
            where: ArrayLike | None = None,
            mean: ArrayLike | None = None,
            correction: float | None = None,
        ) -> Array:
            """The standard deviation along `axis`."""
            ...

        def var(
            self,
            axis: Axis = None,
            dtype: DTypeLike | None = None,
            out: None = None,
            ddof: int = 0,
            keepdims: bool = False,
            *,
            where: ArrayLike | None = None,
            mean: ArrayLike | None = None,
            correction: float | None = None,
        ) -> Array:
            """The variance along `axis`."""
            ...

        def cumprod(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
            """The cumulative product along `axis`."""
            ...

        def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
            """The cumulative sum along `axis`."""
            ...

        def ravel(self, order: str = "C", *, out_sharding: Any = None) -> Array:
            """The elements along one axis."""
            ...

        def flatten(self, order: str = "C", *, out_sharding: Any = None) -> Array:
            """The elements along one axis."""
            ...

        def repeat(
            self,
            repeats: ArrayLike | Sequence[int],
            axis: int | None = None,
            *,
            total_repeat_length: int | None = None,
            out_sharding: Any = None,
        ) -> Array:
            """Each element several times."""
            ...

        def squeeze(self, axis: Axis = None) -> Array:
            """Without axes of length 1."""
            ...

        def swapaxes(self, axis1: int, axis2: int) -> Array:
            """With two axes exchanged."""
            ...

        def choose(self, choices: Any, out: None = None, mode: str = "raise") -> Array:
            """Elements of `choices`, which this array of indices selects."""
            ...

        def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
            """A diagonal of two axes."""
            ...

        def compress(
            self,
            condition: Any,
            axis: int | None = None,
            *,
            size: int | None = None,
            fill_value: ArrayLike = 0,
            out: None = None,
        ) -> Array:
            """The slices along `axis` where `condition` is true."""
            ...

        def nonzero(self, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
            """The indices of elements that are not zero, one array for each axis."""
            ...

        def take(
            self,
            indices: Any,
            axis: int | None = None,
            out: None = None,
            mode: str | None = None,
            unique_indices: bool = False,
            indices_are_sorted: bool = False,
            fill_value: Any = None,
        ) -> Array:
            """The elements at `indices` along `axis`."""
            ...

        def argpartition(self, kth: int, axis: int = -1) -> Array:
            """The indices that partition the array around its `kth` element."""
            ...

        def argsort(
            self,
            axis: int | None = -1,
            *,
            kind: None = None,
            order: None = None,
            stable: bool = True,
            descending: bool = False,
            dtype: DTypeLike | None = None,
        ) -> Array:
            """The indices that sort the array along `axis`."""
            ...

        def searchsorted(
            self, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
        ) -> Array:
            """The positions at which `v` keeps this sorted array in order."""
            ...

        def sort(
            self,
            axis: int | None = -1,
            *,
            kind: None = None,
            order: None = None,
            stable: bool = True,
            descending: bool = False,
        ) -> Array:
            """The elements sorted along `axis`."""
            ...

        def dot(
            self,
            b: ArrayLike,
            *,
            precision: Any = None,
            preferred_element_type: DTypeLike | None = None,
            out_sharding: Any = None,
        ) -> Array:
            """The dot product with `b`."""
            ...

        def trace(
            self,
            offset: int | ArrayLike = 0,
            axis1: int = 0,
            axis2: int = 1,
            dtype: DTypeLike | None = None,
            out: None = None,
        ) -> Array:
            """The sum along a diagonal of two axes."""
            ...

        def astype(self, dtype: DTypeLike | None, copy: bool = False, device: Any = None) -> Array:
            """This array converted to another dtype."""
            ...

        def reshape(self, *args: ShapeLike, order: str = "C", out_sharding: Any = None) -> Array:
            """The elements in another shape, given as one sequence or as several ints."""
            ...

        def transpose(self, *args: int | Sequence[int] | None) -> Array:
            """The axes in another order, given as one sequence or as several ints; none: reversed."""
            ...

        def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
            """The elements limited to a range."""
            ...

        def round(self, decimals: int = 0, out: None = None) -> Array:
            """The elements rounded to a number of digits after the point."""
            ...

        def conj(self) -> Array:
            """The complex conjugate."""
            ...

        def conjugate(self) -> Array:
            """The complex conjugate."""
            ...

        def copy(self) -> Array:
            """A new array with the same elements."""
            ...

        def view(self, dtype: DTypeLike | None = None, type: None = None) -> Array:
            """The bytes of this array read as another dtype."""
            ...

        def byteswap(self) -> Array:
            """The elements with their bytes in reverse order."""
            ...

        def tobytes(self, order: str = "C") -> bytes:
            """The bytes of the elements."""
            ...

        def tolist(self) -> Any:
            """The elements as nested lists of Python scalars."""
            ...

        def block_until_ready(self) -> Array:
            """Wait until the elements are computed. Returns this array."""
            ...

        def copy_to_host_async(self) -> None:
            """Start a copy to the memory of the host."""
            ...

        def devices(self) -> set[Any]:
            """The devices that hold the array."""
            ...

        def addressable_data(self, index: int) -> Array:
            """One of the parts that this process holds."""
            ...

        def delete(self) -> None:
            """Free the memory of the array."""
            ...

        def is_deleted(self) -> bool:
            """Whether the memory of the array was freed."""
            ...

        def is_ready(self) -> bool:
            """Whether the elements are computed."""
            ...

        def on_device_size_in_bytes(self) -> int:
            """The number of bytes in the memory of the device."""
            ...

        def unsafe_buffer_pointer(self) -> int:
            """The address of the elements in the memory of the device."""
            ...

        def to_device(self, device: Any, *, stream: int | Any | None = None) -> Array:
            """A copy on another device, or with another sharding."""
            ...

    if not TYPE_CHECKING:  # type checkers would accept any name

        def __getattr__(self, name: str) -> Any:
            hint = _why_missing.get(name, "")
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{hint}")


def in_host_memory(x: Any) -> bool:
    """Return whether the elements of `x` can be read without waiting for a device."""
    return isinstance(x, Array) and getattr(x, "host_memory", False)


def install_methods(methods: Mapping[str, Any]) -> None:
    """Give every array type these attributes; a later call replaces an earlier one."""
    _installed.update(methods)
    for cls in (Array, *_foreign_types):
        _give(cls, methods)


def _give(cls: type, methods: Mapping[str, Any]) -> None:
    own = _foreign_types.get(cls, ())
    for name, value in methods.items():
        if name not in own:
            setattr(cls, name, value)


class _OnDemand:
    """Stands for a method or operator until its first use: imports the offered module, which installs all of them."""

    __slots__ = ("name", "purpose")

    def __init__(self, purpose: str, name: str) -> None:
        self.purpose, self.name = purpose, name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        module = offers.target(self.purpose)
        if module is None:
            if instance is None:
                return self
            if self.name in _BINARY_OPERATORS:
                return lambda other: NotImplemented  # Python then calls the other operand
            raise AttributeError(
                f"'{type(instance).__name__}' object has no attribute '{self.name}'{_why_missing[self.name]}"
            )
        importlib.import_module(module)
        found = _installed[self.name]
        if found is self:
            raise AttributeError(f"{module} did not install the array method '{self.name}'")
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


def add_array_type(cls: type) -> None:
    """Make `cls` (a backend's array) an `Array`. It gets all installed methods, except those that it defines."""
    if cls not in _foreign_types:
        _foreign_types[cls] = frozenset(vars(cls))
        _give(cls, _installed)


_ARITHMETIC = "add sub mul truediv floordiv mod pow divmod and or xor lshift rshift".split()
_COMPARISONS = "eq ne lt le gt ge".split()
_BINARY_OPERATORS = frozenset([f"__{r}{name}__" for r in ("", "r") for name in (*_ARITHMETIC, *_COMPARISONS)])
# The operators are offered for the purpose "operators of arrays", the methods for "methods of arrays".
OPERATORS = (
    *[f"__{name}__" for name in (*_COMPARISONS, "neg", "pos", "abs", "invert", "iter")],
    *[f"__{r}{name}__" for r in ("", "r") for name in _ARITHMETIC],
)
NUMPY_METHODS = (
    "T",
    "__array_module__",
    "__array_namespace__",
    "__contains__",
    "__getitem__",
    "__matmul__",
    "__rmatmul__",
    "__round__",
    "__setitem__",
    "all",
    "any",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "astype",
    "at",
    "byteswap",
    "choose",
    "clip",
    "compress",
    "conj",
    "conjugate",
    "copy",
    "cumprod",
    "cumsum",
    "diagonal",
    "dot",
    "flat",
    "flatten",
    "imag",
    "mT",
    "max",
    "mean",
    "min",
    "nonzero",
    "prod",
    "ptp",
    "ravel",
    "real",
    "repeat",
    "reshape",
    "round",
    "searchsorted",
    "sort",
    "squeeze",
    "std",
    "sum",
    "swapaxes",
    "take",
    "tobytes",
    "trace",
    "transpose",
    "var",
    "view",
)

_why_missing = {
    **dict.fromkeys(OPERATORS, "; the operators of arrays come from bedrax-lax: install it"),
    **dict.fromkeys(NUMPY_METHODS, "; array methods come from bedrax-numpy: install it"),
}
install_methods({name: _OnDemand("operators of arrays", name) for name in OPERATORS})
install_methods({name: _OnDemand("methods of arrays", name) for name in NUMPY_METHODS})
