"""`call_tf_p`: the call of a TensorFlow function as an operation, its effects, and its rules.

Parameters: `fun` (a `TfFunction`), `output_avals` (declared types of the results, or None),
`has_side_effects`, `ordered`, `call_tf_graph`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax import lax
from bedrax.autodiff.tables import Zero, jvp_rules, transpose_rules
from bedrax.batching.tables import batch_rules, to_front
from bedrax.call_tf import border
from bedrax.core import dtypes, effects
from bedrax.core.avals import aval_of
from bedrax.core.tables import effect_rules, print_rules
from bedrax.core.tracing import Primitive
from bedrax.lax.primitives.custom_rules import custom_lin_p
from bedrax.numpy_backend.tables import numpy_rules
from bedrax.tf.tables import tf_calls


class _TfEffect(effects.Effect):
    __slots__ = ()

    def __eq__(self, other):
        return type(other) is type(self)

    def __hash__(self):
        return hash(type(self))

    def __repr__(self):
        return type(self).__name__


class CallTfEffect(_TfEffect):
    """A call of a TensorFlow function that may do more than compute its results."""

    __slots__ = ()


class CallTfOrderedEffect(_TfEffect):
    """Such calls, in program order."""

    __slots__ = ()


call_tf_effect = CallTfEffect()
call_tf_ordered_effect = CallTfOrderedEffect()
for _type in (CallTfEffect, CallTfOrderedEffect):
    for _allowed in (
        effects.lowerable_effects, effects.control_flow_allowed_effects, effects.remat_allowed_effects,
        effects.custom_derivatives_allowed_effects,
    ):  # fmt: skip
        _allowed.add_type(_type)
effects.ordered_effects.add_type(CallTfOrderedEffect)
effects.shardable_ordered_effects.add_type(CallTfOrderedEffect)

call_tf_p = Primitive("call_tf", multiple_results=True)
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
    """TensorFlow's eager mode runs it, now."""
    for aval in map(aval_of, args):
        if dtypes.is_extended(aval.dtype):
            border.tensor_spec(aval)  # raises
    return [border.to_array(x, args) for x in border.run_eagerly(fun, args)]


@numpy_rules.rule(call_tf_p)
def _numpy(*args, fun, **_):
    return [np.asarray(x) for x in border.run_eagerly(fun, args)]


def _in_place(*tensors, fun, **_):
    """The TensorFlow function itself, where a program is converted to TensorFlow operations."""
    return fun(*tensors)


tf_calls.add(call_tf_p, _in_place)

# ---- transformations


@jvp_rules.rule(call_tf_p, kind="custom vjp")
def _derivative(primals, tangents, *, fun, has_side_effects, ordered, call_tf_graph, output_avals):
    params = dict(has_side_effects=has_side_effects, ordered=ordered, call_tf_graph=call_tf_graph)
    outs = call_tf_p.bind(*primals, fun=fun, output_avals=output_avals, **params)
    active = tuple(type(t) is not Zero for t in tangents)
    live = [t for t in tangents if type(t) is not Zero]
    if not live:
        return outs, [Zero.of(x) for x in outs]
    types, out_types = ([aval_of(x).strip_weak_type() for x in xs] for xs in (primals, outs))
    vjp = fun.vjp(types, out_types)
    wanted = tuple(a for a in types if dtypes.is_inexact(a.dtype))

    def bwd(residuals, cts):
        given = [ct for ct, a in zip(cts, out_types, strict=True) if dtypes.is_inexact(a.dtype)]
        found = iter(call_tf_p.bind(*residuals, *given, fun=vjp, output_avals=wanted, **params))
        return [next(found) if dtypes.is_inexact(a.dtype) else None for a in types]

    tangent_types = tuple(a.to_tangent_aval() for a in out_types)
    found = custom_lin_p.bind(
        *primals, *live, bwd=bwd, num_res=len(primals), out_avals=tangent_types, active=active, symbolic_zeros=False
    )
    return outs, [t if dtypes.is_inexact(a.dtype) else Zero(a) for t, a in zip(found, tangent_types, strict=True)]


transpose_rules.absent(call_tf_p, why="whether a TensorFlow function is linear is not known; its derivative is")


@batch_rules.rule(call_tf_p, kind="one by one")
def _batched(axis, args, dims, *, has_side_effects, ordered, **params):
    if has_side_effects or ordered:
        raise NotImplementedError(
            "Batching rule for 'call_tf' not implemented: vmap cannot see into a TensorFlow function. If the function"
            " is pure, say call_tf(..., has_side_effects=False), and vmap calls it for one element after the other;"
            " or write it for batches and call it outside vmap."
        )
    params = dict(params, has_side_effects=False, ordered=False)
    mapped = [to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True) if d is not None]

    def call(rows) -> Any:
        rest = iter(rows)
        return call_tf_p.bind(*(x if d is None else next(rest) for x, d in zip(args, dims, strict=True)), **params)

    out = lax.map(call, mapped)
    return out, [0] * len(out)
