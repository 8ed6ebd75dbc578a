"""Primitives of libraries that call the program in their parameter `call_jaxpr`, with all their rules.

Needed by libraries that the documentation of `jax.extend.core` addresses (`create_call_primitive`, `register_call_primitive_rules`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bedrax.autodiff.holders import pushes_programs
from bedrax.autodiff.linearization import linearize_jaxpr, transpose_jaxpr
from bedrax.autodiff.tables import flags, is_undefined, linearize_rules, live, no_tangent, spread, transpose_rules
from bedrax.batching.holders import batches_programs
from bedrax.checkify.holders import checks_programs
from bedrax.core import staging
from bedrax.core.ir import Jaxpr, run
from bedrax.core.tables import Use, calls, programs, with_programs
from bedrax.core.tracing import Primitive
from bedrax.lax.tables import decompositions
from bedrax.state.holders import discharges_programs
from bedrax.xla_backend.tables import lowering_rules


def create_call_primitive(name: str, inline_jax_late: bool = True) -> Primitive:
    """A primitive that calls a program.

    Args:
      name: of the primitive.
      inline_jax_late: see `register_call_primitive_rules`.

    Returns:
      A primitive with several results. ``prim.bind(*args, call_jaxpr=program)`` calls the program. All transformations
      keep the other parameters.

    Examples:

      >>> from jax.extend import core

      >>> twice_p = jax.extend.core.create_call_primitive("twice")
      >>> program = jax.make_jaxpr(lambda x: 2 * x)(1.)
      >>> jax.grad(lambda x: twice_p.bind(x, call_jaxpr=program)[0])(3.)
      Array(2., dtype=float32, weak_type=True)
    """
    prim = Primitive(name, multiple_results=True)
    register_call_primitive_rules(prim, name, inline_jax_late=inline_jax_late)
    return prim


def register_call_primitive_rules(
    prim: Primitive,
    name: str | None = None,
    transpose_rule: Callable[..., Any] | None = None,
    inline_jax_late: bool = True,
) -> None:
    """Register all rules of a primitive that calls the program in its parameter `call_jaxpr`.

    A transformation of the call is a call of the transformed program.

    Args:
      prim: a primitive of several results.
      name: the name of the function in compiled modules. Default: the primitive's.
      transpose_rule: ``(cts, *args, call_jaxpr, **params) -> [cotangent or None per argument]``. Default: a call of the
        transposed program.
      inline_jax_late: replace the call by the program in compiled modules; False: keep a function call.

    Examples:

      >>> from jax.extend import core

      >>> double_p = jax.extend.core.Primitive("double")
      >>> double_p.multiple_results = True
      >>> jax.extend.core.register_call_primitive_rules(double_p)
      >>> program = jax.make_jaxpr(lambda x: 2 * x)(1.)
      >>> jax.vmap(lambda x: double_p.bind(x, call_jaxpr=program)[0])(jnp.arange(3.))
      Array([0., 2., 4.], dtype=float32)
    """
    called = name or prim.name

    def bind(program: Jaxpr, args: Sequence[Any], params: dict) -> list:
        program, consts = staging.close_over(program, every=False)
        return prim.bind(*consts, *args, call_jaxpr=program, **params)

    def evaluate(*args, call_jaxpr, **params):
        return run(call_jaxpr, *args)

    def linearize(primals, tangents, *, call_jaxpr, **params):
        lin = linearize_jaxpr(call_jaxpr, flags(tangents))
        out = bind(lin.primal, primals, params)
        results = out[: lin.num_out]
        if not any(lin.active_out):
            return results, no_tangent(prim, results)
        moved = bind(lin.linear, (*lin.residuals(primals, out), *live(tangents)), params)
        return results, spread(moved, lin.active_out, results)

    def transpose(cts, *args, call_jaxpr, **params):
        undefined = tuple(is_undefined(x) for x in args)
        program, leaving = transpose_jaxpr(call_jaxpr, undefined, flags(cts))
        out = iter(bind(program, (*(x for x in args if not is_undefined(x)), *live(cts)), params))
        here = iter(leaving)
        return [next(out) if u and next(here) else None for u in undefined]

    def lower(ctx, *operands, call_jaxpr, **params):
        if inline_jax_late:
            return ctx.inline_jaxpr(call_jaxpr, *operands)
        return ctx.call_jaxpr(called, call_jaxpr, *operands)

    def uses(params) -> list[Use]:
        return [calls(params["call_jaxpr"])]

    prim.multiple_results = True
    prim.abstract(lambda *avals, call_jaxpr, **params: call_jaxpr.out_avals)
    prim.def_impl(evaluate)
    decompositions.add(prim, evaluate)
    programs.add(prim, uses)
    with_programs.add(prim, lambda params, found, operands, results: {**params, "call_jaxpr": found[0]})
    pushes_programs(prim)
    linearize_rules.add(prim, linearize, "program")
    transpose_rules.add(prim, transpose_rule or transpose, "program")
    batches_programs(prim)
    checks_programs(prim)
    discharges_programs(prim)
    lowering_rules.add(prim, lower, "program")


def eval_jaxpr_transpose(prim: Primitive, ct: Sequence[Any], *args: Any, call_jaxpr: Jaxpr, **params: Any) -> list[Any]:
    """A transpose rule of a call that replaces the call by the transposed operations.

    Args:
      prim: the primitive of the call; bind it for ``functools.partial(eval_jaxpr_transpose, prim)``.
      ct: a cotangent or `Zero` for each result.
      args: values, and `UndefinedPrimal` for the linear arguments of the program.
      call_jaxpr: the program.
      params: other parameters of the call.

    Returns:
      A cotangent or None for each argument.

    Examples:

      >>> from jax.extend import core

      >>> import functools
      >>> triple_p = jax.extend.core.Primitive("triple")
      >>> triple_p.multiple_results = True
      >>> rule = functools.partial(jax.extend.core.eval_jaxpr_transpose, triple_p)
      >>> jax.extend.core.register_call_primitive_rules(triple_p, transpose_rule=rule)
      >>> program = jax.make_jaxpr(lambda x: 3 * x)(1.)
      >>> jax.linear_transpose(lambda x: triple_p.bind(x, call_jaxpr=program)[0], 1.)(2.)
      (Array(6., dtype=float32, weak_type=True),)
    """
    undefined = tuple(is_undefined(x) for x in args)
    program, leaving = transpose_jaxpr(call_jaxpr, undefined, flags(ct))
    out = iter(run(program, *(x for x in args if not is_undefined(x)), *live(ct)))
    here = iter(leaving)
    return [next(out) if u and next(here) else None for u in undefined]
