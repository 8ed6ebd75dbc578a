"""Running things: `XlaExecutor`, which evaluates eager operations and programs with XLA.

Everything runs through one kind of object, jaxlib's C++ `PjitFunction`: it knows argument types it has seen
and calls their executables without Python. The first call of a type misses, and our `miss` functions trace,
compile, run, and hand back what C++ needs for the next one.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

from bedrax import pytree
from bedrax.core import config, executors, source, tracing
from bedrax.core import jitting as core_jitting
from bedrax.core.avals import aval_of
from bedrax.core.exact import exact_items
from bedrax.core.ir import Eqn, Jaxpr, Var, eval_jaxpr
from bedrax.core.tables import effect_rules, shape_rules
from bedrax.core.tracing import Tracer, current, eval_trace
from bedrax.numpy_backend.executor import to_numpy
from bedrax.numpy_backend.host_array import HostArray
from bedrax.xla_backend import clients, placement
from bedrax.xla_backend import compile as compile_module
from bedrax.xla_backend import jaxlib_door as door
from bedrax.xla_backend.array import ArrayImpl

_NATIVE_TREES = pytree.engine_name == "native"

# What `clear_caches` empties besides C++'s cache.
_runners: dict[Any, dict] = {}  # what was compiled for eager operations, by primitive and params
_all_jitted: weakref.WeakSet = weakref.WeakSet()


def _shard_arg_fallback(x: Any, s: Any, *layout: Any):
    """Called from C++ for an argument that is not where its executable wants it."""
    return placement.to_sharding(x, s, committed=False)


def _make_pjit(name, fun, miss, static_argnums=(), static_argnames=(), key=()):
    return door.pjit(
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

    return _make_pjit(name, direct, miss)


def load(
    jaxpr: Jaxpr, args: Sequence[Any], params: dict, device: Any = None, names=None
) -> compile_module.LoadedProgram:
    """The executable for a program and the places of its arguments; compiled once for each."""
    where = compile_module.choose_placement(args, params["in_shardings"], params["out_shardings"], device)
    key = (
        "xla", where, params["name"], params["donated_invars"], params["keep_unused"], params["compiler_options"],
        config.trace_context(),
    )  # fmt: skip
    found = jaxpr.cache.get(key)
    if found is None:
        lowered = compile_module.lower(
            jaxpr, "jit_" + params["name"], where, params["donated_invars"], params["keep_unused"],
            params["compiler_options"], result_names=names)  # fmt: skip
        found = jaxpr.cache[key] = lowered.compile()
    return found


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


def _tree_of_list(n: int):
    return pytree.tree_structure([0] * n)


class XlaExecutor(executors.Executor):
    """Evaluates with XLA."""

    name = "xla"
    rank = 1
    compiles = True

    def to_memory(self, x: Any, kind: str) -> Any:
        """An array in another memory of its devices."""
        from bedrax.xla_backend.placement import device_put

        x = self.asarray(x)
        return device_put(x, x.sharding.with_memory_kind(kind))

    def apply(self, prim, args: tuple, params: dict) -> Any:
        """One eager operation, compiled once per parameters and argument types."""
        runners = _runners.get(prim)
        if runners is None:
            runners = _runners[prim] = {}
        key = exact_items(params) if params else None
        try:
            runner = runners.get(key)
        except TypeError:
            return self._apply_unhashable(prim, args, params)
        if runner is None:
            runner = self._eager_runner(prim, params)
            if len(runners) > 4096:
                runners.clear()
            runners[key] = runner
        return runner(*args)

    def _apply_unhashable(self, prim, args, params):
        program = _single_equation(prim, args, params)
        out = run_loaded(load(program, args, _params(program, prim.name)), program, args)
        return out if prim.multiple_results else out[0]

    def _eager_runner(self, prim, params):
        programs: dict = {}

        def miss(*args):
            for x in args:
                if isinstance(x, Tracer):
                    raise executors_error(x)
            types = tuple([aval_of(x) for x in args])
            key = (types, config.trace_context())
            jaxpr = programs.get(key)
            if jaxpr is None:
                jaxpr = programs[key] = _single_equation(prim, args, params)
            program = load(jaxpr, args, _params(jaxpr, prim.name))
            outs = run_loaded(program, jaxpr, args)
            if prim.multiple_results:
                return outs, program.fastpath(_tree_of_list(len(outs)), outs) if _NATIVE_TREES else None
            return outs[0], program.fastpath(_LEAF, outs[0]) if _NATIVE_TREES else None

        return make_runner(prim.name, miss)

    def run_program(self, jaxpr, args: tuple) -> list:
        """A whole program on flat arguments."""
        return self.run_jit(args, _params(jaxpr, "program"))

    def run_jit(self, args: tuple, params: dict) -> list:
        """The `jit` primitive, met outside any trace."""
        jaxpr = params["jaxpr"]
        key = (
            "run_jit", params["donated_invars"], params["keep_unused"], params["compiler_options"], params["name"],
            _flat_or_none(params["in_shardings"]), _flat_or_none(params["out_shardings"]),
        )  # fmt: skip
        runner = jaxpr.cache.get(key)
        if runner is None:
            runner = jaxpr.cache[key] = self._program_runner(jaxpr, params)
        return runner(*args)

    def _program_runner(self, jaxpr, params):
        params = {**params, "in_shardings": _flat_or_none(params["in_shardings"]),
                  "out_shardings": _flat_or_none(params["out_shardings"])}  # fmt: skip

        def miss(*args):
            for x in args:
                if isinstance(x, Tracer):
                    raise executors_error(x)
            program = load(jaxpr, args, params)
            outs = run_loaded(program, jaxpr, args)
            fast = program.fastpath(_tree_of_list(len(outs)), outs) if _NATIVE_TREES else None
            return outs, fast

        return make_runner(params["name"], miss)

    def make_jitted(self, jitted):
        """What `jit` returns: C++ dispatch around `jitted`."""
        return make_jitted(jitted)

    # What `bedrax.numpy`, which knows no backend, asks of an executor that has devices.
    def device_put(self, x: Any, where: Any) -> Any:
        """`x` on a device or with a sharding."""
        from bedrax.xla_backend.placement import device_put

        return device_put(x, where)

    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> Any:
        """An array that shares memory with another library's."""
        from bedrax.xla_backend.placement import from_dlpack

        return from_dlpack(x, device=device, copy=copy)

    def devices(self) -> list:
        """The devices of the default platform."""
        from bedrax.xla_backend.clients import devices

        return devices()

    def asarray(self, x: Any):
        """A concrete value as an array on a device."""
        if type(x) is ArrayImpl:
            return x
        if type(x) is HostArray:
            return placement.put_uncommitted(x._value, x._weak)
        value, weak = to_numpy(x)
        return placement.put_uncommitted(value, weak)


