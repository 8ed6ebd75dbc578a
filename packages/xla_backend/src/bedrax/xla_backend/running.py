"""Runs of programs: lookup or compilation, calls through jaxlib's C++ dispatch, and the options of `jit` in a traced
call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bedrax import pytree
from bedrax.core import config, errors, objects, retracing, tracing
from bedrax.core.arrays_of_values import arrays_of, spread, values_of
from bedrax.core.avals import aval_of
from bedrax.core.codes import coded
from bedrax.core.context import trace_context
from bedrax.core.facts import fact
from bedrax.core.ir import Eqn, Jaxpr, Literal, Var, eval_jaxpr, last_uses
from bedrax.core.jitting import TracedCall
from bedrax.core.passes import called_program
from bedrax.core.tracing import eval_trace
from bedrax.lax.primitives.placement import reshard_p
from bedrax.parallel.primitives import crosses_processes
from bedrax.parallel.specs import UNCONSTRAINED
from bedrax.pytree import PyTreeDef
from bedrax.xla_backend import clients, first_calls, placement, turns
from bedrax.xla_backend import compile as compile_module
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.placement import NOTHING_REQUESTED, Requested
from bedrax.xla_backend.sharding import make_single_device_sharding


def _shard_arg_fallback(x: Any, s: Any, *layout: Any):
    """Called from C++ for an argument in another place than that of its executable."""
    placed = placement.to_sharding(x, s, committed=False)
    wanted = next((v for v in layout if v is not None), None)
    return placed if wanted is None else placement.with_layout(placed, wanted)


def make_pjit(
    name: str,
    fun: Any,
    miss: Callable[..., Any],
    static_argnums: tuple[int, ...] = (),
    static_argnames: tuple[str, ...] = (),
    key: tuple[Any, ...] = (),
) -> Callable[..., Any]:
    return runtime.pjit(
        name,
        fun,
        miss,
        tuple(static_argnums),
        tuple(static_argnames),
        key,
        pytree.dispatch_registry,
        _shard_arg_fallback,
    )


def make_runner(name: str, miss: Callable[..., Any]) -> Callable[..., Any]:
    """A dispatched function; with jit disabled, C++ calls `direct` instead."""

    def direct(*args, **kwargs):
        return miss(*args, **kwargs)[0]

    return make_pjit(name, direct, miss)


def explain_depth(error: SystemError, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raises a RecursionError if the arguments of a call by C++ are nested too deeply.

    C++ detects the nesting first, and continues with a RecursionError set. The next C function that checks raises it,
    or raises a SystemError with it as the cause.
    """
    if isinstance(error.__cause__, RecursionError):
        pytree.tree_structure((args, kwargs))


def load(
    jaxpr: Jaxpr,
    args: Sequence[Any],
    params: dict[str, Any],
    requested: Requested = NOTHING_REQUESTED,
    names: LazyNames | None = None,
) -> compile_module.LoadedProgram:
    """The executable for a program and the places of its arguments; compiled once for each."""
    where = placement.choose_placement(jaxpr, args, requested)
    key = (
        "xla",
        where,
        params["name"],
        params["donated_invars"],
        params["keep_unused"],
        params["compiler_options"],
        trace_context(),
    )

    def compiled():
        earlier = [known[1] for known in list(jaxpr.cache) if type(known) is tuple and known[:1] == ("xla",)]
        if earlier and where not in earlier:
            _note_another_placement(jaxpr, where, earlier[-1])
        return compile_module.load(
            jaxpr,
            "jit_" + params["name"],
            where,
            params["donated_invars"],
            params["keep_unused"],
            params["compiler_options"],
            names,
        )

    return fact(jaxpr, key, compiled)


def _note_another_placement(jaxpr: Jaxpr, new: placement.Placement, old: placement.Placement) -> None:
    """Note that a known program is compiled for another placement of its arguments."""
    info = jaxpr.debug_info
    if info is None or not info.func_src_info:
        return
    names = info.arg_names or [f"argument {i}" for i in range(len(jaxpr.invars))]
    changes = [
        f"new placement: {name} is {a}, was {b}"
        for name, a, b in zip(names, new.arguments, old.arguments, strict=False)
        if a != b
    ]
    if not changes and new.devices != old.devices:
        here, there = (", ".join(map(str, where.devices)) for where in (new, old))
        changes = [f"new placement: the arguments are on {here}, were on {there}"]
    retracing.compiled_again(info.func_src_info, changes or ["new placement"])


