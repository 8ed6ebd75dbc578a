"""Types of references, and the references themselves.

A reference belongs to the trace in which it was made (`Cell`). Outside programs it holds a value of that trace, and
reads and writes are operations on this value. In a recorded program it is a variable (`RefTracer`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax.core import array, executors
from bedrax.core.avals import AbstractValue, aval_functions
from bedrax.core.public import public
from bedrax.core.staging import StagedTracer
from bedrax.core.tracing import Mutable, Trace, eval_trace

__all__ = ["AbstractRef", "Ref"]


class AbstractRef(AbstractValue):
    """The type of a reference.

    Args:
      inner_aval: the type of its value, a `ShapedArray`.
      memory_space: its memory; None: the memory of the device.
      kind: None, or a note on its use (``"no_grad_no_remat"``).

    Examples:

      >>> from jax.experimental import hijax

      >>> total = jax.new_ref(jnp.zeros(3))
      >>> kind = jax.typeof(total)
      >>> kind, kind.inner_aval, kind == hijax.AbstractRef(jax.typeof(jnp.ones(3)))
      (Ref{float32[3]}, ShapedArray(float32[3]), True)

      >>> from jax import ref

      >>> total = jax.new_ref(jnp.zeros(3))
      >>> kind = jax.typeof(total)
      >>> kind, kind.inner_aval, kind == ref.AbstractRef(jax.typeof(jnp.ones(3)))
      (Ref{float32[3]}, ShapedArray(float32[3]), True)
    """

    __slots__ = ("inner_aval", "kind", "memory_space")
    mutable = True
    if TYPE_CHECKING:  # installed by `bedrax.state.discharge`

        @staticmethod
        def pure(program: Any) -> Any:
            """The pure form of a program, and the positions of the references that it writes to."""

    def __init__(self, inner_aval: Any, memory_space: Any = None, kind: Any = None) -> None:
        self.inner_aval: Any = inner_aval
        self.memory_space: Any = memory_space
        self.kind: Any = kind

    @property
    def shape(self) -> Any:
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        return self.inner_aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.inner_aval.shape)

    @property
    def size(self) -> int:
        return self.inner_aval.size

    @property
    def weak_type(self) -> Any:
        return self.inner_aval.weak_type

    @property
    def sharding(self) -> Any:
        return self.inner_aval.sharding

    @property
    def split(self) -> Any:
        return self.inner_aval.split

    def update(self, **changes: Any) -> AbstractRef:
        """A copy with some of `inner_aval`, `memory_space`, `kind` changed."""
        fields = dict(inner_aval=self.inner_aval, memory_space=self.memory_space, kind=self.kind)
        return AbstractRef(**{**fields, **changes})

    def to_tangent_aval(self) -> AbstractRef:
        return self.update(inner_aval=self.inner_aval.to_tangent_aval())

    def strip_weak_type(self) -> AbstractRef:
        return self.update(inner_aval=self.inner_aval.strip_weak_type())

    def __eq__(self, other: object) -> bool:
        return type(other) is AbstractRef and (self.inner_aval, self.kind, self.memory_space) == (
            other.inner_aval,
            other.kind,
            other.memory_space,
        )

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval, self.kind))

    def short(self) -> str:
        return f"Ref{{{self.inner_aval.short()}}}"

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __repr__(self) -> str:
        return self.str_short()

    __str__ = __repr__


class Ref(Mutable):
    """A reference to an array that can be read and written in place.

    Made by `new_ref`. ``ref[i]`` reads, ``ref[i] = x`` writes, ``ref[i] += x`` does both, with the same indices as
    arrays; ``ref[...]`` is the whole value. A reference is not an array: read it before a computation.

    Examples:

      >>> @jax.jit
      ... def f(x):
      ...     total = jax.new_ref(jnp.zeros(x.shape))
      ...     total[...] += 2 * x
      ...     return total[...]
      ...
      >>> f(3.)
      Array(6., dtype=float32)
    """

    __slots__ = ()
    aval: AbstractRef

    @property
    def shape(self) -> Any:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(public("references are made by jax.new_ref(value)"))

    if TYPE_CHECKING:  # installed by `bedrax.state.operations`

        def __getitem__(self, idx: Any) -> Any: ...
        def __setitem__(self, idx: Any, value: Any) -> None: ...
        def get(self, idx: Any = ...) -> Any: ...
        def set(self, value: Any, idx: Any = ...) -> None: ...
        def swap(self, value: Any, idx: Any = ...) -> Any: ...
        def addupdate(self, x: Any, idx: Any = ...) -> None: ...

        at: Any

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a reference to an array of rank 0")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise TypeError("a reference is neither true nor false; read it first: bool(ref[...])")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise TypeError(f"a reference of type {self.aval.short()} is not an array: read it first, ref[...]")

    if not TYPE_CHECKING:  # a function of C
        __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other


class Cell(Ref):
    """A reference that holds a value of the trace in which it was made."""

    __slots__ = ("__weakref__", "_aval", "_away", "_borrowed", "_owned", "_trace", "_value", "_written")

    def __init__(self, aval: AbstractRef, value: Any, trace: Trace, borrowed: bool = False) -> None:
        self._aval, self._value, self._trace = aval, value, trace
        self._borrowed = borrowed  # made for a call, instead of another reference
        self._away = False  # whether another reference replaces it
        self._owned = False  # whether no other object has the value, so its buffer can be donated
        self._written = False

    if TYPE_CHECKING:
        aval: AbstractRef
        committed: bool
    else:
        aval = property(operator.attrgetter("_aval"))
        committed = _committed = property(lambda self: getattr(self._value, "committed", False))

    @property
    def sharding(self) -> Any:
        return self._value.sharding

    @property
    def format(self) -> Any:
        return self._value.format

    def leave(self, taken: Callable[[Any], Any]) -> Ref:
        """The reference after the end of a transformation that made it: a new one with the current value.

        Args:
          taken: converts a value of the transformation to a value of the outer trace.
        """
        if self._trace.alive:
            return self
        if self._borrowed or self._value is None:
            raise ValueError("a reference that a function was given, or has freed, is returned; return ref[...]")
        value, self._value = self._value, None
        return self._made(taken(value), self._aval)

    _made: Callable[[Any, AbstractRef], Ref]  # installed by `operations`

    def unsafe_buffer_pointer(self) -> int:
        """The address of its value."""
        return self._value.unsafe_buffer_pointer()

    def block_until_ready(self) -> Ref:
        """Wait for the computation of its value."""
        if self._trace is eval_trace and self._value is not None:
            self._value.block_until_ready()
        return self

    def copy_to_host_async(self) -> None:
        """Start a copy of its value to the host."""
        self._value.copy_to_host_async()

    def __repr__(self) -> str:
        value = self._value
        if value is None:
            return f"Ref(freed, {self._aval.inner_aval.short()})"
        if self._trace is not eval_trace:
            return f"Ref({value!r})"
        text = repr(executors.get().asarray(value))  # a written value may be a NumPy array
        return "Ref" + text.removeprefix("Array") if text.startswith("Array") else f"Ref({text})"

    def __str__(self) -> str:
        return repr(self)

    def __copy__(self) -> None:
        raise TypeError(
            public("copies of a reference would be two names of one; jax.new_ref(ref[...]) makes a new one")
        )


Cell.__name__ = Cell.__qualname__ = "Ref"


class RefTracer(Ref, StagedTracer):
    """A reference in a recorded program."""

    __slots__ = ()
    if not TYPE_CHECKING:
        __init__ = StagedTracer.__init__
        __repr__ = StagedTracer.__repr__


class _OfArrays:
    """An attribute of arrays that references lack."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> None:
        raise AttributeError(f"a reference has no {self.name}: read it first, ref[...].{self.name}")


_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
for _name in _OPERATORS.split():
    for _side in (f"__{_name}__", f"__r{_name}__"):
        setattr(RefTracer, _side, lambda self, other: NotImplemented)
for _name in (*array.NUMPY_METHODS, "weak_type", "itemsize", "nbytes"):
    if _name != "at" and not _name.startswith("__"):
        setattr(RefTracer, _name, _OfArrays(_name))
array.no_arrays.add(RefTracer)
AbstractRef.tracer_class = RefTracer
for _kind in (Cell, RefTracer):
    aval_functions[_kind] = operator.attrgetter("aval")
