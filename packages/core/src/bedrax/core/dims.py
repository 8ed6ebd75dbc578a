"""Dimensions that may be symbolic.

A dimension is an `int`, or an object of a class registered here (`shape_poly` registers its own). Shape rules do all
arithmetic and comparisons on dimensions through these functions, which have a fast path for ints. A symbolic
dimension supports `+ - * // %` and comparisons, which raise `InconclusiveDimensionOperation` when the answer depends
on its value; it may define the methods of `bedrax.core.typing.SymbolicDim`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bedrax.core import errors
from bedrax.core.codes import coded
from bedrax.core.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation

Dim = Any  # int, or a registered symbolic class
Shape = tuple[Dim, ...]


_symbolic: tuple[type, ...] = ()


def register_symbolic(cls: type) -> type:
    """Let objects of `cls` be dimensions. Usable as a decorator."""
    global _symbolic
    if cls not in _symbolic:
        _symbolic += (cls,)
    return cls


def is_symbolic(d: Any) -> bool:
    return type(d) is not int and isinstance(d, _symbolic)


def is_constant_dim(d: Dim) -> bool:
    """Return whether the dimension is a known number."""
    return type(d) is int or not isinstance(d, _symbolic)


def is_constant_shape(shape: Shape) -> bool:
    for d in shape:
        if type(d) is not int and isinstance(d, _symbolic):
            return False
    return True


def same_dim(a: Dim, b: Dim) -> bool:
    """Return whether two dimensions are equal for all values of their symbols.

    Raises InconclusiveDimensionOperation if the answer depends on the values.
    """
    return bool(a == b)


def definitely_equal(a: Dim, b: Dim) -> bool:
    """Return `same_dim`, or False if the answer depends on values."""
    if type(a) is int and type(b) is int:
        return a == b
    try:
        return bool(a == b)
    except InconclusiveDimensionOperation:
        return False


def same_shape(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Return whether shapes are equal in rank and in every dimension; see `same_dim`."""
    if a is b:
        return True
    if len(a) != len(b):
        return False
    return all(x is y or same_dim(x, y) for x, y in zip(a, b, strict=True))


