"""Sizes of a graph's arguments: the values of its dimension variables, and errors for sizes that do not fit.

Sizes that are known while a graph is made are checked then. For the others the graph gets one ``Case``. Its other
branch
is the empty program of these arguments as a native module: its assertions fail with the message. TensorFlow's XLA
compiles
only the branch that is taken, because sizes are constants there, so compiled graphs fail with the same message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import shape_poly
from bedrax.core import dims
from bedrax.core.staging import program_of
from bedrax.jax2tf import graph
from bedrax.tf import tensorflow as tf
from bedrax.xla_backend.export import DisabledSafetyCheck

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
        fine = lambda: tf.constant(0)
        if options.enable_xla:  # XLA compiles one branch of a case, but both of a conditional
            done = tf.switch_case(tf.cast(fits, tf.int32), [_refusing_module(call, tensors), fine])
        else:
            done = tf.cond(fits, fine, _asserting(found, holds))
        with tf.control_dependencies([done]):
            symbolic = [not dims.is_constant_shape(a.shape) for a in call.avals]
            return env, [tf.identity(t) if s else t for t, s in zip(tensors, symbolic, strict=True)]


def _tensor(x: Any) -> Any:
    return x.tensor if isinstance(x, graph.Size) else tf.constant(x, tf.int32)


def _holds(relation: str, x: Any, y: Any) -> Any:
    return tf.equal(_tensor(x), _tensor(y)) if relation == "==" else tf.greater_equal(_tensor(x), _tensor(y))


def _refusing_module(call, tensors) -> Callable:
    """A branch that fails: the assertions of a native module, which TensorFlow's XLA evaluates during compilation."""
    from bedrax.jax2tf import native  # StableHLO is loaded at first use

    kept = [i for i, a in enumerate(call.avals) if not dims.is_constant_shape(a.shape)]
    nothing = program_of(lambda *_: (np.int32(0),), [call.avals[i] for i in kept])
    module = native.portable(nothing, call.name, ("cpu",), tuple(range(len(kept))), [f"args[{i}]" for i in kept])
    anywhere = [DisabledSafetyCheck.platform()]
    given = [tensors[i] for i in kept]
    return lambda: native.call_module(module, given, nothing.out_avals, ("cpu",), anywhere)[0]


def _asserting(found, holds) -> Callable:
    """A branch that fails by TensorFlow's plain assertions, which TFLite and TF.js remove."""

    def refuse():
        done: list[Any] = []
        for (_, _, _, message, values), fits in zip(found, holds, strict=True):
            with tf.control_dependencies(done):  # the first failure is reported
                given = [_tensor(values[int(i)]) for i in _HOLES.findall(message)]
                text = tf.strings.format(_HOLES.sub("{}", message), given)
                done = [tf.raw_ops.Assert(condition=fits, data=[text], summarize=1)]
        with tf.control_dependencies(done):
            return tf.constant(0)

    return refuse


_HOLES = re.compile(r"\{(\d+)\}")
