"""Our derivatives as TensorFlow's gradients: in tapes of any order, and in saved models up to the requested order.

A saved model holds the gradients of the functions that it has at the start of saving. So for a function that is
saved to the second order, the derivative is made together with it, as a separate TensorFlow function without a caller;
and so on. Beyond the requested order, the saved model has an operation that raises.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import shape_poly
from bedrax.autodiff import vjp
from bedrax.core import codes, dims, dtypes
from bedrax.jax2tf import arguments
from bedrax.jax2tf.call import Call, PolyShape
from bedrax.jax2tf.options import Options
from bedrax.tf import tensorflow as tf

_DISABLED = (
    "The jax2tf-converted function does not support gradients. Use `with_gradient` parameter to enable gradients"
)
_NOT_SAVED = (
    "jax2tf: this SavedModel has no gradients of this order. Set the number of orders to save:"
    " jax2tf.convert(..., with_gradient=n), where True is one"
)


# Name of the operation with the gradient. TensorFlow's error in a program that loads it without its gradient has only
# it.
_FORGOTTEN = "gradient_is_saved_by_SaveOptions_experimental_custom_gradients_True"


def with_derivative(
    call: Call, run: Callable[..., Any], options: Options, convert: Callable[..., Any], guarded: bool
) -> list[Any]:
    """Run, with our derivative as TensorFlow's gradient, or with an error instead of it.

    Args:
      run: computes the tensors of the results from those of the arguments.
      convert: ``convert(fun, polymorphic_shapes, constraints, options, guarded)``: a converted function.
      guarded: whether a missing gradient is an error.
    """
    if options.gradients is None:
        outs = run(call.tensors)
        return [tf.raw_ops.PreventGradient(input=x, message=_DISABLED) for x in outs] if guarded else outs
    if not call.tensors:
        return list(run(()))

    scope = tf.get_current_name_scope()
    around = scope + "/" if scope else ""  # not under the name of the gradient

    # The derivative is made in other graphs, which capture tensors of this one; an outer tensor would be lost.
    # Variables must reach the custom gradient as tensors, too: their gradient flows through this read.
    @tf.custom_gradient
    def with_custom_gradient(*tensors):
        with tf.name_scope(around):
            outs = run(tensors)
            derivative = _add_derivatives(call, tensors, outs, options, convert)

        def grad_fn(*cts, variables=None):
            if variables:
                raise ValueError(f"Unexpected variables used in forward pass: {[v.name for v in variables]}")
            # A cotangent may be sparse, if TensorFlow gathered from the result.
            active = [
                tf.convert_to_tensor(ct) for ct, a in zip(cts, call.jaxpr.out_avals, strict=True) if _differentiable(a)
            ]
            found = iter(_gradients(call, tensors, active, options, convert, derivative))
            return tuple([next(found) if _differentiable(a) else None for a in call.avals])

        return tuple(outs), grad_fn

    here = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    inputs = [t if _is_of(here, t) else tf.identity(t) for t in call.tensors]
    if here is None:
        outs = with_custom_gradient(*inputs)
    else:
        with tf.name_scope(_FORGOTTEN):
            outs = with_custom_gradient(*inputs)
    return list(outs) if isinstance(outs, list | tuple) else [outs]


def _is_of(graph, t) -> bool:
    """Whether a tensor that is not a variable belongs to the graph (None: is a value)."""
    return isinstance(t, tf.Tensor) and getattr(t, "graph", None) is graph


def _differentiable(aval) -> bool:
    return dtypes.is_inexact(aval.dtype)


def _is_being_saved() -> bool:
    """Whether a gradient is made only for saving: then TensorFlow makes a function of it with this name."""
    from tensorflow.python.saved_model import save_context

    return save_context.in_save_context() and tf.compat.v1.get_default_graph().name == "internal_grad_fn"


def _gradients(call, tensors, cts, options: Options, convert, derivative) -> list:
    """Gradients of the differentiable arguments."""
    left = options.gradients or 0
    if derivative is not None:
        return list(derivative(*tensors, *cts))
    if not _is_being_saved():
        return _pulled_back(call, tensors, cts, dataclasses.replace(options, gradients=max(left - 1, 0)), convert)
    if left == 0:
        return [_refused(t) for t, a in zip(tensors, call.avals, strict=True) if _differentiable(a)]
    try:
        found = _pulled_back(call, tensors, cts, dataclasses.replace(options, gradients=None), convert, guarded=False)
    except (ValueError, NotImplementedError) as error:  # a program that only saves needs no derivative
        why = f"jax2tf: '{call.name}' has no gradient: {codes.plain(error).strip().splitlines()[-1]}"
        return [_refused(t, why) for t, a in zip(tensors, call.avals, strict=True) if _differentiable(a)]
    return [_with_shape_of(_last(x.dtype)(x), x) for x in found]


def _refused(like, why: str = _NOT_SAVED):
    with tf.control_dependencies([tf.debugging.Assert(tf.constant(False), [why])]):
        return tf.zeros_like(like)


def _with_shape_of(x, like):
    x.set_shape(like.shape)
    return x


@functools.lru_cache(64)
def _last(dtype) -> Any:
    """The identity as a TensorFlow function whose gradient fails when it is computed: the last saved gradient.

    It must not fail earlier: TensorFlow makes gradients of a higher order than it computes.
    """

    @tf.custom_gradient
    def identity(x):
        return tf.identity(x), lambda ct: _refused(ct)

    with tf.init_scope():
        return tf.function(identity, autograph=False).get_concrete_function(tf.TensorSpec(None, dtype))


def _pulled_back(call, tensors, cts, options: Options, convert, guarded: bool = True) -> list:
    converted = convert(*_pullback(call), dataclasses.replace(options, checks=False), guarded)
    words = [
        arguments.KeyWords(t, a.dtype) if dtypes.is_extended(a.dtype) else t
        for t, a in zip(tensors, call.avals, strict=True)
    ]
    return list(converted(words, list(cts)))


def _add_derivatives(call, tensors, outs, options: Options, convert) -> Any:
    """Add the functions of this derivative, and of its derivatives, to the current graph, for a saved model.

    For more than one order, returns the derivative itself, as a TensorFlow function.
    """
    if tf.executing_eagerly() or not options.gradients:
        return None
    here = tf.compat.v1.get_default_graph()
    if options.gradients == 1:
        for dtype in {t.dtype for t, a in zip(tensors, call.avals, strict=True) if _differentiable(a)}:
            _last(dtype).add_to_graph(here)
        return None
    n = len(tensors)
    inner = dataclasses.replace(options, gradients=options.gradients - 1)

    def derivative(*given):
        return tuple(_pulled_back(call, given[:n], given[n:], inner, convert))

    cts = [x for x, a in zip(outs, call.jaxpr.out_avals, strict=True) if _differentiable(a)]
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in (*tensors, *cts)]
    made = tf.function(derivative, autograph=False).get_concrete_function(*specs)
    made.add_to_graph(here)
    return made


def _pullback(call: Call) -> tuple[Callable, list, Sequence[str]]:
    """The function ``(arguments, cotangents of inexact results) -> gradients``, its shapes, and their constraints."""
    active = [_differentiable(a) for a in call.avals]
    out_active = [_differentiable(a) for a in call.jaxpr.out_avals]

    def pullback(primals, given):
        fixed = list(primals)

        def of_active(*values):
            rest = iter(values)
            return call.flat(*(next(rest) if m else x for m, x in zip(active, fixed, strict=True)))[0]

        outs, back = vjp(of_active, *(x for m, x in zip(active, fixed, strict=True) if m))
        rest = iter(given)
        full = [
            next(rest) if m else np.zeros(np.shape(x) if dims.is_constant_shape(np.shape(x)) else (), dtypes.float0)
            for m, x in zip(out_active, outs, strict=True)
        ]
        return list(back(full))

    pullback.__name__ = f"{call.name}_vjp"

    def spec(aval):
        return str(PolyShape(*aval.shape)) if not dims.is_constant_shape(aval.shape) else None

    shapes = [
        [spec(a) for a in call.avals],
        [spec(a) for a, m in zip(call.jaxpr.out_avals, out_active, strict=True) if m],
    ]
    return pullback, shapes, shape_poly.constraints_of(call.avals)