def definitely_equal_shape(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Return `same_shape`, or False if the answer depends on values."""
    return len(a) == len(b) and all(definitely_equal(x, y) for x, y in zip(a, b, strict=True))


def size(shape: Sequence[Dim]) -> Dim:
    """Return the number of elements: the product of the dimensions (1 for rank 0)."""
    return math.prod(shape)


def divide_shapes(a: Sequence[Dim], b: Sequence[Dim]) -> Dim:
    """Return `size(a) / size(b)`, which must be whole: the dimension for -1 in a reshape.

    Equal dimensions are cancelled first, so that symbolic ones need not be divided.

    Raises:
      InconclusiveDimensionOperation: the quotient is not a whole number, or not one for all values of the symbols.
    """
    if is_constant_shape(a) and is_constant_shape(b):
        na, nb = math.prod(a), math.prod(b)
        if nb == 0:
            if na == 0:
                return 1  # any number would do
        elif na % nb == 0:
            return na // nb
        raise InconclusiveDimensionOperation(
            f"Cannot divide evenly the sizes of shapes {tuple(a)} and {tuple(b)}: {na} is not a multiple of {nb}"
        )
    rest_a, rest_b = cancel(a, b)  # the documents of jax2tf quote the message below
    na, nb = size(rest_a), size(rest_b)
    if is_constant_dim(nb) and nb == 1:
        return na
    try:
        quotient, remainder = divmod(na, nb)
        exact = definitely_equal(remainder, 0) and definitely_equal(quotient * nb, na)
    except (InconclusiveDimensionOperation, ZeroDivisionError):
        exact = False
    if not exact:
        raise InconclusiveDimensionOperation(
            f"Cannot divide evenly the sizes of shapes {tuple(a)} and {tuple(b)} for all values of their symbols"
        )
    return quotient


def cancel(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[list[Dim], list[Dim]]:
    """Return `a` and `b` without their common dimensions (a dimension that occurs n times in both goes n times)."""
    rest_a, rest_b = [], list(b)
    for x in a:
        for i, y in enumerate(rest_b):
            if definitely_equal(x, y) and not definitely_equal(x, 0):
                del rest_b[i]
                break
        else:
            rest_a.append(x)
    return rest_a, rest_b


def _extreme(name: str, builtin: Callable[[Any, Any], Any], a: Dim, b: Dim) -> Dim:
    if type(a) is int and type(b) is int:
        return builtin(a, b)
    if not is_constant_dim(a):
        return getattr(a, name)(b)
    if not is_constant_dim(b):
        return getattr(b, name)(a)  # both are symmetric
    return builtin(a, b)


def max_dim(d1: Dim, d2: Dim) -> Dim:
    """Return the larger dimension; may be a symbolic maximum.

    Args:
      d1, d2: ints or symbolic dimensions.

    Examples:

      >>> jax.core.max_dim(3, 5)
      5
    """
    return _extreme("max", max, d1, d2)


def min_dim(d1: Dim, d2: Dim) -> Dim:
    """Return the smaller dimension; may be a symbolic minimum.

    Args:
      d1, d2: ints or symbolic dimensions.

    Examples:

      >>> jax.core.min_dim(3, 5)
      3
    """
    return _extreme("min", min, d1, d2)


def non_negative(d: Dim) -> Dim:
    """Return `max(d, 0)`."""
    if type(d) is int:
        return d if d > 0 else 0
    return max_dim(d, 0)


def at_least(a: Dim, b: Dim) -> bool:
    """Return whether `a >= b` for all values of the symbols; InconclusiveDimensionOperation if it depends on them."""
    return bool(a >= b)


def dilate_dim(d: Dim, dilation: int) -> Dim:
    """Return the length of `d` elements with `dilation - 1` holes between: 0 if d is 0, else 1 + dilation (d - 1)."""
    if type(d) is int:
        return 0 if d == 0 else 1 + dilation * (d - 1)
    if is_constant_dim(dilation) and dilation == 1:
        return d
    return non_negative(1 + dilation * (d - 1))


def stride_dim(d: Dim, window: Dim, stride: int) -> Dim:
    """Return the number of windows in `d` elements with a stride: max(0, (d - window) // stride + 1)."""
    if type(d) is int and type(window) is int:
        return (d - window) // stride + 1 if d >= window else 0
    return non_negative((d - window) // stride + 1)


def dim_as_value(d: Dim) -> Any:
    """Return the dimension as an operand for arrays: an int, or the value that a symbolic dimension gives."""
    if type(d) is int:
        return d
    if not is_constant_dim(d):
        return d.as_value()
    return operator.index(d)


def integer(x: Any, what: str) -> int:
    """Return an integer of Python, NumPy or another library as an int.

    Args:
      what: the name of the argument, for messages.

    Raises:
      TypeError: it is something else. A traced value is a TracerIntegerConversionError, which is a TypeError.
    """
    if type(x) is int:
        return x
    try:
        return operator.index(x)
    except errors.JAXTypeError:
        raise
    except TypeError:
        raise TypeError(f"{what} must be an integer, got {x!r} of type {type(x).__name__}") from None


def whole_number(x: Any, what: str) -> int:
    """Return an integer, or a float without a fraction, as an int. A division may have computed the count.

    Examples:

      >>> from bedrax.core import dims
      >>> dims.whole_number(12 / 3, "length")
      4

    Raises:
      TypeError: it is something else, such as 2.5.
    """
    return int(x) if isinstance(x, (float, np.floating)) and x.is_integer() else integer(x, what)


def canonical_dim(d: Any, context: str = "") -> Dim:
    """Return `d` as a dimension; see `canonical_shape`."""
    return canonical_shape((d,), context)[0]


def canonical_shape(shape: Any, context: str = "") -> Shape:
    """Return `shape` as a tuple of ints and symbolic dimensions.

    Args:
      shape: a sequence of ints, NumPy integers and symbolic dimensions; or a single one of them.
      context: a sentence added to the error.

    Raises:
      TypeError: an element is something else, such as a float or a traced value.
    """
    if type(shape) is tuple:
        for d in shape:
            if type(d) is not int:
                break
        else:
            return shape
    if not isinstance(shape, (tuple, list)):
        shape = _as_sequence(shape)
    return tuple([d if type(d) is int else _canonical_element(d, shape, context) for d in shape])


def _as_sequence(shape: Any) -> Sequence[Any]:
    """Return a sequence as it is, and any other value as a sequence of one."""
    ndim = getattr(shape, "ndim", None)
    if ndim is None:  # no array
        one_by_one = hasattr(shape, "__getitem__") and hasattr(shape, "__len__")  # of a library's class, too
        return tuple(shape) if one_by_one and not isinstance(shape, (str, bytes, Mapping)) else (shape,)
    return (shape,) if ndim == 0 else tuple(shape)


def _canonical_element(d: Any, shape: Any, context: str) -> Dim:
    if isinstance(d, _symbolic):
        return d
    try:
        if not isinstance(d, (str, bytes)):
            return operator.index(d)
    except (TypeError, errors.JAXTypeError):
        pass
    # The documents of jax2tf quote these words.
    message = f"Shapes must be 1D sequences of concrete values of integer type, got {tuple(shape)}."
    if hasattr(d, "aval"):
        message += (
            "\nMake the argument that it comes from static (static_argnums), or jit a smaller function."
            f"{errors.origin_of(d)}"
        )
    if context:
        message += f"\n{context}"
    raise TypeError(coded("BX-SHAPE-VALUE", message)) from None
