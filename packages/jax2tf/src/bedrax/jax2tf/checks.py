"""Sizes of a graph's arguments: the values of its dimension variables, and errors for sizes that do not fit.

Sizes that are known while a graph is made are checked then. For the others the graph gets one conditional of plain
operations. One branch does nothing. The other one has two operations for each condition. ``Assert`` fails while the graph
runs, and its error states the sizes. TensorFlow's XLA ignores ``Assert``, and compiles both branches with known sizes. So
the second operation is a reshape or a slice of an array that has one of the two sizes: it fails in the compiler if the
condition is not met. The error of the compiler states the name of the operation, so the name is the message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bedrax import shape_poly
from bedrax.core import dims
from bedrax.jax2tf import graph
from bedrax.tf import tensorflow as tf

SHAPE_ASSERTIONS = "shape_assertions"  # TensorFlow's name of the check of sizes


def checked_sizes(call: Any, tensors: Sequence[Any], options: Any) -> tuple[dict[str, Any], list[Any]]:
    """Values of the dimension variables, and the tensors with a dependency on the check of their sizes.

    Raises:
      ValueError: known sizes do not fit.
    """
    if not call.is_symbolic:
        return {}, list(tensors)
    found: list[tuple[Any, ...]] = []
    dynamic: dict[int, Any] = {}

    def size(arg: int, axis: int):
        known = tensors[arg].shape[axis]
        if known is not None:
            return int(known)
        if arg not in dynamic:
            dynamic[arg] = tf.shape(tensors[arg])
        return graph.Size(dynamic[arg][axis])

    wanted = options.checks and not any(str(c) == SHAPE_ASSERTIONS for c in options.disabled_checks)
    env = shape_poly.solve_dims(
        [a.shape for a in call.avals],
        size,
        actual=str(tuple([t.shape for t in tensors])),
        assertion=(lambda *check: found.append(check)) if wanted else None,
    )
    if not found:
        return env, list(tensors)
    with tf.name_scope("check_sizes"):
        holds = [_holds(*check[:3]) for check in found]
        fits = holds[0] if len(holds) == 1 else tf.reduce_all(tf.stack(holds))
        done = tf.cond(fits, lambda: tf.constant(0), lambda: _refused(found, holds))
        with tf.control_dependencies([done]):
            symbolic = [not dims.is_constant_shape(a.shape) for a in call.avals]
            return env, [tf.identity(t) if s else t for t, s in zip(tensors, symbolic, strict=True)]


def _tensor(x: Any) -> Any:
    return x.tensor if isinstance(x, graph.Size) else tf.constant(x, tf.int32)


def _holds(relation: str, x: Any, y: Any) -> Any:
    return tf.equal(_tensor(x), _tensor(y)) if relation == "==" else tf.greater_equal(_tensor(x), _tensor(y))


def _refused(found, holds) -> Any:
    """Make one operation for each condition. It fails if its condition is not met, and the later ones wait for it."""
    done = tf.constant(0)
    for (relation, x, y, message, values), fits in zip(found, holds, strict=True):
        with tf.control_dependencies([done]), tf.name_scope(_name(message)):
            words = [_tensor(values[int(w)]) if i % 2 else w for i, w in enumerate(_HOLES.split(message)) if w]
            # No operation on texts joins the words, because XLA has none.
            asserted = tf.raw_ops.Assert(condition=fits, data=words, summarize=1)
            with tf.control_dependencies([asserted]):
                elements, size = tf.zeros([_tensor(x)], tf.int32), [_tensor(y)]
                taken = tf.reshape(elements, size) if relation == "==" else tf.slice(elements, [0], size)
            done = done + tf.reduce_sum(taken)  # TensorFlow removes operations without uses
    return done


def _name(message: str) -> str:
    """The message as a name of operations."""
    return _ILLEGAL.sub("_", _HOLES.sub("", message)).strip("_.-")


_HOLES = re.compile(r"\{(\d+)\}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9.-]+")
