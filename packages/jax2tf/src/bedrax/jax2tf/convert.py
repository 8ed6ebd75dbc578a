"""`convert`: a function of ours as a function of TensorFlow tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import pytree, shape_poly
from bedrax.autodiff import vjp
from bedrax.core import dims, dtypes, staging
from bedrax.core.avals import ShapedArray
from bedrax.core.staging import function_name
from bedrax.jax2tf import arguments, flags, graph
from bedrax.tf import tensorflow as tf
from bedrax.tf import types


class PolyShape(tuple):
    """A shape specification as a tuple of dimension specifications (older spelling of a string)."""

    def __new__(cls, *dim_specs):
        return tuple.__new__(cls, dim_specs)

    def __str__(self):
        return "(" + ", ".join("..." if d is ... else "_" if d is None else str(d) for d in self) + ")"


def convert(
    fun_jax: Callable,
    *,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Sequence[str] = (),
    with_gradient: bool = True,
    enable_xla: bool = True,
    native_serialization: bool | str | None = None,
    native_serialization_platforms: Sequence[str] | None = None,
    native_serialization_disabled_checks: Sequence = (),
) -> Callable:
    """A function that TensorFlow can run, differentiate and save.

    Args:
      fun_jax: takes and returns pytrees of arrays.
      polymorphic_shapes: one shape specification per positional argument, e.g.
        ``["(b, _, _)", None]``: identifiers are dimensions unknown while converting, ``_`` are
        taken from the actual argument, ``...`` stands for the remaining ``_``. A pytree prefix
        of the arguments; None: every dimension is known.
      polymorphic_constraints: constraints on the dimension variables, e.g. ``("a >= b",)``.
      with_gradient: make the function differentiable by TensorFlow, with our derivative.
        Otherwise asking for its gradient is an error.
      enable_xla: allow TensorFlow's XLA operations where no plain operation fits. TFLite and
        TF.js know only plain operations.
      native_serialization: carry the program as StableHLO inside one ``XlaCallModule``
        operation, instead of as TensorFlow operations (the default; see the configuration
        option ``jax2tf_default_native_serialization``).
      native_serialization_platforms: platforms for which a native program is lowered.
      native_serialization_disabled_checks: `DisabledSafetyCheck`s that native programs omit.

    Returns:
      A function of TensorFlow tensors (or NumPy arrays) with the structure of `fun_jax`.

    Raises (when called):
      NotImplementedError: an operation has no counterpart; the message names it.
      ValueError: shapes do not fit `polymorphic_shapes`.
    """
    if native_serialization is None or native_serialization == "default":
        native_serialization = flags.default_native_serialization.value
    if not enable_xla and native_serialization:
        raise ValueError("native_serialization is not supported with enable_xla=False")
    if native_serialization_platforms is not None:
        if not native_serialization:
            raise ValueError("native_serialization_platforms is only supported with native_serialization")
        if not isinstance(native_serialization_platforms, list | tuple) or not all(
            p in ("cpu", "cuda", "rocm", "tpu") for p in native_serialization_platforms
        ):
            raise ValueError(
                "native_serialization_platforms must be a sequence containing a subset of {'cpu', 'cuda', 'rocm', 'tpu'}."
                f" Got: {native_serialization_platforms}"
            )
    if native_serialization_disabled_checks and not native_serialization:
        raise ValueError("native_serialization_disabled_checks is only supported with native_serialization")
    name = function_name(fun_jax)

    def converted_fun_tf(*args_tf, **kwargs_tf):
        call = _Call(fun_jax, args_tf, kwargs_tf, polymorphic_shapes, polymorphic_constraints)
        if native_serialization:
            from bedrax.jax2tf import native

            run = native.runner(call, native_serialization_platforms, native_serialization_disabled_checks)
        else:
            run = functools.partial(_run_graph, call, enable_xla)
        return call.unflatten(_with_derivative(call, run, with_gradient, dict(
            enable_xla=enable_xla, native_serialization=native_serialization,
            native_serialization_platforms=native_serialization_platforms,
            native_serialization_disabled_checks=native_serialization_disabled_checks,
        )))  # fmt: skip

    # Not functools.wraps: tf.function would follow it to the signature of `fun_jax`, and pass its defaults as tensors.
    converted_fun_tf.__name__ = f"jax2tf_{name}" if name.isidentifier() else "jax2tf"
    converted_fun_tf.__doc__ = fun_jax.__doc__
    return tf.autograph.experimental.do_not_convert(converted_fun_tf)


class _Call:
    """One call of a converted function: its tensors, their types, and the traced program."""

    def __init__(self, fun: Callable, args, kwargs, polymorphic_shapes, constraints):
        self.fun = fun
        self.name = function_name(fun)
        args, kwargs = arguments.without_wrappers(args), arguments.without_wrappers(kwargs)
        leaves, self.in_tree = pytree.tree_flatten((tuple(args), kwargs))
        self.tensors = [arguments.to_tensor(x) for x in leaves]
        specs = self._specs(args, kwargs, polymorphic_shapes)
        shapes = [tuple(t.shape) if t.shape.rank is not None else None for t in self.tensors]
        for shape, leaf in zip(shapes, leaves, strict=True):
            if shape is None:
                raise ValueError(f"jax2tf.convert: the rank of every argument must be known, but that of {leaf} is not")
        symbolic = shape_poly.symbolic_shapes(shapes, specs, constraints)
        self.avals = [ShapedArray(s, types.numpy_dtype(t.dtype)) for s, t in zip(symbolic, self.tensors, strict=True)]
        self.flat = staging.flat_fun(fun, self.in_tree)
        self.jaxpr, self.out_tree = staging.trace_to_jaxpr(self.flat, self.avals)

    def _specs(self, args, kwargs, polymorphic_shapes) -> list:
        count = self.in_tree.num_leaves
        if polymorphic_shapes is None:
            return [None] * count
        if isinstance(polymorphic_shapes, str | PolyShape):
            polymorphic_shapes = (polymorphic_shapes,) * len(args)
        elif not isinstance(polymorphic_shapes, Sequence) or len(polymorphic_shapes) != len(args):
            raise TypeError(
                "jax2tf.convert: polymorphic_shapes must be None, a string, or a sequence with one entry per positional"
                f" argument; got {polymorphic_shapes!r} for {len(args)} arguments"
            )
        is_spec = lambda x: x is None or isinstance(x, str | PolyShape)
        try:
            found = pytree.tree_broadcast_leaves(
                (tuple(polymorphic_shapes), dict.fromkeys(kwargs)), (tuple(args), kwargs), is_leaf=is_spec
            )
        except (ValueError, TypeError) as e:
            raise ValueError(f"jax2tf.convert: polymorphic_shapes must be a pytree prefix of the arguments: {e}") from e
        return [None if s is None else str(s) for s in found]

    def dim_env(self, tensors) -> dict[str, Any]:
        """Values of the dimension variables, from the actual shapes of `tensors`."""
        dynamic: dict[int, Any] = {}

        def size(arg: int, axis: int):
            known = tensors[arg].shape[axis]
            if known is not None:
                return int(known)
            if arg not in dynamic:
                dynamic[arg] = tf.shape(tensors[arg])
            return graph.Size(dynamic[arg][axis])

        actual = str(tuple([t.shape for t in tensors]))
        return shape_poly.solve_dims([a.shape for a in self.avals], size, actual=actual)

    def unflatten(self, outs):
        return pytree.tree_unflatten(self.out_tree, outs)


def _run_graph(call: _Call, enable_xla: bool, tensors) -> list:
    """Convert the call's program to TensorFlow operations on `tensors`."""
    values = [tf.convert_to_tensor(t) for t in tensors]
    ctx = graph.Context(enable_xla, call.dim_env(values) if _is_symbolic(call.avals) else {})
    return [tf.identity(x) for x in graph.run_program(ctx, call.jaxpr, values)]


