"""TensorFlow for callbacks: prints are TensorFlow's own, which saved models keep; others call Python code of this
process.

A saved model with the latter can be loaded in another process, and raises there when it runs.
"""

from __future__ import annotations

import string
import sys

import numpy as np

from bedrax import pytree
from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives import callbacks as p
from bedrax.tf import tensorflow as tf
from bedrax.tf import types


@tf_rules.rule(p.pure_callback_p, p.io_callback_p, kind="tf.numpy_function")
def _callback(ctx, *tensors, callback, **_):
    return _on_host(ctx, callback, tensors)


@tf_rules.rule(p.debug_callback_p, kind="tf.print")
def _debug_callback(ctx, *tensors, callback, effect, partitioned):
    pieces = _pieces(callback, tensors)
    if pieces is None:
        return _on_host(ctx, callback, tensors)
    tf.print(*pieces, sep="", output_stream=sys.stdout, summarize=-1)
    return []


def _on_host(ctx, callback, tensors) -> list:
    avals = ctx.avals_out

    def call(*arrays):
        return [np.asarray(x) for x in callback(*arrays)]

    out = tf.numpy_function(
        call, tensors, [types.tf_dtype(a.dtype) for a in avals], ctx.primitive is not p.pure_callback_p
    )
    if not avals:
        return []
    out = list(out) if isinstance(out, list | tuple) else [out]
    for x, aval in zip(out, avals, strict=True):
        x.set_shape(types.static_shape(aval))
    return out


def _pieces(callback, tensors) -> list | None:
    """The parts of a printing callback, texts and tensors; None if TensorFlow has no such format, or if it logs."""
    printer = callback.function
    if not isinstance(printer, p.Printer) or printer.log:
        return None
    args, kwargs = pytree.tree_unflatten(callback.in_tree, tensors)
    pieces, following = [], iter(range(len(args)))
    for text, name, spec, conversion in string.Formatter().parse(printer.text):
        pieces.append(text)
        if name is None:
            continue
        key = next(following) if name == "" else int(name) if name.isdigit() else name
        value = args[key] if isinstance(key, int) else kwargs.get(key)
        if spec or conversion or not isinstance(value, tf.Tensor):
            return None
        pieces.append(value)
    return pieces