def executors_error(x) -> Exception:
    from bedrax.core import errors

    return errors.escaped_tracer_error(x)


_LEAF = pytree.tree_structure(0)


def _params(jaxpr: Jaxpr, name: str) -> dict:
    return dict(
        jaxpr=jaxpr, name=name, donated_invars=(False,) * len(jaxpr.invars), keep_unused=False, inline=False,
        in_shardings=None, out_shardings=None, compiler_options=(),
    )  # fmt: skip


def _flat_or_none(shardings):
    return shardings if isinstance(shardings, tuple) else None


def _single_equation(prim, args, params) -> Jaxpr:
    """The program that applies one primitive."""
    types = [aval_of(x) for x in args]
    out = shape_rules[prim](*types, **params)
    effects = frozenset(effect_rules[prim](*types, **params))
    invars = [Var(a) for a in types]
    outvars = [Var(a) for a in (out if prim.multiple_results else [out])]
    return Jaxpr(invars, outvars, [Eqn(prim, invars, outvars, params, effects)], effects=effects)


# ---- jit ----


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


def make_jitted(jitted: core_jitting.Jitted):
    """jaxlib's C++ function around a `Jitted`, with the methods that users expect of ``jax.jit(f)``."""

    @source.api_boundary
    def miss(*args, **kwargs):
        if config.disable_jit.value:
            return jitted.fun(*args, **kwargs), None
        call = jitted.trace_call(args, kwargs)
        params, device = complete_params(jitted, call)
        if current.trace is not eval_trace or any(isinstance(x, Tracer) for x in call.args):
            call = call._replace(params=params)
            return pytree.tree_unflatten(call.out_tree, jitted.bind(call)), None
        program = load(call.jaxpr, call.args, params, device, _LazyNames(call.out_tree))
        outs = run_loaded(program, call.jaxpr, call.args)
        out = pytree.tree_unflatten(call.out_tree, outs)
        if call.arg_offset or current.axes or not _NATIVE_TREES or door.must_see_calls():
            return out, None
        return out, program.fastpath(call.out_tree, out)

    _all_jitted.add(jitted)
    options = jitted.options
    fun = jitted.fun
    static_argnums = tuple(sorted({n for n in _normalized(fun, jitted.static_argnums)}))
    key = (
        static_argnums, jitted.static_argnames, jitted.donate_argnums, jitted.donate_argnames,
        options["keep_unused"], options["device"], options["backend"], options["inline"],
        options["compiler_options"], _hashable(options["in_shardings"]), _hashable(options["out_shardings"]),
    )  # fmt: skip
    try:
        hash((fun, key))
    except TypeError:
        # C++ shares its cache among wrappers of one function, which it must be able to hash.
        wrapped = _make_pjit(
            jitted.name, lambda *a, **k: fun(*a, **k), miss, static_argnums, jitted.static_argnames
        )
    else:
        wrapped = _make_pjit(jitted.name, fun, miss, static_argnums, jitted.static_argnames, key)
    functools.update_wrapper(wrapped, fun)
    attributes = wrapped.__dict__
    attributes["lower"] = functools.partial(_lower, jitted)
    attributes["trace"] = functools.partial(_trace, jitted)
    attributes["eval_shape"] = jitted.eval_shape
    # Not a reference to `wrapped` itself: C++ objects are not seen by the garbage collector.
    attributes["clear_cache"] = functools.partial(_clear_cache, weakref.ref(wrapped), jitted)
    attributes["_jitted"] = jitted
    return wrapped


