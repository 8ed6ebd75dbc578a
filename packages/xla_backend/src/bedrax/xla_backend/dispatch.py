"""Execution: `XlaExecutor`, which evaluates eager operations and programs with XLA.

Every program runs through one class, jaxlib's C++ `PjitFunction`. It caches executables by argument types
and calls them without Python. The first call with a type misses the cache. Our `miss` functions then trace,
compile, run, and return the data that C++ needs for the next call.
"""

from __future__ import annotations

import copyreg
import functools
import operator
import sys
import weakref
from collections.abc import Callable
from itertools import chain, compress, repeat
from marshal import dumps
from typing import Any

from bedrax import pytree
from bedrax.core import caches, config, dtypes, effects, executors, retracing, source
from bedrax.core import jitting as core_jitting
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.context import trace_context
from bedrax.core.exact import exact_items
from bedrax.core.facts import fact
from bedrax.core.ir import Eqn, Jaxpr, Var
from bedrax.core.tables import effect_rules
from bedrax.core.tracing import Mutable, Primitive, Tracer, current, eval_trace
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives import shaping
from bedrax.numpy_backend.executor import to_numpy
from bedrax.numpy_backend.host_array import HostArray
from bedrax.xla_backend import clients, dlpack, first_calls, memory_maps, placement, stages, turns
from bedrax.xla_backend.compile import effects_barrier
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.door.arrays import ArrayImpl
from bedrax.xla_backend.running import (
    LazyNames,
    bind_placed,
    explain_depth,
    first_run,
    make_pjit,
    make_runner,
    refuse_tracers,
    requested_of,
    to_run,
    tree_of_list,
)
from bedrax.xla_backend.sharding import NamedSharding, check_explicit, resolve

# `clear_caches` empties these and C++'s cache.
_runners: dict[Any, dict[Any, Any]] = {}  # runners of eager operations, by primitive and `exact_items` of params
_all_jitted: weakref.WeakSet = weakref.WeakSet()
other_caches: list[Callable[[], None]] = []  # caches of other libraries


# The primitives that join any number of operands, with the name of the parameter that is the axis. XLA takes a time that
# grows with the square of the number of operands to compile such an operation.
_JOINS = {shaping.stack_p: "axis", shaping.concatenate_p: "dimension"}
_MOST_JOINED = 256  # operands of one program

# Values that belong to no trace.
_CONCRETE = (ArrayImpl, *{d.type for d in dtypes.all_dtypes})


