"""A new operation that holds a program: `repeat` applies a function a known number of times.

It declares its program and the wiring of operands and results (`programs`), its reconstruction (`with_programs`), and
its result (a decomposition, which every backend evaluates). One line each adds forward mode, batching, checks and
references. Type checks, dead code, inlining and the two transformations in this folder need no line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bedrax import lax, pytree
from bedrax.autodiff.holders import pushes_programs
from bedrax.batching.holders import batches_programs
from bedrax.checkify.holders import checks_programs
from bedrax.core.avals import abstractify
from bedrax.core.ir import run
from bedrax.core.staging import trace_function
from bedrax.core.tables import CONSTANT, Use, count, programs, with_programs
from bedrax.core.tracing import Primitive
from bedrax.lax.tables import decompositions
from bedrax.state.holders import discharges_programs

# params: body (constants, carry -> carry), num_consts, times
repeat_p = Primitive("repeat", multiple_results=True)
repeat_p.abstract(lambda *avals, body, num_consts, times: body.out_avals)


@programs.rule(repeat_p)
def _programs(params):
    body, first = params["body"], params["num_consts"]
    operands, results = tuple(range(len(body.invars))), tuple(range(len(body.outvars)))
    return [
        Use(body, operands, results, rounds=params["times"], carries=tuple(zip(operands[first:], results, strict=True)))
    ]


@with_programs.rule(repeat_p)
def _rebuilt(params, bodies, operands, results):
    return {**params, "body": bodies[0], "num_consts": count(operands, CONSTANT)}


@decompositions.rule(repeat_p)
def _meaning(*args, body, num_consts, times):
    consts, carry = args[:num_consts], list(args[num_consts:])
    return lax.fori_loop(0, times, lambda _, state: run(body, *consts, *state), carry)


pushes_programs(repeat_p)
batches_programs(repeat_p)
checks_programs(repeat_p)
discharges_programs(repeat_p)


def repeat(f: Callable, times: int, x: Any) -> Any:
    """``f(f(...f(x)))``.

    Args:
      f: takes and returns a pytree of arrays of the same structure, shapes and dtypes.
      times: the number of applications.
      x: the first argument, a pytree.
    """
    leaves, tree = pytree.tree_flatten(x)
    in_tree = pytree.tree_structure(((x,), {}))
    body, consts, _ = trace_function(f, in_tree, tuple(map(abstractify, leaves)))
    out = repeat_p.bind(*consts, *leaves, body=body, num_consts=len(consts), times=times)
    return pytree.tree_unflatten(tree, out)