class _LazyNames:
    """Names of results, worked out only if a program is lowered."""

    __slots__ = ("tree",)

    def __init__(self, tree):
        self.tree = tree

    def __iter__(self):
        return iter(result_names(self.tree))


def _hashable(x):
    try:
        hash(x)
    except TypeError:
        return _ById(x)
    return x


class _ById:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return isinstance(other, _ById) and self.x is other.x

    def __hash__(self):
        return id(self.x)


def _normalized(fun, argnums):
    if all(n >= 0 for n in argnums):
        return argnums
    import inspect

    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(p.kind in kinds for p in inspect.signature(fun).parameters.values())
    return [n % count if n < 0 else n for n in argnums]


def _clear_cache(wrapped, jitted):
    """Forget every trace and executable of this function."""
    wrapped()._clear_cache()
    jitted.clear_cache()


def _trace(jitted, *args, **kwargs):
    """Trace for these arguments (arrays or `ShapeDtypeStruct`s); returns a `Traced`."""
    from bedrax.xla_backend import stages

    return stages.trace(jitted, args, kwargs)


def _lower(jitted, *args, **kwargs):
    """Trace and lower for these arguments; returns a `Lowered`."""
    from bedrax.xla_backend import stages

    return stages.trace(jitted, args, kwargs).lower()


def clear_caches() -> None:
    """Forget every traced and compiled program."""
    door.PjitFunctionCache.clear_all()
    for table in _runners.values():
        table.clear()
    for jitted in list(_all_jitted):
        jitted.clear_cache()


def forget(prim) -> None:
    """Forget what was compiled for eager operations of a primitive."""
    _runners.pop(prim, None)


def install() -> XlaExecutor:
    """Make XLA the executor."""
    executor = XlaExecutor()
    executors.provide(executor)
    return executor