class XlaExecutor(executors.Executor):
    """Evaluates with XLA."""

    array_types: tuple[Any] = (ArrayImpl,)
    context_changed: staticmethod[..., Any] = staticmethod(runtime.context_changed)
    option_changed: staticmethod[..., Any] = staticmethod(runtime.option_changed)
    must_see_calls: staticmethod[..., Any] = staticmethod(runtime.set_must_see_calls)
    name = "xla"
    rank = 1
    compiles = True
    shares_memory = True
    ready: dict[Any, dict[Any, Any] | None] = {}

    def made_here(self, x: Any) -> Any:
        """An array of the host's data, on all devices of the mesh that `set_mesh` made current."""
        return placement.on_current_mesh(x)

    def resolve(self, where: Any, what: str, aval: Any, typed: bool = False) -> Any:
        """The sharding of a device, a sharding or a partition spec; if `typed`, over explicit axes only."""
        place = resolve(where, what, aval)
        if typed and type(place) is NamedSharding:
            check_explicit(place, what)
        return place.full(len(aval.shape)) if type(place) is NamedSharding else place

    def reshard(self, x: Any, to: Any) -> Any:
        """`x` with a sharding."""
        return placement.reshard(x, to)

    def regrouped(self, x: Any, shape: tuple[int, ...], spec: Any, old: Any, new: Any) -> Array:
        """The blocks of `x` over one mesh as blocks of an array over another one."""
        return placement.regrouped(x, shape, NamedSharding(old, spec), NamedSharding(new, spec))

    def apply(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """One eager operation, compiled once per parameters and argument types."""
        runners = _runners.get(prim)
        if runners is None:
            runners = _runners[prim] = {}
        key = exact_items(params)
        try:
            runner = runners.get(key)
        except TypeError:
            return self._apply_unhashable(prim, args, params)
        if runner is None:
            if prim.family == "callbacks" and not params.get("partitioned", True):
                return _call_now(args, **params)
            runner = self._eager_runner(prim, params)
            _keep(runners, key, runner)
        if executors.ready is self.ready and self.ready.get(prim, self) is not None:
            self._note(prim, params, runner)
        return runner(*args)

    def _note(self, prim, params: dict, runner: Callable) -> None:
        """Store the runner for `ready`, unless `marshal` does not encode earlier params of the primitive uniquely."""
        if not all(map(_is_plain, params.values())):
            self.ready[prim] = None
        elif (ready := self.ready.setdefault(prim, {})) is not None:
            _keep(ready, dumps(params, 2) if params else None, runner)
            if not params:
                executors.note_direct(self, prim.direct, _CONCRETE, runner)

    def _apply_unhashable(self, prim, args, params):
        program = _single_equation(prim, args, params)
        tree = _tree_of_results(prim, program)
        return first_run(program, args, _params(program, prim.name), tree, placement.requested_by(prim, params))[0]

    def _eager_runner(self, prim, params):
        programs: dict[Any, Any] = {}

        def miss(*args):
            refuse_tracers(args)
            if len(args) > _MOST_JOINED and prim in _JOINS:
                return _join_groups(prim, args, params), None
            types = tuple([aval_of(x) for x in args])
            key = (types, trace_context())
            jaxpr = programs.get(key)
            if jaxpr is None:
                jaxpr = programs[key] = _single_equation(prim, args, params)
                retracing.eagerly_compiled(prim.name)
            requested = placement.requested_by(prim, params)
            tree = _tree_of_results(prim, jaxpr)
            return first_run(jaxpr, args, _params(jaxpr, prim.name), tree, requested, operation=forget)

        def forget():
            if (known := runner()) is not None:
                known._clear_cache()

        made = make_runner(prim.name, miss)
        runner = weakref.ref(made)  # not a cycle: the garbage collector does not visit C++ objects
        return made

    def run_program(self, jaxpr: Jaxpr, args: tuple[Any, ...]) -> list[Any]:
        """Run a whole program on flat arguments."""
        return self.run_jit(args, _params(jaxpr, "program"))

    def run_jit(self, args: tuple[Any, ...], params: dict[str, Any]) -> list[Any]:
        """The `jit` primitive outside of any trace."""
        jaxpr = params["jaxpr"]
        key = ("run_jit", params["donated_invars"], params["keep_unused"], params["compiler_options"], params["name"])
        return fact(jaxpr, key, lambda: self._program_runner(jaxpr, params))(*args)

    def _program_runner(self, jaxpr, params):
        def miss(*args):
            refuse_tracers(args)
            return first_run(jaxpr, args, params, tree_of_list(len(jaxpr.outvars)))

        return make_runner(params["name"], miss)

    def make_jitted(self, jitted: Callable[..., Any]) -> Callable[..., Any]:
        """The result of `jit`: C++ dispatch around `jitted`."""
        return make_jitted(jitted)

    # Methods that `bedrax.numpy`, which imports no backend, calls on an executor with devices.
    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> Any:
        """An array that shares memory with an array of another library."""
        return dlpack.from_dlpack(x, device=device, copy=copy)

    def devices(self, platform: str | None = None) -> list[Any]:
        """The devices of a platform (by default the default platform)."""
        return clients.devices(platform)

    def asarray(self, x: Any) -> Array:
        """A concrete value as an array on a device. Memory of a NumPy array is copied."""
        if type(x) is ArrayImpl:
            return x
        if type(x) is HostArray:
            return placement.put_uncommitted(x._value, x._weak)
        value, weak = to_numpy(x)
        return placement.put_uncommitted(value, weak, copy=True)


def _call_now(args, callback, effect, **_):
    """A debugging callback outside of programs. It is not compiled, so no cache keeps the user's function."""
    refuse_tracers(args)
    if effect in effects.ordered_effects:
        effects_barrier()
    return callback(*args)


_PLAIN = frozenset((int, bool, float, complex, str, type(None)))


def _is_plain(x: Any) -> bool:
    """Whether `marshal` (version 2: by type and bits, without sharing) encodes `x` uniquely: a fast `exact`."""
    return type(x) in _PLAIN or type(x) is tuple and all(map(_is_plain, x))


def _keep(table: dict, key: Any, runner: Callable) -> None:
    if len(table) > 4096:
        table.clear()
    table[key] = runner


_LEAF = pytree.tree_structure(0)


def _join_groups(prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Array:
    """Join many operands: first groups of operands, then the results."""
    _single_equation(prim, args, params)  # its errors are about all operands
    parts = [prim.bind(*args[i : i + _MOST_JOINED], **params) for i in range(0, len(args), _MOST_JOINED)]
    return shaping.concatenate_p.bind(*parts, dimension=params[_JOINS[prim]])


def _tree_of_results(prim, jaxpr: Jaxpr):
    return tree_of_list(len(jaxpr.outvars)) if prim.multiple_results else _LEAF


def _params(jaxpr: Jaxpr, name: str) -> dict:
    return core_jitting.jit_params(jaxpr, name)


def _single_equation(prim, args, params) -> Jaxpr:
    """The program that applies one primitive."""
    types = [aval_of(x) for x in args]
    out = prim.result_types(types, params)
    effects = frozenset(effect_rules[prim](*types, **params))
    invars = [Var(a) for a in types]
    outvars = [Var(a) for a in (out if prim.multiple_results else [out])]
    return Jaxpr(invars, outvars, [Eqn(prim, invars, outvars, params, effects)], effects=effects)


# ---- jit ----


def make_jitted(jitted: core_jitting.Jitted) -> Callable[..., Any]:
    """jaxlib's C++ function around a `Jitted`, with the methods of ``jax.jit(f)``."""

    @source.api_boundary
    def run(*args, **kwargs):
        try:
            alone = turns.are_alone()
            if config.disable_jit.value:
                return jitted.fun(*args, **kwargs), None
            if jitted.in_place is not None and (done := jitted.in_place(args, kwargs)) is not None:
                return done[0], None
            call = jitted.trace_call(args, kwargs)
            requested = requested_of(jitted, call)
            if (
                current.trace is not eval_trace
                or call.seen
                or executors.observers
                or any(isinstance(x, Tracer | Mutable) for x in call.args)
            ):
                return call.results(bind_placed(jitted, call, requested)), None
            names = LazyNames(call.out_tree)
            operation = forget if jitted.is_operation else None
            out, fast = first_run(
                call.jaxpr, call.args, to_run(call), call.out_tree, requested, names, alone, operation
            )
            return out, None if call.arg_offset or current.axes or runtime.must_see_calls() else fast
        except SystemError as error:
            explain_depth(error, args, kwargs)
            raise

    def forget():  # has no reference cycle: a dropped function is freed without the garbage collector
        if (known := made()) is not None:
            known.clear_cache.forget_executables()

    _all_jitted.add(jitted)
    options = jitted.options
    fun = jitted.fun
    signature = jitted.signature
    miss = run
    if signature.static_argnums or signature.static_argnames:
        miss = _by_exact_statics(jitted, run)
    static_argnums = tuple(sorted(signature.static_argnums))
    key = (
        static_argnums,
        signature.static_argnames,
        signature.donate_argnums,
        signature.donate_argnames,
        options["keep_unused"],
        options["device"],
        options["backend"],
        options["inline"],
        options["compiler_options"],
        _hashable(options["in_shardings"]),
        _hashable(options["out_shardings"]),
    )
    try:
        hash((fun, key))
    except TypeError:
        # C++ shares its cache among wrappers of one function, so the function must be hashable.
        wrapped = make_pjit(jitted.name, lambda *a, **k: fun(*a, **k), miss, static_argnums, signature.static_argnames)
    else:
        wrapped = make_pjit(jitted.name, fun, miss, static_argnums, signature.static_argnames, key)
    made = weakref.ref(wrapped)
    functools.update_wrapper(wrapped, fun)
    attributes = wrapped.__dict__
    attributes["lower"] = lambda *args, **kwargs: stages.trace(jitted, args, kwargs).lower()
    attributes["trace"] = lambda *args, **kwargs: stages.trace(jitted, args, kwargs)
    attributes["eval_shape"] = jitted.eval_shape
    # Not a reference to `wrapped` itself: the garbage collector does not visit C++ objects.
    attributes["clear_cache"] = _ClearCache(weakref.ref(wrapped), jitted, getattr(miss, "forget_all", None))
    attributes["_jitted"] = jitted
    attributes["_fun"] = fun  # nutpie, Qwix
    return wrapped


def _by_exact_statics(jitted: core_jitting.Jitted, run: Callable) -> Callable:
    """`run`, which C++ calls for arguments without a program, where `==` of static arguments is not exact.

    C++ finds programs by ``==`` of static arguments, and ``(1,) == (True,)``. Calls with such arguments get no program
    in the outer C++ function. Each tuple of them, compared by type and bits, has its own C++ function of the dynamic
    arguments.
    """
    signature, name = jitted.signature, jitted.name
    # Numbers, strings and tuples of them that were passed by position before are found by their encoding, which is
    # exact (`_is_plain`).
    positions = sorted(signature.static_argnums)
    count = positions[-1] + 1 if positions and positions[0] >= 0 else sys.maxsize
    pick = operator.itemgetter(*positions or (0,))
    flags = [i not in positions for i in range(count)] if count < sys.maxsize else []
    known: dict[bytes, Callable[..., Any]] = {}

    @functools.lru_cache(4096)
    def of_dynamic(key: tuple) -> Callable:
        call = signature.bound(run, key)  # not `miss`, which would be a cycle that the garbage collector cannot visit
        return make_pjit(name, lambda *args, **kwargs: call(*args, **kwargs)[0], call)

    def miss(*args, **kwargs):
        by_position = not kwargs and len(args) >= count
        try:
            if by_position and known:
                try:
                    found = known.get(dumps(pick(args), 2))
                except ValueError:  # `marshal` does not support the value
                    found = None
                if found is not None:
                    return found(*compress(args, chain(flags, repeat(True)))), None
            if signature.equality_is_exact(args, kwargs):
                return run(*args, **kwargs)
            dynamic, named, key = signature.split(args, kwargs)
            of_key = of_dynamic(key)
            if by_position and _is_plain(pick(args)):
                _keep(known, dumps(pick(args), 2), of_key)
            return of_key(*dynamic, **named), None
        except SystemError as error:
            explain_depth(error, args, kwargs)
            raise

    def forget_all():
        of_dynamic.cache_clear()
        known.clear()

    miss.forget_all = forget_all
    return miss


def _reduced(wrapped):
    """The pickled form of a jitted function: its name if that finds the function, else a function and options."""
    found = sys.modules.get(wrapped.__module__)
    for name in wrapped.__qualname__.split("."):
        found = getattr(found, name, None)
    return wrapped.__qualname__ if found is wrapped else wrapped._jitted.__reduce__()


copyreg.pickle(runtime.PjitFunction, _reduced)


def _hashable(x):
    try:
        hash(x)
    except TypeError:
        return _ById(x)
    return x


class _ById:
    __slots__ = ("x",)

    def __init__(self, x: ArrayLike) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.x is other.x

    def __hash__(self) -> int:
        return id(self.x)


class _ClearCache:
    """Forget every trace and executable of this function."""

    def __init__(self, wrapped: Callable[..., Any], jitted: core_jitting.Jitted, forget_all: Any = None) -> None:
        self.wrapped, self.jitted, self.forget_all = wrapped, jitted, forget_all

    def __call__(self) -> None:
        self.forget_executables()
        self.jitted.clear_cache()

    def forget_executables(self) -> None:
        """Forget what C++ calls without Python; traces stay."""
        wrapped = self.wrapped()
        if wrapped is not None:
            wrapped._clear_cache()
        if self.forget_all is not None:
            self.forget_all()

    def __reduce__(
        self,
    ) -> tuple[Any, ...]:  # a wrapper of a jitted function has its attributes, and is pickled with them
        return _clearing, (self.jitted,)


def _clearing(jitted):
    return getattr(jitted, "clear_cache", jitted)


def clear_caches() -> None:
    """Forget every traced and compiled program.

    Examples:

      >>> jax.clear_caches()
    """
    runtime.PjitFunctionCache.clear_all()
    for table in (*_runners.values(), *filter(None, XlaExecutor.ready.values())):
        table.clear()
    executors.forget_direct()
    caches.forget()
    for jitted in list(_all_jitted):
        jitted.clear_cache()
    first_calls.forget()
    for clear in other_caches:
        clear()


memory_maps.forget.append(clear_caches)
clients.forget.append(clear_caches)


def forget(prim: Primitive) -> None:
    """Forget the compiled eager operations of a primitive."""
    _runners.pop(prim, None)
    XlaExecutor.ready.pop(prim, None)
    prim.direct.clear()
