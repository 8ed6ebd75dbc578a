"""Programs that run: found or compiled, called through jaxlib's C++ dispatch, and what `jit` adds to a traced call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bedrax import pytree
from bedrax.core import config, errors, tracing
from bedrax.core.facts import fact
from bedrax.core.ir import Jaxpr, eval_jaxpr
from bedrax.core.tracing import eval_trace
from bedrax.xla_backend import clients, placement
from bedrax.xla_backend import compile as compile_module
from bedrax.xla_backend.door import runtime


def _shard_arg_fallback(x: Any, s: Any, *layout: Any):
    """Called from C++ for an argument that is not where its executable wants it."""
    return placement.to_sharding(x, s, committed=False)


def make_pjit(name, fun, miss, static_argnums=(), static_argnames=(), key=()):
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


def make_runner(name, miss):
    """A dispatched function; with jit disabled, C++ calls `direct` instead."""

    def direct(*args, **kwargs):
        return miss(*args, **kwargs)[0]

    return make_pjit(name, direct, miss)


def load(
    jaxpr: Jaxpr, args: Sequence[Any], params: dict, device: Any = None, names=None
) -> compile_module.LoadedProgram:
    """The executable for a program and the places of its arguments; compiled once for each."""
    where = placement.choose_placement(args, params["in_shardings"], params["out_shardings"], device)
    key = (
        "xla", where, params["name"], params["donated_invars"], params["keep_unused"], params["compiler_options"],
        config.trace_context(),
    )  # fmt: skip

    def compiled():
        return compile_module.lower(
            jaxpr, "jit_" + params["name"], where, params["donated_invars"], params["keep_unused"],
            params["compiler_options"], result_names=names).compile()  # fmt: skip

    return fact(jaxpr, key, compiled)


def run_loaded(program: compile_module.LoadedProgram, jaxpr: Jaxpr, args: Sequence[Any]) -> list:
    """Run; where debug options find a bad value, run again operation by operation to say which made it."""
    try:
        return program.run(args)
    except compile_module.NonFinite:
        if len(jaxpr.eqns) == 1 and not any(isinstance(v, Jaxpr) for v in jaxpr.eqns[0].params.values()):
            raise
        if any(program.lowered.donated):
            raise
        with tracing.set_trace(eval_trace):
            eval_jaxpr(jaxpr, jaxpr.consts, *args)
        raise


def first_run(
    jaxpr: Jaxpr, args: Sequence[Any], params: dict, tree: Any, device: Any = None, names: Any = None
) -> tuple[Any, Any]:
    """What a miss of C++ dispatch returns: the results as a tree, and what it needs to run the program by itself."""
    program = load(jaxpr, args, params, device, names)
    out = pytree.tree_unflatten(tree, run_loaded(program, jaxpr, args))
    return out, program.fastpath(tree, out)


def refuse_tracers(args: Sequence[Any]) -> None:
    """Raise the error of a value that has left its trace."""
    for x in args:
        if isinstance(x, tracing.Tracer):
            raise errors.escaped_tracer_error(x)


def tree_of_list(n: int):
    """The structure of a list of `n` leaves."""
    return pytree.tree_structure([0] * n)


def complete_params(jitted, call) -> tuple[dict, Any]:
    """The `jit` parameters of a traced call with its shardings flat, and the device it must run on."""
    options = jitted.options
    params = call.params
    if options["in_shardings"] is not None or options["out_shardings"] is not None:
        given = options["in_shardings"]
        given = (given, None) if isinstance(given, tuple) else given
        arguments = placement.resolved_leaves(given, call.in_tree, "in_shardings of jit")
        results = placement.resolved_leaves(options["out_shardings"], call.out_tree, "out_shardings of jit")
        if arguments is not None:
            arguments = (None,) * call.arg_offset + arguments
        params = {**params, "in_shardings": arguments, "out_shardings": results}
    device = options["device"]
    if options["backend"] is not None:
        device = clients.get_backend(options["backend"]).local_devices()[0]
    if config.debug_nans.value or config.debug_infs.value:
        params = {**params, "donated_invars": (False,) * len(params["donated_invars"])}
    return params, device


def result_names(out_tree) -> list[str]:
    """How the results are called in the module: ``result['a'][0]``."""
    full = pytree.tree_unflatten(out_tree, [0] * out_tree.num_leaves)
    return ["result" + pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(full)[0]]


class LazyNames:
    """Names of results, worked out only if a program is lowered."""

    __slots__ = ("tree",)

    def __init__(self, tree):
        self.tree = tree

    def __iter__(self):
        return iter(result_names(self.tree))
