"""Types for annotations: arguments of functions that are arrays, dtypes, shapes, axes and trees.

Each is defined once, here. Type checkers and editors read them; no code depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from bedrax.core.array import Array

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class SupportsDType(Protocol):
    """Anything with a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        ...


class SymbolicDim(Protocol):
    """Methods of a symbolic dimension besides the operators of Python."""

    def max(self, other: Any) -> Any:
        """The larger of two dimensions."""
        ...

    def min(self, other: Any) -> Any:
        """The smaller of two dimensions."""
        ...

    def as_value(self) -> Any:
        """The dimension as an operand of operations on arrays."""
        ...


# An argument that functions convert to an array: an array of this project or of NumPy, or a scalar. Not a list.
# Classes without parameters: libraries call ``isinstance`` with the alias and pass it to run-time type checkers (Quax).
ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex

# An argument that functions convert to a dtype.
DTypeLike: TypeAlias = str | type[Any] | np.dtype[Any] | SupportsDType

# The length of one axis.
Dim: TypeAlias = int | np.integer[Any] | SymbolicDim

# An argument that is a shape.
Shape: TypeAlias = Sequence[Dim]

# An argument that is a shape, or the length of a single axis.
ShapeLike: TypeAlias = Dim | Shape

# An argument that names axes: None usually stands for all of them.
Axis: TypeAlias = int | Sequence[int] | None

# A tree of lists, tuples, dicts and registered classes, with any leaves. The type system cannot express it.
PyTree: TypeAlias = Any

# The type of a primitive's parameters.
Params: TypeAlias = dict[str, Any]


class ArrayUpdate(Protocol):
    """``x.at[index]``: each method returns a new array, `x` with the elements at `index` changed."""

    # The methods repeat their parameters: an editor shows those of a method, and not those of a shared type of a field.

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """``x[index]``, with a mode for indices out of bounds."""
        ...

    def apply(
        self,
        func: Callable[[Array], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """`func` applied to the elements."""
        ...

    def set(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """`values` in place of the elements."""
        ...

    def add(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """`values` added to the elements."""
        ...

    def subtract(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """`values` subtracted from the elements."""
        ...

    def multiply(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The elements multiplied by `values`."""
        ...

    def mul(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The elements multiplied by `values`."""
        ...

    def divide(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The elements divided by `values`."""
        ...

    def power(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The elements to the power of `values`."""
        ...

    def min(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The minimum of the elements and `values`."""
        ...

    def max(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The maximum of the elements and `values`."""
        ...


class ArrayAt(Protocol):
    """``x.at``: index it to change elements."""

    def __getitem__(self, index: Any, /) -> ArrayUpdate:
        """Select elements."""
        ...


class Decorator(Protocol):
    """A decorator that returns a function of the same type."""

    def __call__(self, fun: F, /) -> F:
        """Decorate a function."""
        ...


class Program(Protocol[P, R_co]):
    """The result of `one_program`: a function, with its static parameters."""

    __name__: str
    static: frozenset[str]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function."""
        ...

    def of(self, *constants: Any) -> Callable[..., R_co]:
        """Return the function of the other arguments, given the first of the static ones."""
        ...


class JitFunction(Protocol[P, R_co]):
    """The result of `jit`: a function with the signature of the one that it compiles."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]

    @overload
    def __get__(self, instance: None, owner: type | None = None, /) -> JitFunction[P, R_co]: ...
    @overload
    def __get__(
        self: JitFunction[Concatenate[S, Q], R_co], instance: S, owner: type | None = None, /
    ) -> JitFunction[Q, R_co]: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the compiled function; the first call with arguments of new types compiles it."""
        ...

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The program for these arguments, lowered to StableHLO and not compiled: `jax.stages.Lowered`."""
        ...

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The traced program for these arguments: `jax.stages.Traced`."""
        ...

    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The shapes and dtypes of the result, as a tree of `jax.ShapeDtypeStruct`."""
        ...

    def clear_cache(self) -> None:
        """Drop all traces and compiled programs of this function."""
        ...
