"""`Array`: what every array value and every tracer is.

Operators and methods live in one place for all of them: `install_methods` puts a function
on `Array` (which tracers and the arrays of our own backends inherit) and on every foreign array
type that a backend has registered with `add_array_type`. The layers that know what the methods
mean install them, or say with `install_on_demand` where they are to be found.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

_foreign_types: dict[type, frozenset[str]] = {}  # with the names of what each defines itself
_installed: dict[str, Any] = {}
no_arrays: set[type] = set()  # tracers that stand for something else


class _ArrayMeta(type):
    def __instancecheck__(cls, x):
        kind = type(x)
        if cls is Array:
            return kind in _foreign_types or (type.__subclasscheck__(cls, kind) and kind not in no_arrays)
        return issubclass(kind, cls)

    def __subclasscheck__(cls, kind):
        return type.__subclasscheck__(cls, kind) or (cls is Array and kind in _foreign_types)


class Array(metaclass=_ArrayMeta):
    """Base class of array values and of the tracers that stand for them.

    Users test with ``isinstance(x, jax.Array)``; instances come from functions such as
    ``jax.numpy.array``, never from this class.
    """

    __slots__ = ("__weakref__",)
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *args, **kwargs):  # every kind of array has its own
        raise TypeError("Array is abstract; jax.numpy.array and asarray make arrays")

    # Everything below reads the aval, so that it holds for tracers, too; without a frame of Python, for it is read often.
    if not TYPE_CHECKING:
        shape = property(attrgetter("aval.shape"))
        dtype = property(attrgetter("aval.dtype"))
        weak_type = property(attrgetter("aval.weak_type"))
        ndim = property(lambda self: len(self.aval.shape))
        size = property(attrgetter("aval.size"))
        itemsize = property(attrgetter("aval.dtype.itemsize"))
        nbytes = property(lambda self: self.aval.size * self.aval.dtype.itemsize)

    def __len__(self) -> int:
        return len(self.aval)

    def item(self, *args):
        """The element (at `args`) as a Python scalar; needs a concrete value."""
        return np.asarray(self).item(*args)

    if TYPE_CHECKING:  # what is installed, or made by metaprogramming, for tools that read types
        shape: tuple[int, ...]
        dtype: np.dtype
        weak_type: bool
        ndim: int
        size: int
        itemsize: int
        nbytes: int

        def _binary(self, other: Any, /) -> Array: ...
        def _unary(self) -> Array: ...
        def __eq__(self, other: Any, /) -> Array: ...  # type: ignore[override]  # elementwise, as in NumPy
        def __ne__(self, other: Any, /) -> Array: ...  # type: ignore[override]
        def __divmod__(self, other: Any, /) -> tuple[Array, Array]: ...
        def __rdivmod__(self, other: Any, /) -> tuple[Array, Array]: ...
        def __getitem__(self, index: Any, /) -> Array: ...
        def __iter__(self) -> Iterator[Array]: ...
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __index__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _binary
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _binary
        __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _binary
        __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __lt__ = __le__ = __gt__ = __ge__ = _binary
        __neg__ = __pos__ = __abs__ = __invert__ = _unary

    def __getattr__(self, name: str) -> Any:
        hint = ""
        if name in NUMPY_METHODS:
            hint = "; array methods come from bedrax-numpy: import bedrax.numpy"
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{hint}")


# What array functions accept where they convert: arrays, NumPy's, and scalars. No lists.
ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex


class SupportsDType(Protocol):
    """Anything with a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


# What functions accept for a dtype.
DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType


def in_host_memory(x: Any) -> bool:
    """Whether `x` is an array whose elements can be read without waiting for a device."""
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
    """Stands for a method until it is first used: imports the module that installs it."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    def __get__(self, instance, owner=None):
        importlib.import_module(self.module)
        found = _installed[self.name]
        if found is self:
            raise AttributeError(f"{self.module} did not install the array method '{self.name}'")
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


def install_on_demand(module: str, names: Iterable[str]) -> None:
    """These attributes of arrays are installed by `module`, which is imported when one is first used."""
    install_methods({name: _OnDemand(module, name) for name in names if name not in _installed})


def add_array_type(cls: type) -> None:
    """Make `cls` (a backend's array) an `Array`, with the methods installed so far and later but those it defines."""
    if cls not in _foreign_types:
        _foreign_types[cls] = frozenset(vars(cls))
        _give(cls, _installed)


# What `bedrax.numpy.methods` installs; a face that offers it says `install_on_demand` of these.
NUMPY_METHODS = (
    "T", "__array_module__", "__array_namespace__", "__contains__", "__getitem__", "__matmul__",
    "__rmatmul__", "__round__", "__setitem__", "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype",
    "at", "byteswap", "choose", "clip", "compress", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot",
    "flat", "flatten", "imag", "mT", "max", "mean", "min", "nonzero", "prod", "ptp", "ravel", "real", "repeat",
    "reshape", "round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take", "tobytes", "trace",
    "transpose", "var", "view",
)  # fmt: skip