def maker(kind: str, jaxpr: Jaxpr, args: Sequence[Any]) -> tuple[str, Any] | None:
    """Return the operation that made a NaN, or an infinity, in a result: its name and its line; None if none is found.

    Each operation runs separately. A bad value that no result depends on, such as that of a branch that `vmap` computes
    and does not select, is not reported: a result is bad because of the first bad operand of the operation that made it.
    """
    if len(jaxpr.eqns) == 1 and called_program(jaxpr.eqns[0].primitive, jaxpr.eqns[0].params) is None:
        return jaxpr.eqns[0].primitive.name, jaxpr.eqns[0].source_info
    with config.debug_nans(False), config.debug_infs(False), tracing.set_trace(eval_trace):
        found = _maker(kind, jaxpr, args, None)
    return found and (found[0].primitive.name, found[1])


def _maker(kind: str, jaxpr: Jaxpr, args: Sequence[Any], call: Any) -> tuple[Eqn, Any] | None:
    values: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*jaxpr.consts, *args), strict=True))
    made: dict[Any, Any] = {}  # variable with a bad value -> the equation that made the value, and its operands
    for eqn, dying in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
        operands = [v.val if type(v) is Literal else values[v] for v in eqn.invars]
        for v in dying:
            del values[v]
        out = eqn.primitive.bind(*operands, **eqn.params)
        outs = out if eqn.primitive.multiple_results else [out]
        values.update(zip(eqn.outvars, outs, strict=True))
        origin = next((made[v] for v in eqn.invars if type(v) is Var and v in made), (eqn, operands))
        made.update((v, origin) for v, x in zip(eqn.outvars, outs, strict=True) if compile_module.is_bad(kind, x))
    for v in jaxpr.outvars:
        if type(v) is Var and v in made:
            eqn, operands = made[v]
            place = eqn.source_info or call
            inner = called_program(eqn.primitive, eqn.params)
            return (inner and _maker(kind, inner, operands, place)) or (eqn, place)
    return None


