"""`call_tf_p`: the call of a TensorFlow function as an operation, its effects, and its rules.

Parameters: `fun` (a `TfFunction`), `output_avals` (declared types of the results, or None),
`has_side_effects`, `ordered`, `call_tf_graph`.

`call_tf_tangent_p` is its derivative. It is linear in the operands after the arguments, which are the tangents of the
`active` arguments. It evaluates to the function's Jacobian-vector product; its transpose, to the vector-Jacobian
product.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bedrax.autodiff.tables import Zero, flags, instantiate, jvp_rules, live, spread, transpose_rules
from bedrax.batching.tables import all_to_front, batch_rules, to_front
from bedrax.call_tf import border
from bedrax.core import dtypes, effects
from bedrax.core.avals import aval_of
from bedrax.core.tables import effect_rules, print_rules
from bedrax.core.tracing import Primitive
from bedrax.numpy_backend.tables import numpy_rules
from bedrax.tf.tables import tf_calls


class _TfEffect(effects.Effect):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return type(self).__name__


class CallTfEffect(_TfEffect):
    """A call of a TensorFlow function that may have effects.

    Examples:

      >>> import tensorflow as tf
      >>> import importlib
      >>> from jax.experimental import jax2tf
      >>> call_tf = importlib.import_module("jax.experimental.jax2tf.call_tf")  # its name in the package is the function

      >>> program = jax.make_jaxpr(jax2tf.call_tf(tf.sin))(1.)
      >>> [type(effect) is call_tf.CallTfEffect for effect in program.effects]
      [True]
    """

    __slots__ = ()


class CallTfOrderedEffect(_TfEffect):
    """A call of a TensorFlow function that may have effects. Calls with it run in the order of the program.

    Examples:

      >>> import tensorflow as tf
      >>> import importlib
      >>> from jax.experimental import jax2tf
      >>> call_tf = importlib.import_module("jax.experimental.jax2tf.call_tf")  # its name in the package is the function

      >>> program = jax.make_jaxpr(jax2tf.call_tf(tf.sin, ordered=True))(1.)
      >>> [type(effect) is call_tf.CallTfOrderedEffect for effect in program.effects]
      [True]
    """

    __slots__ = ()


call_tf_effect: Final = CallTfEffect()
call_tf_ordered_effect: Final = CallTfOrderedEffect()
for _type in (CallTfEffect, CallTfOrderedEffect):
    for _allowed in (
        effects.lowerable_effects,
        effects.control_flow_allowed_effects,
        effects.remat_allowed_effects,
        effects.custom_derivatives_allowed_effects,
    ):
        _allowed.add_type(_type)
effects.ordered_effects.add_type(CallTfOrderedEffect)
effects.shardable_ordered_effects.add_type(CallTfOrderedEffect)

call_tf_p: Final = Primitive("call_tf", multiple_results=True)
print_rules.add(call_tf_p, lambda params: {**params, "fun": params["fun"].name})


@call_tf_p.abstract
def _types(*avals, fun, output_avals, **_):
    found = fun.result_types(avals) if output_avals is None else fun.concrete(avals) and output_avals
    return list(found)


def _effects(*avals, has_side_effects, ordered, **_):
    if ordered:
        return {call_tf_ordered_effect}
    return {call_tf_effect} if has_side_effects else set()


effect_rules.add(call_tf_p, _effects)


@call_tf_p.def_impl
def _eager(*args, fun, **_):
    """TensorFlow runs it eagerly."""
    for aval in map(aval_of, args):
        if dtypes.is_extended(aval.dtype):
            border.tensor_spec(aval)  # raises
    written = [x for x in args if type(x) is np.ndarray]
    return [border.to_array(x, written) for x in border.run_eagerly(fun, args)]


@numpy_rules.rule(call_tf_p)
def _numpy(*args, fun, **_):
    return [np.asarray(x) for x in border.run_eagerly(fun, args)]


def _in_place(*tensors, fun, **_):
    """The TensorFlow function itself, in a program that is converted to TensorFlow operations."""
    return fun(*tensors)


tf_calls.add(call_tf_p, _in_place)

# ---- derivatives


call_tf_tangent_p: Final = Primitive("call_tf_tangent", multiple_results=True)
print_rules.add(call_tf_tangent_p, lambda params: {**params, "fun": params["fun"].name})
effect_rules.add(call_tf_tangent_p, _effects)


def forward_call(params: dict[str, Any]) -> dict[Any, Any]:
    """Parameters of the call that computes a tangent."""
    params = dict(params)
    active, types = params.pop("active"), params.pop("out_avals")
    fun = params["fun"].jvp(active, tuple([dtypes.is_inexact(a.dtype) for a in types]))
    return dict(params, fun=fun, output_avals=tuple([a for a in types if dtypes.is_inexact(a.dtype)]))


@call_tf_tangent_p.abstract
def _tangent_types(*avals, out_avals, **_):
    return [a.strip_weak_type() for a in out_avals if dtypes.is_inexact(a.dtype)]


call_tf_tangent_p.def_impl(lambda *args, **params: _eager(*args, **forward_call(params)))
numpy_rules.add(call_tf_tangent_p, lambda *args, **params: _numpy(*args, **forward_call(params)))
tf_calls.add(call_tf_tangent_p, lambda *tensors, **params: _in_place(*tensors, **forward_call(params)))


@jvp_rules.rule(call_tf_p, kind="another call")
def _derivative(primals, tangents, *, output_avals, **params):
    outs = call_tf_p.bind(*primals, output_avals=output_avals, **params)
    active = flags(tangents)
    out_avals = tuple([aval_of(x).strip_weak_type() for x in outs])
    inexact = [dtypes.is_inexact(a.dtype) for a in out_avals]
    if not any(active) or not any(inexact):
        return outs, [Zero.of(x) for x in outs]
    found = call_tf_tangent_p.bind(*primals, *live(tangents), active=active, out_avals=out_avals, **params)
    return outs, spread(found, inexact, outs)


@jvp_rules.rule(call_tf_tangent_p, kind="another call")
def _derivative_of_tangent(primals, tangents, **params):
    """The tangent of the call that computes the tangent."""
    return _derivative(primals, tangents, **forward_call(params))


@transpose_rules.rule(call_tf_tangent_p, kind="another call")
def _transposed(cts, *args, fun, active, out_avals, **params):
    primals = args[: len(active)]
    wanted = tuple([aval_of(x).strip_weak_type() for x, a in zip(primals, active, strict=True) if a])
    vjp = fun.vjp(active, tuple([dtypes.is_inexact(a.dtype) for a in out_avals]))
    found = call_tf_p.bind(*primals, *map(instantiate, cts), fun=vjp, output_avals=wanted, **params)
    return [None] * len(primals) + list(found)


transpose_rules.absent(call_tf_p, why="a TensorFlow function may not be linear; its derivative is")

# ---- batching


def _with_axis(avals, size) -> tuple:
    return tuple([a.update(shape=(size, *a.shape)) for a in avals])


def _without_axis(aval, dim):
    return aval if dim is None else aval.update(shape=aval.shape[:dim] + aval.shape[dim + 1 :])


@batch_rules.rule(call_tf_p, kind="vectorized by TensorFlow")
def _batched(axis, args, dims, *, fun, output_avals, **params):
    mapped = tuple([d is not None for d in dims])
    if output_avals is None and type(axis.size) is not int:  # TensorFlow has no types for such stacks
        output_avals = tuple(fun.result_types([_without_axis(aval_of(x), d) for x, d in zip(args, dims, strict=True)]))
    args = [to_front(x, d, axis.size) if m else x for x, d, m in zip(args, dims, mapped, strict=True)]
    out = call_tf_p.bind(
        *args,
        fun=fun.batched(mapped, params["has_side_effects"] or params["ordered"]),
        output_avals=output_avals and _with_axis(output_avals, axis.size),
        **params,
    )
    return out, [0] * len(out)


@batch_rules.rule(call_tf_tangent_p, kind="vectorized by TensorFlow")
def _batched_tangent(axis, args, dims, *, fun, active, out_avals, **params):
    # All arguments are mapped: then the operation is still the tangent of one function.
    args = all_to_front(args, dims, axis.size)
    batched = fun.batched((True,) * len(active), params["has_side_effects"] or params["ordered"])
    out = call_tf_tangent_p.bind(
        *args, fun=batched, active=active, out_avals=_with_axis(out_avals, axis.size), **params
    )
    return out, [0] * len(out)
