"""StableHLO of control flow: scan and while are `stablehlo.while`, cond is `stablehlo.case`.

The values of a loop are, in this order: the counter, constants, tokens of ordered effects, carried values, scanned
inputs, stacked results.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax.core import dims, effects, positions
from bedrax.lax import element_types
from bedrax.lax.primitives import control_flow as p
from bedrax.lax.primitives.markers import index_of_platform
from bedrax.xla_backend.tables import lowering_rules

if TYPE_CHECKING:
    from bedrax.core.ir import Jaxpr


def ordered(*jaxprs: Jaxpr) -> list[Any]:
    """The ordered effects of programs, in a fixed order."""
    found = {e for jaxpr in jaxprs for e in jaxpr.effects if e in effects.ordered_effects}
    return sorted(found, key=str)


def _loop(ctx, init: list, cond, body) -> list:
    """``while cond(*values): values = body(*values)``, from the values `init`."""
    types = [v.type for v in init]
    return ctx.emit("stablehlo.while", init, types, regions=[(types, cond), (types, body)])


def _set_tokens(ctx, tokens_of: list, values) -> None:
    for effect, token in zip(tokens_of, values):
        ctx.set_token(effect, token)


def _with_tokens(ctx, tokens_of: list, values, run) -> tuple[list, list]:
    """Call `run` with the given tokens current. Returns their successors and the results."""
    _set_tokens(ctx, tokens_of, values)
    out = run()
    return [ctx.token(effect) for effect in tokens_of], out


@lowering_rules.rule(p.while_p)
def _while(ctx, *operands, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    # The condition of StableHLO's loop returns no tokens. If the condition function has ordered effects, the loop
    # carries its result, which is computed before the loop and at the end of each round.
    known = bool(ordered(cond_jaxpr))
    of = ordered(cond_jaxpr, body_jaxpr)
    a, b, c = cond_nconsts, cond_nconsts + body_nconsts, cond_nconsts + body_nconsts + len(of)
    first = c + known  # of the carried values

    def holds(constants, carry):
        return ctx.inline_jaxpr(cond_jaxpr, *constants, *carry, part="while/cond")

    def cond(*values):
        return [values[c]] if known else holds(values[:a], values[first:])

    def body(*values):
        def round_of_loop():
            out = ctx.inline_jaxpr(body_jaxpr, *values[a:b], *values[first:], part="while/body")
            return [*holds(values[:a], out), *out] if known else out

        successors, out = _with_tokens(ctx, of, values[b:c], round_of_loop)
        return [*values[:b], *successors, *out]

    begin = holds(operands[:a], operands[b:]) if known else []
    results = _loop(ctx, [*operands[:b], *[ctx.token(e) for e in of], *begin, *operands[b:]], cond, body)
    _set_tokens(ctx, of, results[b:c])
    return results[first:]


@lowering_rules.rule(p.cond_p)
def _cond(ctx, index, *operands, branches, branches_platforms=None):
    """With `branches_platforms`, lowers the branch of the platform. The other branches may be invalid on it."""
    targets = None
    if branches_platforms is not None:
        targets = ctx.program.platforms
        if not targets:
            return ctx.inline_jaxpr(branches[index_of_platform(ctx.platform, branches_platforms)], *operands)
        index = ctx.program.platform_index
        branches = [branches[index_of_platform(name, branches_platforms)] for name in targets]
    of = ordered(*branches)
    tokens = [ctx.token(e) for e in of]

    def region(number, jaxpr, platform):
        run = lambda: ctx.inline_jaxpr(jaxpr, *operands, part=f"cond/branch_{number}_fun")

        def body():
            with ctx.only_platform(platform) if platform is not None else contextlib.nullcontext():
                successors, out = _with_tokens(ctx, of, tokens, run)
            return [*successors, *out]

        return (), body

    types = [ctx.token_type] * len(of) + [ctx.type_of(a) for a in ctx.avals_out]
    regions = list(map(region, itertools.count(), branches, targets or [None] * len(branches)))
    results = ctx.emit("stablehlo.case", (index,), types, regions=regions)
    _set_tokens(ctx, of, results)
    return results[len(of) :]


def _row(ctx, xs, index, aval, zero):
    """Element `index` along the leading axis of `xs`."""
    base = element_types.base_aval(aval)
    shape, dtype = base.shape, base.dtype
    if dims.is_constant_shape(shape):
        cut = ctx.emit(
            "stablehlo.dynamic_slice",
            (xs, index, *[zero] * len(shape)),
            ctx.tensor_type((1, *shape), dtype),
            slice_sizes=(1, *shape),
        )
    else:
        starts = ctx.vector([index, *[zero] * len(shape)])
        cut = ctx.window(xs, starts, (1, *shape), ctx.tensor_type((1, *shape), dtype))
    return ctx.reshape(cut, shape)


def _empty(ctx, length, aval):
    """An uninitialized stack of `length` results of a type."""
    base = element_types.base_aval(aval)
    bits = _bits(base.dtype)
    return ctx.full((length, *base.shape), bits.type(0), bits)


def _with_row(ctx, stack, y, index, zero):
    """`stack` with `y` written to position `index` of its leading axis."""
    row = ctx.reshape(y, (1, *ctx.shape(y)))
    starts = [index, *[zero] * y.type.rank]
    return ctx.emit("stablehlo.dynamic_update_slice", (stack, row, *starts), stack.type)


@lowering_rules.rule(p.scan_p)
def _scan(ctx, *operands, jaxpr, num_consts, num_carry, length, reverse, unroll=1, **_):
    split = num_consts + num_carry
    consts, carry, xs = list(operands[:num_consts]), list(operands[num_consts:split]), list(operands[split:])
    x_avals = jaxpr.in_avals[split:]
    y_avals = jaxpr.out_avals[num_carry:]
    of = ordered(jaxpr)
    tokens = [ctx.token(e) for e in of]
    ys = [_empty(ctx, length, aval) for aval in y_avals]
    if dims.is_constant_dim(length) and length == 0:
        return [*carry, *ys]

    static = dims.is_constant_dim(length)
    counting = positions.dtype_for(length)

    def number(n):
        return ctx.constant(n, counting) if static else ctx.dim_value(n)

    def step(index, tokens, carry, xs, ys, consts):
        """One step at position `index`. Returns tokens, carry and ys."""
        zero = ctx.constant(0, counting)
        rows = [_row(ctx, x, index, a, zero) for x, a in zip(xs, x_avals)]
        run = lambda: ctx.inline_jaxpr(jaxpr, *consts, *carry, *rows, part="while/body/closed_call")
        tokens, out = _with_tokens(ctx, of, tokens, run)
        written = [_with_row(ctx, stack, y, index, zero) for stack, y in zip(ys, out[num_carry:])]
        return tokens, out[:num_carry], written

    def position(counter):
        """The position in the scanned arrays of the `counter`-th step."""
        if not reverse:
            return counter
        last = ctx.binary("stablehlo.subtract", number(length), ctx.constant(1, counting))
        return ctx.binary("stablehlo.subtract", last, counter)

    unroll = min(unroll, length) if static else 1
    looped = length - length % unroll if static else length
    if static and looped == unroll:  # one iteration: no loop
        looped = 0
    if not static or looped:
        n_consts, n_tokens, n_xs = len(consts), len(of), len(xs)
        ends = np.cumsum([1, n_consts, n_tokens, num_carry, n_xs, len(ys)]).tolist()

        def parts(values):
            return [list(values[a:b]) for a, b in itertools.pairwise(ends)]

        limit = number(looped)

        def cond(counter, *rest):
            bound = number(looped) if static else rest[-1]
            return ctx.compare(counter, bound, "LT")

        def body(counter, *rest):
            consts, tokens, carry, xs, ys = parts((counter, *rest))
            now = counter
            for _ in range(unroll):
                tokens, carry, ys = step(position(now), tokens, carry, xs, ys, consts)
                now = ctx.binary("stablehlo.add", now, ctx.constant(1, counting))
            return [now, *consts, *tokens, *carry, *xs, *ys, *([] if static else [rest[-1]])]

        init = [ctx.constant(0, counting), *consts, *tokens, *carry, *xs, *ys, *([] if static else [limit])]
        results = _loop(ctx, init, cond, body)
        _, tokens, carry, _, ys = parts(results)
    if static:
        for i in range(looped, length):
            index = ctx.constant(length - 1 - i if reverse else i, counting)
            tokens, carry, ys = step(index, tokens, carry, xs, ys, consts)
    _set_tokens(ctx, of, tokens)
    return [*carry, *ys]


def _bits(dtype: np.dtype) -> np.dtype:
    """The dtype of the arrays that represent `dtype`: booleans for float0."""
    return np.dtype(bool) if dtype.kind == "V" and not dtype.itemsize else dtype