def _is_symbolic(avals) -> bool:
    return not all(dims.is_constant_shape(a.shape) for a in avals)


def _with_derivative(call: _Call, run: Callable, with_gradient: bool, options: dict) -> list:
    """Run, with our derivative as TensorFlow's gradient, or with an error in its place."""
    if not with_gradient:
        outs = run(call.tensors)
        return [
            tf.raw_ops.PreventGradient(
                input=x,
                message="The jax2tf-converted function does not support gradients. Use `with_gradient` parameter to enable gradients",
            )
            for x in outs
        ]
    # Variables must reach the custom gradient as tensors: their gradient flows through this read.
    inputs = [tf.convert_to_tensor(t) for t in call.tensors]

    @tf.custom_gradient
    def with_custom_gradient(*tensors):
        outs = run(tensors)

        def grad_fn(*cts, variables=None):
            if variables:
                raise ValueError(f"Unexpected variables used in forward pass: {[v.name for v in variables]}")
            found = iter(_pull_back(call, tensors, cts, options))
            return tuple(next(found) if _differentiable(a) else None for a in call.avals)

        return tuple(outs), grad_fn

    if not inputs:
        return list(run(()))
    outs = with_custom_gradient(*inputs)
    return list(outs) if isinstance(outs, list | tuple) else [outs]


def _differentiable(aval) -> bool:
    return dtypes.is_inexact(aval.dtype)


def _pull_back(call: _Call, tensors, cts, options: dict) -> list:
    """Gradients of the differentiable arguments, by converting our pullback."""
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

    def spec(aval):
        return str(PolyShape(*aval.shape)) if not dims.is_constant_shape(aval.shape) else None

    shapes = [
        [spec(a) for a in call.avals],
        [spec(a) for a, m in zip(call.jaxpr.out_avals, out_active, strict=True) if m],
    ]
    given = [ct for ct, m in zip(cts, out_active, strict=True) if m]
    converted = convert(
        pullback, polymorphic_shapes=shapes, polymorphic_constraints=shape_poly.constraints_of(call.avals),
        with_gradient=True, **options,
    )  # fmt: skip
    return converted(list(tensors), given)
