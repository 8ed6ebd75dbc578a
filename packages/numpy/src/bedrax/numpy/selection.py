"""Choosing between arrays elementwise: `select`, `clip`, `choose`, `piecewise`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bedrax import lax
from bedrax.core import dtypes, errors
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax.operators import remainder
from bedrax.lax.primitives import elementwise as ops
from bedrax.lax.promotion import broadcast, broadcast_to, operand, promote_dtypes, promote_pair
from bedrax.numpy.arguments import array, as_bool, counting, refuse_out
from bedrax.numpy.index_plans import concrete_value


@one_program
def choose_where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Any:
    """`where` of three operands."""
    condition = operand("where", condition)
    c = aval_of(condition)
    if c.dtype != np.bool_:
        condition = as_bool(condition)
    a, b = x.aval if hasattr(type(x), "weak_type") else None, y.aval if hasattr(type(y), "weak_type") else None
    if a is not None and b is not None and a.dtype == b.dtype:
        same = a.shape is b.shape or a.shape == b.shape
        if same and (not c.shape or c.shape == a.shape):
            return ops.select_n_p.bind(condition, y, x)
    else:
        x, y = promote_dtypes("where", (x, y))
    # A scalar condition stays a scalar, but cases take the full shape.
    if not c.shape:
        x, y = broadcast("where", (x, y), scalars=False)
    else:
        condition, x, y = broadcast("where", (condition, x, y), scalars=False)
    return ops.select_n_p.bind(condition, y, x)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """For each element, the choice of the first condition that holds.

    Args:
      condlist: arrays of bool.
      choicelist: as many arrays.
      default: where no condition holds.

    Raises:
      ValueError: the lists are empty or differ in length.

    Examples:

      >>> x = jnp.arange(5)
      >>> jnp.select([x < 2, x > 3], [-x, 10 * x], default=99)
      Array([ 0, -1, 99, 99, 40], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})")
    if len(condlist) == 0:
        raise ValueError("select: condlist must be non-empty, got 0 conditions; pass one at least")
    conditions = [as_bool(operand("select", c)) for c in condlist]
    *choices, out = promote_dtypes("select", (*choicelist, default))
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        out = choose_where(condition, choice, out)
    return out


@one_program(arrays=("arr", "min", "max"))
def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """`arr` limited to the range from `min` to `max`, elementwise.

    Args:
      arr: array of real numbers.
      min, max: the bounds, scalars or arrays; None: no bound. Where ``min > max`` the result is `max`.

    Raises:
      ValueError: an argument is complex.

    Examples:

      >>> x = jnp.array([-1.5, 0.5, 4.])
      >>> jnp.clip(x, 0, 1)
      Array([0. , 0.5, 1. ], dtype=float32)
      >>> jnp.clip(x, max=2.)
      Array([-1.5,  0.5,  2. ], dtype=float32)
    """
    if arr is None:
        raise ValueError("clip needs an array, got None")
    arr = array("clip", arr)
    if any(v is not None and dtypes.is_complex(dtypes.dtype_of(v)) for v in (arr, min, max)):
        raise ValueError("clip is for real numbers, as complex ones have no order; clip jnp.real(x) and jnp.imag(x)")
    if min is not None:
        arr = ops.max_p.bind(*promote_pair("maximum", min, arr))
    if max is not None:
        arr = ops.min_p.bind(*promote_pair("minimum", max, arr))
    return arr


def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """At each position, the element of the array with the number in `a`.

    Args:
      a: array of integers.
      choices: arrays, broadcast with `a`.
      out: must be None.
      mode: "wrap" or "clip" for numbers out of range; "raise" needs concrete values.

    Raises:
      ValueError: with "raise", a number is out of range.

    Examples:

      >>> which = jnp.array([0, 1, 0])
      >>> jnp.choose(which, [jnp.array([1, 2, 3]), jnp.array([10, 20, 30])])
      Array([ 1, 20,  3], dtype=int32)
    """
    refuse_out("choose", out)
    a = array("choose", a)
    if not dtypes.is_integer(a.dtype):
        raise ValueError(f"`a` array must be integer typed, got {a.dtype}")
    count = len(choices)
    arrays = promote_dtypes("choose", list(choices))
    if mode == "raise":
        values = concrete_value(a)
        if values is None:
            raise errors.ConcretizationTypeError(
                a,
                "A traced index cannot be checked, as mode='raise' of jnp.choose does; use mode='wrap' or mode='clip'.",
            )
        if values.size and not (values.min() >= 0 and values.max() < count):
            raise ValueError(
                f"choose: invalid entry in choice array: indices are from {values.min()} to {values.max()}, and there are"
                f" {count} choices; mode='wrap' and mode='clip' accept them"
            )
    elif mode == "wrap":
        a = remainder(counting(a, count), count)
    elif mode == "clip":
        a = clip(counting(a, count), 0, count - 1)
    else:
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    a, *arrays = broadcast("choose", (a, *arrays), scalars=False)
    return ops.select_n_p.bind(lax.convert_to(a, np.dtype(np.int32), False), *arrays)


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """For each element of `x`, the function of the last condition that holds, applied to the element.

    Args:
      x: array.
      condlist: arrays of bool with the shape of `x`, or one of them; or bools, one per function.
      funclist: for each condition a function of an array or a value; one more is for where none holds.
      *args, **kw: further arguments of the functions.

    Raises:
      ValueError: `funclist` has the wrong length.

    Examples:

      >>> x = jnp.array([-2., 0.5, 3.])
      >>> jnp.piecewise(x, [x < 0, x > 1], [lambda x: -x, lambda x: 100 * x, 0.])
      Array([  2.,   0., 300.], dtype=float32)
    """
    x = array("piecewise", x)
    if isinstance(condlist, (Array, np.ndarray)):
        condlist = [condlist] if condlist.shape == x.shape and len(funclist) <= 2 else list(condlist)
    elif not isinstance(condlist, (list, tuple)) or (condlist and isinstance(condlist[0], (bool, np.bool_)) and x.ndim):
        condlist = [np.asarray(condlist)]
    count, functions = len(condlist), list(funclist)
    if len(functions) == count:
        functions.append(0)
    elif len(functions) != count + 1:
        raise ValueError(f"jnp.piecewise: {len(functions)} functions for {count} conditions; one each, or one more")
    conditions = [as_bool(operand("piecewise", c)) for c in condlist]
    value = lambda f: f(x, *args, **kw) if isinstance(f, Callable) else f
    cast = lambda v: lax.convert_element_type(array("piecewise", v), x.dtype)
    out = broadcast_to(cast(value(functions[-1])), x.shape)
    for condition, f in zip(conditions, functions[:-1], strict=True):
        out = choose_where(condition, cast(value(f)), out)
    return out
