"""`Array`: what every array value and every tracer is; and `HostArray`, NumPy's kind of it.

Operators and methods live in one place for all of them: `install_methods` puts a function
on `Array` (which tracers and `HostArray` inherit) and on every foreign array type that a
backend has registered with `add_array_type`. Core installs arithmetic
(`bedrax.core.operators`); `bedrax.numpy` installs indexing and the NumPy methods.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax.core import avals, dtypes

_foreign_types: set[type] = set()
_installed: dict[str, Any] = {}


class _ArrayMeta(type):
    def __instancecheck__(cls, x):
        kind = type(x)
        if cls is Array:
            return kind in _foreign_types or issubclass(kind, Array)
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
        raise TypeError("jax.Array cannot be instantiated; use jax.numpy.array to create an array.")

    # Everything below reads the aval, so that it holds for tracers, too.
    if not TYPE_CHECKING:
        shape = property(lambda self: self.aval.shape)
        dtype = property(lambda self: self.aval.dtype)
        weak_type = property(lambda self: self.aval.weak_type)
        ndim = property(lambda self: len(self.aval.shape))
        size = property(lambda self: self.aval.size)
        itemsize = property(lambda self: self.aval.dtype.itemsize)
        nbytes = property(lambda self: self.aval.size * self.aval.dtype.itemsize)

    def __len__(self) -> int:
        return len(self.aval)

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


def install_methods(methods: Mapping[str, Any]) -> None:
    """Give every array type these attributes; a later call replaces an earlier one."""
    _installed.update(methods)
    for cls in (Array, *_foreign_types):
        for name, value in methods.items():
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
    """Make `cls` (a backend's array) an `Array`, with the methods installed so far and later."""
    _foreign_types.add(cls)
    for name, value in _installed.items():
        setattr(cls, name, value)


class HostArray(Array):
    """An array evaluated by NumPy: an immutable `numpy.ndarray` and the weakness of its dtype."""

    __slots__ = ("_value", "_weak", "aval")

    def __init__(self, value: np.ndarray, weak_type: bool = False, aval: avals.ShapedArray | None = None):
        self._value = value
        self._weak = weak_type
        self.aval = avals.plain_aval(value.shape, value.dtype, weak_type) if aval is None else aval

    shape = property(lambda self: self._value.shape)
    dtype = property(lambda self: self._value.dtype)
    ndim = property(lambda self: self._value.ndim)
    weak_type = property(lambda self: self._weak)

    def __array__(self, dtype=None, copy=None):
        if dtype is None and not copy:
            return self._value
        return np.array(self._value, dtype=dtype, copy=copy)

    def __len__(self):
        return len(self._value)

    def __bool__(self):
        return bool(self._value)

    def __int__(self):
        return int(self._value)

    def __float__(self):
        return float(self._value)

    def __complex__(self):
        return complex(self._value)

    def __index__(self):
        if self._value.ndim or not dtypes.is_integer(self._value.dtype):
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self._value)

    def __iter__(self):
        if not self._value.ndim:
            raise TypeError("iteration over a 0-d array")
        return (HostArray(np.asarray(row), self._weak) for row in self._value)

    def item(self, *args):
        """The element (at `args`) as a Python scalar."""
        return self._value.item(*args)

    def tolist(self):
        """Nested lists of Python scalars."""
        return self._value.tolist()

    def block_until_ready(self):
        """NumPy has computed it already: returns `self`."""
        return self

    def __repr__(self):
        text = np.array2string(self._value, separator=", ", prefix="Array(", threshold=1000)
        weak = ", weak_type=True" if self._weak else ""
        return f"Array({text}, dtype={self._value.dtype.name}{weak})"

    def __str__(self):
        return str(self._value)

    def __format__(self, spec):
        return format(self._value.item() if not self._value.ndim else self._value, spec)

    def __reduce__(self):
        return HostArray, (self._value, self._weak)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return HostArray(self._value.copy(), self._weak)


avals.aval_functions[HostArray] = operator.attrgetter("aval")

_OPERATORS = "add sub mul truediv floordiv mod pow divmod and or xor lshift rshift".split()
install_on_demand(
    "bedrax.core.operators",
    [
        f"__{name}__"
        for name in (*_OPERATORS, "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert")
    ]
    + [f"__r{name}__" for name in _OPERATORS],
)

# What `bedrax.numpy.methods` installs; a face that offers it says `install_on_demand` of these.
NUMPY_METHODS = (
    "T", "__array_module__", "__array_namespace__", "__contains__", "__getitem__", "__iter__", "__matmul__",
    "__rmatmul__", "__round__", "__setitem__", "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype",
    "at", "byteswap", "choose", "clip", "compress", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot",
    "flat", "flatten", "imag", "mT", "max", "mean", "min", "nonzero", "prod", "ptp", "ravel", "real", "repeat",
    "reshape", "round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take", "tobytes", "trace",
    "transpose", "var", "view",
)  # fmt: skip
