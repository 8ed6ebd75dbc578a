"""Equations in programs for several platforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bedrax.core.tables import programs
from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.lowering.build import Block
from bedrax.xla_backend.lowering.types import ir


def lower_equation(ctx: Any, values: Sequence[Any]) -> Any:
    """Lower one equation for all platforms of the program: once if their rules agree, else as a choice by index."""
    program, prim, params = ctx.program, ctx.prim, ctx.params
    if not program.platforms:
        return program.find_rule(prim, program.platform)(ctx, *values, **params)
    platforms, index = program.platforms, program.platform_index
    rules = [program.find_rule(prim, p) for p in platforms]
    if programs[prim](params) and len(set(map(id, rules))) == 1:
        return rules[0](ctx, *values, **params)  # the equations inside are lowered one by one
    program.platform_asked = len(set(map(id, rules))) > 1
    program.platforms = ()
    try:
        text = _attempt(ctx, rules[0], values, params)
        agree = not program.platform_asked
        if not agree:
            agree = True
            for rule, platform in zip(rules[1:], platforms[1:], strict=True):
                program.platform = platform
                agree = agree and _attempt(ctx, rule, values, params) == text
        if not agree:

            def branch(rule, platform):
                def body():
                    program.platform = platform
                    out = rule(ctx, *values, **params)
                    return list(out) if prim.multiple_results else out

                return (), body

            result_types = [types.type_of(a) for a in ctx.avals_out]
            regions = [branch(r, p) for r, p in zip(rules, platforms, strict=True)]
            out = ctx.emit("stablehlo.case", (index,), result_types, regions=regions)
            return out if prim.multiple_results else out[0]
    finally:
        program.platform = platforms[0]
        program.platforms = platforms
    program.platforms = ()
    try:
        return rules[0](ctx, *values, **params)
    finally:
        program.platforms = platforms


def _attempt(ctx, rule, values, params) -> str:
    """The text of the operations that a rule appends. The operations are erased."""
    program = ctx.program
    if program.scratch is None:
        program.scratch = ir.Operation.create("builtin.module", regions=1, loc=types.unknown)
        program.scratch.regions[0].blocks.append()
    block = program.scratch.regions[0].blocks[0]
    host_callbacks, keepalives = list(program.host_callbacks), list(program.keepalives)
    attempt = ir.Operation.create("builtin.module", regions=1, loc=types.unknown, ip=ir.InsertionPoint(block))
    inner = attempt.regions[0].blocks.append(*[v.type for v in values], arg_locs=[types.unknown] * len(values))
    saved, shapes = ctx.block, program.shapes
    ctx.block = Block(program, ir.InsertionPoint(inner), dict(saved.tokens))
    # The shapes of erased values are forgotten: MLIR reuses their memory, so a later value would equal one of them.
    program.shapes = {a: shapes[v] for a, v in zip(inner.arguments, values, strict=True) if v in shapes}
    try:
        rule(ctx, *inner.arguments, **params)
        return attempt.get_asm(print_generic_op_form=True)
    finally:
        ctx.block, program.shapes = saved, shapes
        attempt.erase()
        program.host_callbacks[:], program.keepalives[:] = host_callbacks, keepalives