def run_loaded(program: compile_module.LoadedProgram, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """Run. If debug options find a bad value in a result, raise for the operation that made it."""
    try:
        return program.run(args)
    except compile_module.NonFinite as error:
        kind, name = error.args
        place = None
        if not any(program.lowered.donated) and (found := maker(kind, jaxpr, args)) is not None:
            name, place = found
        raise FloatingPointError(
            coded(
                "BX-NAN",
                f"invalid value ({kind}) encountered in {name}; jnp.where on its operands keeps them in its domain",
                place=place,
            )
        ) from None


def first_run(
    jaxpr: Jaxpr,
    args: Sequence[Any],
    params: dict[str, Any],
    tree: Any,
    requested: Requested = NOTHING_REQUESTED,
    names: Any = None,
    alone: bool | None = None,
    operation: Callable[[], Any] | None = None,
) -> tuple[Any, Any]:
    """The result of a miss of C++ dispatch: the results as a tree, and the data for further runs in C++.

    Args:
      alone: the value of `turns.are_alone` at the begin of the call. If it is None, no program has run since then.
      operation: for an eager operation, whose first calls may run without XLA: clears the cache of C++ dispatch, which
        would call Python for ever after a call without data.
    """
    if objects.kinds:
        from bedrax.core import represented  # only programs with values of libraries' types need it

        if represented.holds(jaxpr):
            return _run_on_arrays(jaxpr, args, params, tree, requested, names, alone)
    if crosses_processes(jaxpr):  # its programs run between the operations that take and return parts of arrays
        if requested != NOTHING_REQUESTED:
            raise NotImplementedError(
                f"jit({params['name']}) has places for its arguments or results, and calls a pmap over devices of several"
                " processes, which places them itself; leave in_shardings, out_shardings, device and backend out"
            )
        return pytree.tree_unflatten(tree, eval_jaxpr(jaxpr, jaxpr.consts, *args)), None
    if alone is None:
        alone = turns.are_alone()
    if operation is not None:
        outs = first_calls.evaluate(jaxpr, args, requested)
        if outs is not None:
            return pytree.tree_unflatten(tree, outs), None
        if first_calls.end(jaxpr):
            operation()
    program = load(jaxpr, args, params, requested, names)
    out = pytree.tree_unflatten(tree, run_loaded(program, jaxpr, args))
    return out, program.fastpath(tree, out, alone)


def _run_on_arrays(jaxpr, args, params, tree, requested, names, alone) -> tuple[Any, Any]:
    """`first_run` of a program with values of libraries' types."""
    ins, outs = jaxpr.in_avals, jaxpr.out_avals
    program, params, requested = on_arrays(jaxpr, params, requested)
    if not any(aval.represented for aval in (*ins, *outs)):
        return first_run(program, args, params, tree, requested, names, alone)
    arrays = arrays_of(ins, args)
    found, _ = first_run(program, arrays, params, tree_of_list(len(program.outvars)), requested, alone=alone)
    return pytree.tree_unflatten(tree, values_of(outs, found)), None


def on_arrays(jaxpr: Jaxpr, params: dict[str, Any], requested: Requested) -> tuple[Jaxpr, dict[str, Any], Requested]:
    """The program on the arrays that represent values of libraries' types, with the parameters of `jit` and the places."""
    from bedrax.core import represented  # only programs with values of libraries' types need it

    program, ins, outs = represented.on_arrays(jaxpr), jaxpr.in_avals, jaxpr.out_avals
    requested = requested._replace(
        arguments=_places_of_arrays(requested.arguments, ins, params["name"]),
        results=_places_of_arrays(requested.results, outs, params["name"]),
    )
    donated = tuple(spread(ins, params["donated_invars"]))
    return program, {**params, "jaxpr": program, "donated_invars": donated}, requested


def _places_of_arrays(places: Sequence[Any] | None, types: Sequence[Any], name: str) -> tuple[Any, ...] | None:
    """The place of each array that represents values, from that of each value."""
    if places is None:
        return None
    for aval, place in zip(types, places, strict=True):
        if aval.represented and place is not None:
            raise NotImplementedError(
                f"jit({name}) has a place for a value of type {aval}, which is a library's; give only arrays a place in"
                " in_shardings and out_shardings"
            )
    return tuple(spread(types, places))


def refuse_tracers(args: Sequence[Any]) -> None:
    """Raise the error of a value that has left its trace, or that is not an array."""
    for x in args:
        if isinstance(x, tracing.Tracer):
            raise errors.escaped_tracer_error(x)
        if aval_of(x).mutable:
            raise TypeError(f"an operation on arrays got a reference of type {x.aval.short()}: read it first, ref[...]")


def tree_of_list(n: int) -> PyTreeDef:
    """The structure of a list of `n` leaves."""
    return pytree.tree_structure([0] * n)


def requested_of(jitted: Callable[..., Any], call: TracedCall) -> Requested:
    """The places in the options of `jit`, by flat argument and result of a traced call."""
    options = jitted.options
    device = options["device"]
    if options["backend"] is not None:
        device = clients.get_backend(options["backend"]).local_devices()[0]
    if options["in_shardings"] is None and options["out_shardings"] is None:
        return NOTHING_REQUESTED if device is None else Requested(device=device)
    given = options["in_shardings"]
    given = (given, None) if isinstance(given, tuple) else given
    types = call.jaxpr.in_avals[call.arg_offset :]
    what = f"shardings of jit({jitted.name})"
    arguments = placement.resolved_leaves(given, call.in_tree, f"in_{what}", types, auto=True)
    results = placement.resolved_leaves(
        options["out_shardings"], call.out_tree, f"out_{what}", call.jaxpr.out_avals, auto=True
    )
    for what, places in (("in_shardings", arguments), ("out_shardings", results)):
        if free := next((s for s in places or () if UNCONSTRAINED in getattr(s, "spec", ())), None):
            raise ValueError(
                f"{what} of jit({jitted.name}): {free} leaves a dimension unconstrained, and arguments and results are"
                " placed; write None in place of the sharding, or use with_sharding_constraint inside"
            )
    if arguments is not None:
        arguments = (None,) * call.arg_offset + arguments
    return Requested(arguments, results, device)


def bind_placed(jitted: Callable[..., Any], call: TracedCall, requested: Requested) -> list[Any]:
    """Bind a traced call under a trace. Its places become operations on its arguments and results."""
    one = None if requested.device is None else make_single_device_sharding(requested.device)

    def at(values, places, bind):
        places = places or (one,) * len(values)
        return [
            x if s is None or aval_of(x).mutable else bind(i, x, s)  # a reference is not moved
            for i, (x, s) in enumerate(zip(values, places, strict=True))
        ]

    def argument(i, x, s):
        return placement.bind_argument(x, s, lambda: placement.argument_name(call.jaxpr, i))

    def result(i, x, s):
        return reshard_p.bind(x, to=s, src=None)

    if requested is NOTHING_REQUESTED:
        return jitted.bind(call)
    args = at(call.args, requested.arguments, result if requested.arguments is None else argument)
    return at(jitted.bind(call._replace(args=args)), requested.results, result)


def to_run(call: TracedCall) -> dict[Any, Any]:
    """The `jit` parameters of a traced call; without donation if it may run twice."""
    if config.debug_nans.value or config.debug_infs.value:
        return {**call.params, "donated_invars": (False,) * len(call.params["donated_invars"])}
    return call.params


def result_names(out_tree: PyTreeDef) -> list[str]:
    """The names of the results in the module: ``result['a'][0]``."""
    return ["result" + pytree.keystr(path) for path in pytree.leaf_paths(out_tree)]


class LazyNames:
    """Names of results, computed only if a program is lowered."""

    __slots__ = ("tree",)

    def __init__(self, tree: PyTreeDef) -> None:
        self.tree: Any = tree

    def __iter__(self) -> Iterator[Any]:
        return iter(result_names(self.tree))
