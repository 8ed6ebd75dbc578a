"""Differentiation of `custom_vmap` functions: the derivative's batching rule is the derivative of the user's rule.

The tangents are a `custom_vmap` call of their own, linear in the tangents that it takes, and so is the
transposed one: `vmap` of either differentiates (and transposes) the user's rule.
"""

from __future__ import annotations

from bedrax.autodiff.forward import jvp_flat_with_aux, jvp_program
from bedrax.autodiff.linearization import backward_pass, transpose_jaxpr
from bedrax.autodiff.tables import (
    UndefinedPrimal,
    flags,
    has_tangent,
    is_undefined,
    jvp_rules,
    live,
    spread,
    transpose_rules,
)
from bedrax.batching.custom_batching import custom_vmap_p
from bedrax.core import staging
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.dead_code import kept
from bedrax.core.ir import run
from bedrax.lax.axes import broadcast_axis
from bedrax.lax.symbolic_zeros import Zero, instantiate


def _mapped(x, is_mapped: bool, size):
    """`x` with a mapped axis in front."""
    return x if is_mapped else broadcast_axis(x, size, 0)


@jvp_rules.rule(custom_vmap_p)
def _jvp(primals, tangents, *, call, rule, num_consts):
    if any(flags(tangents[:num_consts])):
        # The rule does not take the values that the function closes over: differentiate the function without it.
        return jvp_program(call, primals, tangents)
    active = flags(tangents)
    count = len(primals)

    def pushed(fun, values):
        """Tangents of the differentiable results of ``fun(*primals)``, and its other return value."""
        edge = len(values) - sum(active)
        of = active[count - edge :]  # without constants, which have no tangents
        outs, moved, aux = jvp_flat_with_aux(fun, values[:edge], spread(values[edge:], of, values[:edge]))
        return [instantiate(t) for x, t in zip(outs, moved, strict=True) if _has_tangent(x)], aux

    def tangent_call(*values):
        return pushed(lambda *xs: (run(call, *xs), None), values)[0]

    types = [aval_of(x) for x in primals]
    tangent_types = [t.to_tangent_aval() for t in kept(types, active)]
    program, hoisted = staging.close_over(staging.program_of(tangent_call, [*types, *tangent_types]))

    def tangent_rule(size, batched, values):
        # A primal and its tangent are mapped together.
        n = count - num_consts
        of = active[num_consts:]
        is_mapped, mapped = list(batched[:n]), list(values[:n])
        late = iter(zip(batched[n:], values[n:], strict=True))
        moved = []
        for i in range(n):
            if of[i]:
                flag, t = next(late)
                both = is_mapped[i] or flag
                mapped[i] = _mapped(mapped[i], is_mapped[i], size) if both else mapped[i]
                moved.append(_mapped(t, flag, size) if both else t)
                is_mapped[i] = both

        def of_values(*xs):
            outs, out_flags = rule(size, is_mapped, list(xs))
            return outs, [f for x, f in zip(outs, out_flags, strict=True) if _has_tangent(x)]

        return pushed(of_values, [*mapped, *moved])

    outs = custom_vmap_p.bind(*primals, call=call, rule=rule, num_consts=num_consts)
    moved = iter(
        custom_vmap_p.bind(
            *hoisted, *primals, *live(tangents), call=program, rule=tangent_rule, num_consts=len(hoisted) + num_consts
        )
    )
    return outs, [next(moved) if _has_tangent(x) else Zero.of(x) for x in outs]


def _has_tangent(x) -> bool:
    return has_tangent(aval_of(x).dtype)


@transpose_rules.rule(custom_vmap_p)
def _transpose(cts, *args, call, rule, num_consts):
    linear = tuple(is_undefined(x) for x in args)
    arriving = flags(cts)
    types = [x.aval for x in args if is_undefined(x)]
    program, leaving = transpose_jaxpr(call, linear, arriving)
    program, hoisted = staging.close_over(program)

    def transposed_rule(size, batched, values):
        others = iter(zip(batched, values, strict=True))
        known = [None if lin else next(others) for lin in linear[num_consts:]]

        def of_mapped(*mapped):
            rest = iter(mapped)
            pairs = [(True, next(rest)) if k is None else k for k in known]
            outs, is_mapped = rule(size, [f for f, _ in pairs], [x for _, x in pairs])
            return [_mapped(x, f, size) for x, f, here in zip(outs, is_mapped, arriving, strict=True) if here]

        mapped_types = [ShapedArray((size, *t.shape), t.dtype) for t in types]
        forward = staging.program_of(of_mapped, mapped_types)
        back = backward_pass(
            forward, [UndefinedPrimal(t) for t in mapped_types], [_mapped(ct, f, size) for f, ct in others]
        )
        found = list(map(instantiate, kept(back, leaving)))
        return found, [True] * len(found)

    out = iter(
        custom_vmap_p.bind(
            *hoisted,
            *(x for x in args if not is_undefined(x)),
            *live(cts),
            call=program,
            rule=transposed_rule,
            num_consts=len(hoisted) + num_consts,
        )
    )
    here = iter(leaving)
    return [next(out) if lin and next(here) else None for lin in linear]
