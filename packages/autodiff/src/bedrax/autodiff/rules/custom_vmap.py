"""Differentiation of `custom_vmap` functions: the derivative's batching rule is the derivative of the user's rule.

The tangents are a `custom_vmap` call of their own, linear in the tangents that it takes, and so is the
transposed one: `vmap` of either finds the user's rule, differentiated (and transposed) there and then.
"""

from __future__ import annotations

from bedrax.autodiff.forward import jvp_flat
from bedrax.autodiff.linearization import backward_pass, transpose_jaxpr
from bedrax.autodiff.tables import (
    UndefinedPrimal,
    Zero,
    instantiate,
    is_undefined,
    jvp_rules,
    transpose_rules,
)
from bedrax.batching.custom_batching import custom_vmap_p
from bedrax.core import dtypes, staging
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.ir import call_flat
from bedrax.lax.axes import broadcast_axis


def _spread(x, is_mapped: bool, size):
    """`x` with a mapped axis in front."""
    return x if is_mapped else broadcast_axis(x, size, 0)


@jvp_rules.rule(custom_vmap_p)
def _jvp(primals, tangents, *, call, rule, num_consts):
    if any(type(t) is not Zero for t in tangents[:num_consts]):
        # The rule does not say what it does with values that the function closes over: without it.
        return jvp_flat(lambda *xs: call_flat(call, xs), primals, tangents)
    active = [type(t) is not Zero for t in tangents]
    count = len(primals)

    def pushed(fun, values):
        """Tangents of the differentiable results of ``fun(*primals)``."""
        given, rest = values[: len(values) - sum(active)], iter(values[len(values) - sum(active) :])
        of = active[count - len(given) :]  # without constants: those have no tangents
        pairs = [next(rest) if a else Zero.of(x) for x, a in zip(given, of, strict=True)]
        outs, moved = jvp_flat(fun, given, pairs)
        return [instantiate(t) for x, t in zip(outs, moved, strict=True) if _has_tangent(x)]

    def tangent_call(*values):
        return pushed(lambda *xs: call_flat(call, xs), values)

    live = [t for t in tangents if type(t) is not Zero]
    types = [aval_of(x) for x in primals]
    tangent_types = [t.to_tangent_aval() for t, a in zip(types, active, strict=True) if a]
    program, hoisted = staging.close_over(staging.program_of(tangent_call, [*types, *tangent_types]))

    def tangent_rule(size, batched, values):
        # A primal and its tangent are mapped together.
        n = count - num_consts
        of = active[num_consts:]
        flags, mapped = list(batched[:n]), list(values[:n])
        late = iter(zip(batched[n:], values[n:], strict=True))
        moved = []
        for i in range(n):
            if of[i]:
                flag, t = next(late)
                both = flags[i] or flag
                mapped[i] = _spread(mapped[i], flags[i], size) if both else mapped[i]
                moved.append(_spread(t, flag, size) if both else t)
                flags[i] = both
        found: list = []

        def run(*xs):
            outs, out_flags = rule(size, flags, list(xs))
            found.append([f for x, f in zip(outs, out_flags, strict=True) if _has_tangent(x)])
            return outs

        return pushed(run, [*mapped, *moved]), found[-1]

    outs = custom_vmap_p.bind(*primals, call=call, rule=rule, num_consts=num_consts)
    moved = iter(
        custom_vmap_p.bind(
            *hoisted, *primals, *live, call=program, rule=tangent_rule, num_consts=len(hoisted) + num_consts
        )
    )
    return outs, [next(moved) if _has_tangent(x) else Zero.of(x) for x in outs]


def _has_tangent(x) -> bool:
    return dtypes.is_inexact(aval_of(x).dtype)


@transpose_rules.rule(custom_vmap_p)
def _transpose(cts, *args, call, rule, num_consts):
    linear = tuple(is_undefined(x) for x in args)
    arriving = tuple(type(ct) is not Zero for ct in cts)
    types = [x.aval for x in args if is_undefined(x)]
    program, leaving = transpose_jaxpr(call, linear, arriving)
    program, hoisted = staging.close_over(program)

    def transposed_rule(size, batched, values):
        others = iter(zip(batched, values, strict=True))
        known = [None if lin else next(others) for lin in linear[num_consts:]]

        def run(*mapped):
            rest = iter(mapped)
            pairs = [(True, next(rest)) if k is None else k for k in known]
            outs, flags = rule(size, [f for f, _ in pairs], [x for _, x in pairs])
            return [_spread(x, f, size) for x, f, here in zip(outs, flags, arriving, strict=True) if here]

        mapped_types = [ShapedArray((size, *t.shape), t.dtype) for t in types]
        forward = staging.program_of(run, mapped_types)
        back = backward_pass(
            forward, [UndefinedPrimal(t) for t in mapped_types], [_spread(ct, f, size) for f, ct in others]
        )
        kept = [instantiate(ct) for ct, here in zip(back, leaving, strict=True) if here]
        return kept, [True] * len(kept)

    out = iter(
        custom_vmap_p.bind(
            *hoisted, *(x for x in args if not is_undefined(x)), *(ct for ct in cts if type(ct) is not Zero),
            call=program, rule=transposed_rule, num_consts=len(hoisted) + num_consts,
        )
    )  # fmt: skip
    flags = iter(leaving)
    return [next(out) if lin and next(flags) else None for lin in linear]
