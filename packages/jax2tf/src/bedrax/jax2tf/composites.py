"""TensorFlow operations for named composites: a row for each function that has one.

A row is ``row(call, ...) -> Fused | None``. It has the parameters of the function, and gets the operands of the call. It
returns None if TensorFlow's operation does not compute this call; then the program of the function is converted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bedrax.core.composites import composite_of
from bedrax.core.ir import Eqn, Jaxpr, Literal, Var
from bedrax.core.jitting import Inline, jit_p
from bedrax.core.passes import inline
from bedrax.tf import tensorflow as tf


class Fused(NamedTuple):
    """Replaces an equation: ``build(ctx, *tensors)`` is called on `operands` instead of the equation's own rule."""

    operands: tuple[Any, ...]
    build: Callable[..., Any]


class Call(NamedTuple):
    """A call of a named function, which may be mapped.

    Attributes:
      rank: of the function's first argument.
      axes: for each axis of the first operand, that of the function's argument; numbers from `rank` on are mapped axes.
      out_axes: the same for the result, which has the shape of the argument.
    """

    rank: int
    axes: list[int]
    out_axes: list[int]

    @classmethod
    def of(cls, rank: int, mapped: Sequence[tuple[int, int]]) -> Call:
        """The call with the mapped axes of a `Composite`, given the rank of the first operand."""
        rank -= len(mapped)
        made = cls(rank, list(range(rank)), list(range(rank)))
        for n, (d, out) in enumerate(mapped):
            made.axes.insert(d, rank + n)
            made.out_axes.insert(out, rank + n)
        return made

    def axis(self, axis: Any) -> int | None:
        """The axis of the operand that the argument `axis` of the function is; None if it is not one axis."""
        axes = tuple(range(self.rank)) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
        return self.axes.index(axes[0] % self.rank) if len(axes) == 1 else None

    def permutation(self) -> list[int]:
        """For each axis of the result, the axis of the operand."""
        return [self.axes.index(a) for a in self.out_axes]


def _number(x: Any) -> float | None:
    """The value of an argument that is a real number in the program, or in the function; None if it is another value."""
    x = x.val if type(x) is Literal else x
    return None if isinstance(x, Var) or np.iscomplexobj(x) else float(x)


def own(atom: Any) -> bool:
    """Whether TensorFlow's fused operations have kernels for the dtype of a value."""
    return str(atom.aval.dtype) in ("float32", "float64", "float16", "bfloat16")


def _unary(operation: Callable[[Any], Any]) -> Callable[..., Fused]:
    return lambda call, x: Fused((x,), lambda ctx, x: operation(x))


# The first operand has the shape of the result: other operands are numbers.
def _leaky_relu(call: Call, x: Any, negative_slope: Any = 1e-2) -> Fused | None:
    slope = _number(negative_slope)
    if slope is None or slope > 1:  # TensorFlow's operation may be max(x, slope * x)
        return None
    if str(x.aval.dtype) == "float64" and slope != float(np.float32(slope)):  # TensorFlow's slope is a float32
        return None
    return Fused((x,), lambda ctx, x: tf.nn.leaky_relu(x, slope))


def _elu(call: Call, x: Any, alpha: Any = 1.0) -> Fused | None:
    return Fused((x,), lambda ctx, x: tf.nn.elu(x)) if _number(alpha) == 1 else None


def _gelu(call: Call, x: Any, approximate: bool = True) -> Fused | None:
    if not approximate or str(x.aval.dtype) == "float64":  # a coefficient of TensorFlow's is a float32
        return None
    return Fused((x,), lambda ctx, x: tf.nn.gelu(x, approximate=True))


def _along_axis(operation: Callable[[Any, int], Any]) -> Callable[..., Fused | None]:
    def row(call: Call, x: Any, axis: Any = -1, where: Any = None) -> Fused | None:
        place = None if where is not None else call.axis(axis)
        if place is None:
            return None
        return Fused((x,), lambda ctx, x: operation(x, place if place != x.shape.rank - 1 else -1))

    return row


ROWS: dict[str, Callable[..., Fused | None]] = {
    "nn.relu": _unary(lambda x: tf.nn.relu(x)),
    "nn.relu6": _unary(lambda x: tf.nn.relu6(x)),
    "nn.leaky_relu": _leaky_relu,
    "nn.elu": _elu,
    "nn.gelu": _gelu,
    "nn.hard_tanh": _unary(lambda x: tf.maximum(tf.minimum(x, 1.0), -1.0)),
    "nn.softmax": _along_axis(lambda x, axis: tf.nn.softmax(x, axis)),
    "nn.log_softmax": _along_axis(lambda x, axis: tf.nn.log_softmax(x, axis)),
}


def fused(eqn: Eqn) -> Fused | None:
    """The TensorFlow operation for an equation, if it calls a named function that has a row, and the row takes it."""
    program = eqn.params.get("jaxpr") if eqn.primitive is jit_p else None
    found = None if program is None else composite_of(program)
    if found is None or found.name not in ROWS or not found.args:
        return None
    found, (out,) = found.with_values(program, eqn.invars), eqn.outvars
    x = found.args[0]
    if type(x) is not Var or not own(x) or x.aval.dtype != out.aval.dtype:
        return None
    call = Call.of(len(x.aval.shape), found.mapped)
    one = ROWS[found.name](call, *found.args, **found.kwargs)
    order = call.permutation()
    if one is None or order == sorted(order):
        return one
    return Fused(one.operands, lambda ctx, *tensors: tf.transpose(one.build(ctx, *tensors), ctx.integers(order)))


def _keeps(eqn: Eqn) -> bool:
    return eqn.params["inline"] is not Inline.JAX_LATE or fused(eqn) is not None


def without_other_calls(jaxpr: Jaxpr) -> Jaxpr:
    """The program with the operations of named functions in place of their calls, except for those that are `fused`."""
    return inline(jaxpr, _CALLS, _keeps)


_CALLS = frozenset([jit_p])
