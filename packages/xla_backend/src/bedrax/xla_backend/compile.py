"""From a jaxpr to an executable: lowering of whole programs, XLA's options, executables.

`lower` makes a `LoweredProgram`, `LoweredProgram.compile` a `LoadedProgram`. A `LoadedProgram` runs on
flat arguments and holds the data that C++ dispatch needs to run it without Python.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import itertools
import logging
import operator
import pathlib
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bedrax import pytree
from bedrax.core import avals, config, dtypes, effects, monitoring, offers, source
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray
from bedrax.core.facts import cached
from bedrax.core.ir import Eqn, Jaxpr, Literal, Var
from bedrax.core.passes import programs_in
from bedrax.lax import element_types
from bedrax.lax.primitives.markers import create_token_p
from bedrax.lax.primitives.placement import Memory, reshard_p
from bedrax.xla_backend import (
    compilation_cache,
    failures,
    flags,
    memory_maps,
    placement,
    platforms,
    program_key,
    sharding,
    tables,
    turns,
)
from bedrax.xla_backend.door import runtime, versions
from bedrax.xla_backend.door.arrays import ArrayImpl, layout_of, sharding_of
from bedrax.xla_backend.host import check_alive
from bedrax.xla_backend.layout import Layout
from bedrax.xla_backend.placement import Placement, partitioned_axes
from bedrax.xla_backend.sharding import make_single_device_sharding

if TYPE_CHECKING:
    from bedrax.xla_backend.lowering.program import Program


logger: Final = logging.getLogger("jax.compile")

_NO_TURN = contextlib.nullcontext()
_NATIVE_TREES = pytree.engine_name == "native"

# Effects whose results need not be ready when a Python call returns leave a token here, per device.
_runtime_tokens: dict[Any, Any] = {}
_tokens_lock = threading.Lock()


def _level() -> int:
    """The logging level of compilations at present."""
    return logging.WARNING if flags.log_compiles.value else logging.DEBUG


def effects_barrier() -> None:
    """Wait for the side effects of all programs dispatched so far.

    Examples:

      >>> jax.debug.print("x = {}", 1)
      x = 1
      >>> jax.effects_barrier()
    """
    with _tokens_lock:
        tokens = dict(_runtime_tokens)
        _runtime_tokens.clear()
    try:
        for devices, token in list(tokens.items()):
            try:
                _wait_for(token)
            except Exception:  # a program that failed has ended
                del tokens[devices]
                raise
            del tokens[devices]
    finally:  # after an error or an interrupt, the next call waits for the others
        with _tokens_lock:
            for devices, token in tokens.items():
                _runtime_tokens.setdefault(devices, token)


def _wait_for(token: runtime.Token) -> None:
    try:
        token.block_until_ready()
    except runtime.JaxRuntimeError as error:
        failures.add_notes(error)
        raise


_operands = operator.attrgetter("invars")


def kept_arguments(jaxpr: Jaxpr) -> tuple[bool, ...]:
    """One boolean per argument: whether the program uses it."""
    used = {*itertools.chain.from_iterable(map(_operands, jaxpr.eqns)), *jaxpr.outvars}
    return tuple([v in used for v in jaxpr.invars])


class LoweredProgram:
    """A StableHLO module of a jaxpr, with the data needed to compile and run it.

    `program` is None if the executable was found without it. The jaxpr, whose cache holds what was compiled, is not
    among the data: executables are freed with it, without the garbage collector.
    """

    def __init__(
        self,
        jaxpr: Jaxpr,
        name: str,
        placement: Placement,
        kept: tuple[bool, ...],
        donated: tuple[bool, ...],
        const_args: list[Any],
        program: Program | None,
        options: tuple[Any, ...],
    ) -> None:
        self.in_avals: list[Any] = jaxpr.in_avals
        self.out_avals: list[Any] = jaxpr.out_avals
        self.effects: frozenset[Any] = jaxpr.effects
        self.names_memory: bool = _names_memory(jaxpr)
        self.name = name
        self.placement = placement
        self.kept = kept
        self.donated = donated
        self.const_args = const_args
        self.program = program
        self.options = options

    @property
    def module(self) -> Any:
        return self.program.module

    def compile(
        self, compiler_options: dict[str, Any] | None = None, entry: tuple[Any, str] | None = None
    ) -> LoadedProgram:
        """Compile for the devices of the placement, and load.

        Args:
          entry: the store and the name of the program's entry, which does not exist yet; None: they are looked up.
        """
        where = self.placement
        client = where.devices[0].client
        options = compile_options(len(where.devices), where.devices, {**dict(self.options), **(compiler_options or {})})
        options.executable_build_options.use_shardy_partitioner = self.program.partitioner.shardy
        if len(where.devices) > 1:
            # The partitioner chooses only the shardings that are not given.
            kept = [i for i, k in enumerate(self.kept) if k]
            free = [where.arguments[i] is None for i in kept]
            build = options.executable_build_options
            build.allow_spmd_sharding_propagation_to_parameters = [False] * len(self.const_args) + free
            build.allow_spmd_sharding_propagation_to_output = [s is None for s in where.results]
        memory_maps.make_room()
        started = time.monotonic()
        devices = runtime.DeviceList(where.devices)

        of_several = len(where.devices) > 1 and where.devices[0].platform == "cpu"
        callbacks = [turns.callback(f, of_several) for f in self.program.host_callbacks]

        def compile_now():
            with _progress(f"compiling {self.name.removeprefix('jit_')}"):
                return backend_compile_and_load(client, self.module, devices, options, callbacks)

        at_hand = not isinstance(client, runtime.CompileOnlyClient)
        as_bytes = None
        if self.program.host_callbacks or self.program.keepalives or not at_hand:
            executable = compile_now()
        elif entry is not None:
            executable = compilation_cache.compiled(*entry, compile_now)
        else:
            executable, as_bytes = compilation_cache.cached(client, self.module, devices, options, compile_now)
        logger.log(_level(), "%s was compiled in %.3f seconds", self.name, time.monotonic() - started)
        for x in self.program.keepalives if at_hand else ():
            executable.keep_alive(x)
        return LoadedProgram(self, executable, as_bytes)


def load(
    jaxpr: Jaxpr,
    name: str,
    placement: Placement,
    donated: Sequence[bool],
    keep_unused: bool,
    compiler_options: tuple[Any, ...],
    result_names: Sequence[str] | None,
) -> LoadedProgram:
    """The executable of a program: kept on disk, or lowered and compiled. The parameters are those of `lower`."""
    entry, executable, client = None, None, placement.devices[0].client
    plain = not placement.several and placement.mesh is None and placement.layouts is None
    store = compilation_cache.store() if plain and not _lowering_is_observed() else None
    if store is not None and not isinstance(client, runtime.CompileOnlyClient):
        options = compile_options(1, placement.devices, dict(compiler_options))
        hoisted = tuple([hoists(v.aval) for v in jaxpr.constvars])
        platform = platforms.of_device(placement.devices[0])
        key = program_key.of(jaxpr, platform, hoisted, name, tuple(donated), keep_unused)
        if key is not None:
            devices = runtime.DeviceList(placement.devices)
            entry = store, compilation_cache.name_of(key, client, devices, options)
            executable = compilation_cache.find(*entry, client, devices, options)
            if executable is not None and not flags.compilation_cache_check_contents.value:
                _warn_of_large_constants(jaxpr, name)
                kept = (True,) * len(jaxpr.invars) if keep_unused else kept_arguments(jaxpr)
                if any(donated):
                    mark_donated(jaxpr, donated, {i: {} for i, k in enumerate(kept) if k})  # its warnings
                constants = [c for c, h in zip(jaxpr.consts, hoisted, strict=True) if h]
                logger.log(_level(), "%s was found in %s", name, store.path)
                found = LoweredProgram(jaxpr, name, placement, kept, tuple(donated), constants, None, compiler_options)
                return LoadedProgram(found, executable)
    lowered = lower(jaxpr, name, placement, donated, keep_unused, compiler_options, result_names=result_names)
    program = lowered.compile(entry=entry)
    if executable is not None:
        compilation_cache.compare(*entry, executable, program.executable)
    return program


def _progress(text: str) -> contextlib.AbstractContextManager[None]:
    """Context manager: the progress of a long compilation is shown on a terminal."""
    if flags.show_progress.value and sys.stderr is not None and sys.stderr.isatty():
        if (waiting := offers.offered("progress of a compilation")) is not None:
            return waiting(text)
    return contextlib.nullcontext()


def _lowering_is_observed() -> bool:
    """Whether an option requests something that lowering does besides the module."""
    observers = (
        flags.dump_ir_to,
        flags.captured_constants_report_frames,
        flags.compilation_cache_include_metadata_in_key,
        config.enable_checks,
    )
    return any(flag.value for flag in observers)


def _timed(event: str) -> Callable[[Callable], Callable]:
    """A decorator: each call that returns is recorded as a duration in seconds."""

    def decorate(fun: Callable) -> Callable:
        @functools.wraps(fun)
        def recorded(*args, **kwargs):
            started = time.monotonic()
            result = fun(*args, **kwargs)
            monitoring.record_event_duration_secs(event, time.monotonic() - started)
            return result

        return recorded

    return decorate


@_timed("/jax/core/compile/jaxpr_to_mlir_module_duration")
def lower(
    jaxpr: Jaxpr,
    name: str,
    placement: Placement,
    donated: Sequence[bool],
    keep_unused: bool = False,
    compiler_options: tuple[Any, ...] = (),
    platform: str | None = None,
    embed_constants: bool = False,
    result_names: Sequence[str] | None = None,
) -> LoweredProgram:
    """Make the StableHLO module of a program.

    Args:
      donated: per argument, whether a result may use its buffer.
      keep_unused: keep arguments that the program does not use.
      platform: the platform whose lowering rules apply, if not that of the placement's devices.
      embed_constants: write all constants into the module instead of passing large ones as arguments.
    """
    from bedrax.xla_backend.lowering.partitioner import Shardy  # MLIR is loaded by the first program
    from bedrax.xla_backend.lowering.program import Program, add_main

    _warn_of_large_constants(jaxpr, name)
    bad = [e for e in jaxpr.effects if e not in effects.lowerable_effects]
    if bad:
        raise ValueError(
            f"Cannot lower jaxpr with effects: {bad}, of {name}. If the lowering rules carry them out, add their class to"
            " lowerable_effects"
        )
    level = _level()
    if logger.isEnabledFor(level):
        logger.log(level, "%s is compiled for %s", name, [str(a) for a in jaxpr.in_avals])
    count = len(placement.devices)
    jaxpr = _with_moves(jaxpr, placement)
    target = platform or platforms.of_device(placement.devices[0])
    if target != "cpu":  # there, all memories are the same
        jaxpr = with_operands_on_device(jaxpr, placement.arguments, placement.results)
    program = Program(name, target, count, devices=placement.devices)
    program.mesh = placement.mesh
    axes = partitioned_axes(jaxpr, placement) if count > 1 and flags.use_shardy_partitioner.value else None
    if axes is not None:
        program.partitioner = Shardy(program, axes)
    keeps = (True,) * len(jaxpr.invars) if keep_unused else kept_arguments(jaxpr)
    original, jaxpr = jaxpr, _without_tokens(jaxpr)
    kept = [i for i, k in enumerate(keeps) if k]
    hoisted = [not embed_constants and hoists(v.aval) for v in jaxpr.constvars]
    constants = [c for c, h in zip(jaxpr.consts, hoisted) if h]
    arg_attrs: list[dict[str, Any]] = [{} for _ in kept]
    res_attrs: list[dict[str, Any]] = [
        {"jax.result_info": n} for n in (result_names or ["result"] * len(jaxpr.outvars))
    ]
    if any(donated):
        mark_donated(jaxpr, donated, dict(zip(kept, arg_attrs)))
    if placement.several:
        for attrs, i in zip(arg_attrs, kept):
            mark_sharding(attrs, placement.arguments[i], jaxpr.invars[i].aval, program.partitioner)
        for attrs, s, v in zip(res_attrs, placement.results, jaxpr.outvars):
            mark_sharding(attrs, s, v.aval, program.partitioner)
    nowhere: tuple[Any, ...] = (None,) * len(jaxpr.invars), (None,) * len(jaxpr.outvars)
    places = (placement.arguments, placement.results) if placement.several else nowhere
    of_arguments, of_results = memories(jaxpr, *places)
    mark_memories([arg_attrs, res_attrs], [[of_arguments[i] for i in kept], of_results])
    inside = _placed_inside(jaxpr)
    for attrs, where, v in zip(res_attrs, places[1], jaxpr.outvars):
        if inside and where is None and type(v) is not Literal and getattr(inside.get(v), "layout", None) is not None:
            attrs["mhlo.layout_mode"] = "auto"  # as in the constraint
    in_layouts, out_layouts = placement.layouts or ((None,) * len(jaxpr.invars), (None,) * len(jaxpr.outvars))
    given = [(jaxpr.invars[i], in_layouts[i], attrs) for i, attrs in zip(kept, arg_attrs)]
    for v, layout, attrs in (*given, *zip(jaxpr.outvars, out_layouts, res_attrs)):
        if layout is not None:
            ndim = element_types.base_aval(v.aval).ndim
            attrs["mhlo.layout_mode"] = "auto" if layout is Layout.AUTO else layout.over(ndim).text()
    of_constants = [program.partitioner.attribute(None, len(c.shape)) if count > 1 else {} for c in constants]
    add_main(program, jaxpr, kept, of_constants + arg_attrs, res_attrs, hoisted=hoisted)
    if config.enable_checks.value:
        program.module.operation.verify()
    if flags.dump_ir_to.value:
        _dump(jaxpr, program.module, name)
    return LoweredProgram(original, name, placement, keeps, tuple(donated), constants, program, tuple(compiler_options))


_dumped = itertools.count()


def _with_moves(jaxpr: Jaxpr, where: Placement) -> Jaxpr:
    """A program whose results are partial sums, or sums of these, as their shardings say.

    Raises:
      ValueError: the type of an argument does not have the partial sums of its sharding.
    """
    for i, (place, v) in enumerate(zip(where.arguments, jaxpr.invars)):
        if _sums(place) != _sums(getattr(v.aval, "split", None)):
            raise ValueError(
                f"{placement.argument_name(jaxpr, i)} has the type {v.aval.short()}, its in_shardings say {place}; partial sums"
                " are a fact of the type: give an argument that has it, of jax.sharding.reshard(x, spec)"
            )
    moves = [
        i
        for i, (place, v) in enumerate(zip(where.results, jaxpr.outvars))
        if place is not None and _sums(place) != _sums(getattr(v.aval, "split", None))
    ]
    if not moves:
        return jaxpr
    eqns, outvars = list(jaxpr.eqns), list(jaxpr.outvars)
    for i in moves:
        place, old = where.results[i], outvars[i]
        new = Var(placement.placed_type(old.aval, place))
        eqns.append(Eqn(reshard_p, [old], [new], dict(to=place, src=old.aval.split)))
        outvars[i] = new
    return Jaxpr(list(jaxpr.invars), outvars, eqns, jaxpr.constvars, jaxpr.consts, debug_info=jaxpr.debug_info)


def with_operands_on_device(jaxpr: Jaxpr, arguments: Sequence[Any], results: Sequence[Any]) -> Jaxpr:
    """A program that moves arguments of other memories to the device before it computes with them.

    XLA refuses results of operations on values in the memory of the host. Calls of programs take the arguments as they
    are: a loop may move a part at a time.
    """
    elsewhere = {v for v, to in zip(jaxpr.invars, arguments) if _is_elsewhere(to)}
    if not elsewhere:
        return jaxpr
    here: dict[Any, Var] = {}
    eqns: list[Eqn] = []

    def on_device(v: Any) -> Any:
        if type(v) is Literal or v not in elsewhere:
            return v
        if v not in here:
            here[v] = Var(v.aval)
            eqns.append(Eqn(reshard_p, [v], [here[v]], dict(to=Memory("device"), src=None)))
        return here[v]

    for eqn in jaxpr.eqns:
        if eqn.primitive not in tables.result_places and not any(programs_in(eqn)):
            eqn = eqn.replace(invars=[on_device(v) for v in eqn.invars])
        eqns.append(eqn)
    outvars = [v if to is not None else on_device(v) for v, to in zip(jaxpr.outvars, results)]
    return jaxpr.replace(eqns=eqns, outvars=outvars)


def _is_elsewhere(to: Any) -> bool:
    return getattr(to, "memory_kind", None) not in (None, "device")


_OF_TOKEN: Final = avals.scalar_aval(np.dtype(bool))  # the type of a token outside of a module


def _without_tokens(jaxpr: Jaxpr) -> Jaxpr:
    """A program with a boolean for each argument and result that is a token: no buffer holds a token.

    A token orders the operations inside a program; programs run in the order of their calls.
    """
    if all(v.aval.is_array for v in (*jaxpr.invars, *jaxpr.outvars)):
        return jaxpr
    made = [Eqn(create_token_p, [], [v], {}) for v in jaxpr.invars if not v.aval.is_array]
    return Jaxpr(
        [v if v.aval.is_array else Var(_OF_TOKEN) for v in jaxpr.invars],
        [v if v.aval.is_array else Literal(False, _OF_TOKEN) for v in jaxpr.outvars],
        [*made, *jaxpr.eqns],
        jaxpr.constvars,
        jaxpr.consts,
        debug_info=jaxpr.debug_info,
    )


def _sums(place: Any) -> Any:
    """The partial sums in a sharding."""
    place = getattr(place, "sharding", place)
    spec = place.spec if place is not None and place.partial else None
    return (spec.unreduced, spec.unreduced_kind) if spec is not None and spec.unreduced else None


def _with_sums(place: Any, aval: Any) -> Any:
    """A sharding of the compiler, with the partial sums and sums that a type has, and no others."""
    split = getattr(aval, "split", None)
    if not isinstance(place, sharding.NamedSharding) or not (place.partial or (split is not None and split.partial)):
        return place
    spec = sharding.PartitionSpec() if split is None else split.spec
    full = place.spec.update(unreduced=spec.unreduced, reduced=spec.reduced, unreduced_kind=spec.unreduced_kind)
    return place.update(spec=full)


def _dump(jaxpr: Jaxpr, module: Any, name: str) -> None:
    """Write a program into the folder of `jax_dump_ir_to`, numbered in the order of lowering."""
    folder = pathlib.Path(flags.dump_ir_to.value)
    folder.mkdir(parents=True, exist_ok=True)
    file = re.sub(r"[^\w.-]", "_", f"{next(_dumped):04}_{name}")
    where = flags.include_debug_info_in_dumps.value
    modes = [mode.strip() for mode in flags.dump_ir_modes.value.split(",")]
    if "stablehlo" in modes:
        (folder / f"{file}.mlir").write_text(module.operation.get_asm(enable_debug_info=where), encoding="utf-8")
    if "jaxpr" in modes:
        (folder / f"{file}.jaxpr").write_text(jaxpr.pretty_print(source_info=where, name_stack=where), encoding="utf-8")
    if "eqn_count_pprof" in modes:
        from bedrax.xla_backend.debugging import counts

        (folder / f"{file}.eqn_count_pprof").write_bytes(counts.as_pprof(counts.counted(jaxpr)))


def _uses_of_constants(jaxpr: Jaxpr) -> str:
    """One line per constant, the largest first: the place of its first use. Empty unless the option is set."""
    if not flags.captured_constants_report_frames.value:
        return ""
    users: dict[Any, Any] = {}
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            users.setdefault(v, eqn)
    sizes = [(getattr(c, "nbytes", 0), v) for v, c in zip(jaxpr.constvars, jaxpr.consts, strict=True)]
    return "".join(
        f"\n  {v.aval.short()}, {size:,} bytes, used by {users[v].primitive} at {source.describe(users[v].source_info)}"
        for size, v in sorted(sizes, key=lambda pair: -pair[0])
        if v in users
    )


def _warn_of_large_constants(jaxpr: Jaxpr, name: str) -> None:
    limit = flags.captured_constants_warn_bytes.value
    if limit >= 0:
        size = sum(getattr(c, "nbytes", 0) for c in jaxpr.consts)
        if size > limit:
            warnings.warn(
                f"{name} captures {size:,} bytes of constants: pass large arrays as arguments"
                + _uses_of_constants(jaxpr),
                stacklevel=source.stacklevel(),
            )


def hoists(aval: Any) -> bool:
    """Whether a constant of this type is an argument of the module."""
    if not aval.is_array or not isinstance(aval.dtype, np.dtype) or not aval.shape:
        return False
    return aval.size * aval.dtype.itemsize > flags.embedded_constants_max_bytes.value


def mark_donated(jaxpr: Jaxpr, donated: Sequence[bool], arg_attrs: dict[int, dict[str, Any]]) -> None:
    """Pair each donated argument with a result of its type. Warns about arguments without such a result."""
    free: dict[Any, list[int]] = {}
    for k, v in enumerate(jaxpr.outvars):
        if v.aval.is_array:
            free.setdefault(_form(v.aval), []).append(k)
    left_over = []
    for i, (gives, v) in enumerate(zip(donated, jaxpr.invars)):
        if gives and v.aval.is_array:
            candidates = free.get(_form(v.aval))
            if i in arg_attrs and candidates:
                arg_attrs[i]["tf.aliasing_output"] = np.int32(candidates.pop(0))
            else:
                left_over.append(v.aval)
    if left_over:
        warnings.warn(  # the documentation quotes the first words
            f"Some donated buffers were not usable: {', '.join(a.str_short() for a in left_over)}. A buffer is used again"
            " only for a result of the same shape and dtype.",
            UserWarning,
            stacklevel=source.stacklevel(),
        )


@cached
def _placed_inside(jaxpr: Jaxpr) -> dict[Any, Any]:
    """The place of each result of an equation that places it."""
    found: dict[Any, Any] = {}
    for eqn in jaxpr.eqns:
        if (placed := tables.result_places.get(eqn.primitive)) is not None:
            found.update((v, to) for v, to in zip(eqn.outvars, placed(eqn.params), strict=True) if to is not None)
    return found


tables.result_places[reshard_p] = lambda params: (params["to"],)


def memories(jaxpr: Jaxpr, arguments: Sequence[Any], results: Sequence[Any]) -> tuple[tuple[str | None, ...], ...]:
    """The memories of arguments and results, by their shardings or by the equations that place them.

    None: that of the device.
    """
    inside = _placed_inside(jaxpr)
    found = [to if to or type(v) is Literal else inside.get(v) for to, v in zip(results, jaxpr.outvars, strict=True)]
    kinds = [[getattr(to, "memory_kind", None) for to in places] for places in (arguments, found)]
    return tuple([tuple([None if k == "device" else k for k in each]) for each in kinds])


def mark_memories(attributes: Sequence[Any], kinds: Sequence[Any]) -> None:
    """Write the memories of arguments and results into their attributes."""
    for all_attrs, each in zip(attributes, kinds, strict=True):
        for attrs, kind in zip(all_attrs, each, strict=True):
            if kind is not None:
                attrs["mhlo.memory_kind"] = kind


def _form(aval: Any) -> tuple:
    base = element_types.base_aval(aval)
    return base.shape, base.dtype


def mark_sharding(attrs: dict[str, Any], s: Any, aval: Any, partitioner: Any) -> None:
    """Write the sharding of an argument or a result into its attributes."""
    if s is not None and aval.is_array:
        attrs.update(partitioner.attribute(s, len(element_types.base_aval(aval).shape)))


def _names_memory(jaxpr: Jaxpr) -> bool:
    return any(to.memory_kind is not None for to in _placed_inside(jaxpr).values())


# ---- options of XLA ----


class CompilerEffortLevel(enum.Enum):
    """Effort of XLA: a value of the compiler options `optimization_level` and `memory_fitting_level`.

    More effort takes more time to compile, for programs that run faster or need less memory. The values are those of XLA's
    enumeration; the options take names and values, too. See https://openxla.org/xla/effort_levels.

    Examples:

      >>> f = jax.jit(lambda x: x @ x, compiler_options={"optimization_level": jax.CompilerEffortLevel.O1})
      >>> f(jnp.eye(2))
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
      >>> jax.CompilerEffortLevel["O3"].value  # in XLA's own enumeration
      39
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39

    @classmethod
    def _missing_(cls, value: Any) -> Any:
        if isinstance(value, str) and value in cls.__members__:
            return cls[value]
        levels = ", ".join(f"{level.name} ({level.value})" for level in cls)
        raise ValueError(f"{value!r} is not a valid CompilerEffortLevel; it is one of {levels}")


_PARTS, _MOST_PARTS = "xla_cpu_parallel_codegen_split_count", 32  # XLA's option, and its default value
_OF_EFFORT = ("optimization_level", "memory_fitting_level")


def compile_options(
    num_partitions: int, devices: Sequence[Any], overrides: dict[Any, Any] | None = None
) -> runtime.CompileOptions:
    """XLA's options for a program over `num_partitions` devices, from `jax.config` and `overrides`."""
    options = runtime.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = num_partitions
    build = options.executable_build_options
    build.use_spmd_partitioning = num_partitions > 1
    build.use_shardy_partitioner = False  # True only for a module with Shardy's attributes
    build.num_replicas = 1
    build.num_partitions = num_partitions
    ids = np.array([[d.id for d in devices]], np.int32)
    options.device_assignment = runtime.DeviceAssignment.create(ids)
    debug = build.debug_options
    if flags.disable_most_optimizations.value:
        debug.xla_backend_optimization_level = 0
        debug.xla_llvm_disable_expensive_passes = True
        debug.xla_test_all_input_layouts = False
    if not flags.compiler_enable_remat_pass.value:
        # In addition to the passes that XLA_FLAGS disables.
        disabled = [name for name in debug.xla_disable_hlo_passes.split(",") if name]
        debug.xla_disable_hlo_passes = ",".join([*disabled, "rematerialization"])
    build.optimization_level = CompilerEffortLevel(flags.optimization_level.value).value
    build.memory_fitting_level = CompilerEffortLevel(flags.memory_fitting_level.value).value
    runtime.set_build_option(build, "exec_time_optimization_effort", flags.exec_time_optimization_effort.value)
    runtime.set_build_option(build, "memory_fitting_effort", flags.memory_fitting_effort.value)
    options.profile_version = flags.xla_profile_version.value
    pairs: list[tuple[str, Any]] = []
    chosen = _PARTS in compilation_cache.xla_flags() or _PARTS in (overrides or ())
    if devices[0].platform == "cpu" and not chosen:
        # XLA splits the code of a program for its threads. More parts than cores cost more work and save no time.
        pairs.append((_PARTS, min(_MOST_PARTS, runtime.cores())))
    if overrides:
        for name, value in overrides.items():
            if (why := versions.missing(name) if name in versions.CAPABILITIES else None) is not None:
                warnings.warn(f"the compiler option {name} has no effect: {why}", UserWarning, stacklevel=2)
            elif runtime.is_build_option(name):
                if name in _OF_EFFORT:
                    value = CompilerEffortLevel(value).value
                try:
                    setattr(build, name, value)
                except TypeError:
                    kind = type(getattr(build, name)).__name__
                    raise TypeError(f"compiler option {name} takes {kind}, got {value!r}") from None
            else:
                pairs.append((name, value if isinstance(value, (str, bool, int, float)) else str(value)))
    options.env_option_overrides = pairs
    return options


@_timed("/jax/core/compile/backend_compile_duration")
def backend_compile_and_load(
    client: Any, module: Any, executable_devices: Any, options: Any, host_callbacks: list[Callable[..., Any]]
) -> Any:
    """Compile a module with XLA and load it. Called as an attribute of this module, so that tools can replace it.

    An executable for devices of a topology that are not present cannot be run.
    """
    turns.stop_at_the_end()
    given = dict(executable_devices=executable_devices, compile_options=options)
    if isinstance(client, runtime.CompileOnlyClient):
        return client.compile(module, **given)
    return client.compile_and_load(module, **given, **({"host_callbacks": host_callbacks} if host_callbacks else {}))


# ---- executables ----


class LoadedProgram:
    """A compiled program on its devices."""

    in_layouts: list[None]

    def __init__(
        self, lowered: LoweredProgram, executable: runtime.LoadedExecutable, as_bytes: Callable[[], bytes] | None = None
    ) -> None:
        where = lowered.placement
        self.lowered = lowered
        self.executable = executable
        self.as_bytes: Callable[[], bytes] = as_bytes or executable.serialize  # XLA does not write what it has loaded
        self.name: str = lowered.name
        self.kept: tuple[bool, ...] = lowered.kept
        self.committed: bool = where.committed
        self.in_turn: bool = turns.are_needed(executable, where.devices)
        self.out_avals: list[Any] = lowered.out_avals
        self.kept_positions: list[int] = [i for i, k in enumerate(self.kept) if k]
        self.effects: frozenset[Any] = lowered.effects
        self.ordered: bool = any(e in effects.ordered_effects for e in lowered.effects)
        self.plain_results: bool = all(
            a.is_array and isinstance(a.dtype, np.dtype) and a.dtype != dtypes.float0 for a in self.out_avals
        )
        self.only_arrays: bool = all(a.is_array for a in lowered.in_avals) and all(
            a.is_array and a.dtype != dtypes.float0 for a in self.out_avals
        )
        physical = [element_types.base_aval(a) if a.is_array else _OF_TOKEN for a in self.out_avals]
        one = make_single_device_sharding(where.devices[0])
        self._read_layouts(where)
        if not where.several:
            self.in_shardings = [one] * len(self.kept_positions)
            kinds = executable.get_output_memory_kinds()[0] if lowered.names_memory else ()
            self.out_shardings = [
                one if k == "device" else make_single_device_sharding(where.devices[0], k) for k in kinds
            ]
            self.out_shardings = self.out_shardings or [one] * len(physical)
            self.const_sharding = one
        else:
            self._shardings_of_many(where, physical)
        # A NumPy array is copied. Its owner may write to it, and the program was traced with its value at that time.
        self.const_args: list[Array] = [
            placement.to_sharding(c.copy() if type(c) is np.ndarray else c, self.const_sharding, where.committed)
            for c in lowered.const_args
        ]
        physical = [placement.placed_type(a, s) for a, s in zip(physical, self.out_shardings, strict=True)]
        self.handlers: list[Any] = [
            _handler(a, s, where.committed) for a, s in zip(physical, self.out_shardings, strict=True)
        ]
        self.physical_avals = physical

    def _read_layouts(self, where: Placement) -> None:
        """The layouts of the arguments, None for row-major arguments."""
        self.in_layouts = [None] * len(self.kept_positions)
        if where.layouts is not None:
            found = self.executable.get_parameter_layouts()[len(self.lowered.const_args) :]
            requested = [where.layouts[0][i] for i in self.kept_positions]
            self.in_layouts = [
                None if a is None else Layout.from_pjrt_layout(have) for a, have in zip(requested, found, strict=True)
            ]

    def _shardings_of_many(self, where: Placement, physical) -> None:
        executable = self.executable
        devices = where.devices
        device_list = runtime.DeviceList(devices)
        mesh = where.mesh
        replicated = sharding.GSPMDSharding(device_list, runtime.HloSharding.replicate())
        if mesh is not None:
            replicated = sharding.NamedSharding(mesh, sharding.PartitionSpec())
        self.const_sharding = replicated
        arguments = executable.get_parameter_shardings()
        arguments = None if arguments is None else arguments[len(self.lowered.const_args) :]
        self.in_shardings = []
        for j, i in enumerate(self.kept_positions):
            given = where.arguments[i]
            if given is None:
                given = (
                    replicated
                    if arguments is None
                    else sharding.from_hlo(
                        runtime.HloSharding.from_proto(arguments[j]),
                        device_list,
                        mesh,
                        len(getattr(self.lowered.in_avals[i], "shape", ())),  # a token has none
                    )
                )
            self.in_shardings.append(given)
        outputs = executable.get_output_shardings()
        # A result with the sharding of the first argument of its rank takes its spec, so P("x", None) is kept.
        like: dict[int, Any] = {}
        for i in self.kept_positions:
            if where.arguments[i] is not None:
                like.setdefault(len(self.lowered.in_avals[i].shape), where.arguments[i])
        self.out_shardings = []
        for k, aval in enumerate(physical):
            given = where.results[k]
            if given is None:
                if len(devices) == 1 and mesh is None:
                    given = make_single_device_sharding(devices[0], executable.get_output_memory_kinds()[0][k])
                else:
                    hlo = (
                        runtime.HloSharding.replicate()
                        if outputs is None
                        else runtime.HloSharding.from_proto(outputs[k])
                    )
                    given = sharding.from_hlo(hlo, device_list, mesh, len(aval.shape), like.get(len(aval.shape)))
                    given = _with_sums(given, aval)
                    if type(given) is sharding.NamedSharding and not {*given.spec_axes}.intersection(mesh.auto_axes):
                        given = given.full(len(aval.shape))  # the split is that of the type
            self.out_shardings.append(given)

    def run(self, args: Sequence[Any]) -> list[Any]:
        """Run on flat arguments (one per argument of the jaxpr). Returns one value per result."""
        if flags.no_execution.value:
            raise RuntimeError(f"{self.name} was to be run, but jax_no_execution is on")
        if not isinstance(self.executable, runtime.LoadedExecutable):
            raise RuntimeError(
                f"{self.name} was compiled for {self.lowered.placement.devices[0].device_kind}, of a topology whose devices are"
                " not at hand; where they are, load it from the bytes of jax.experimental.serialize_executable"
            )
        buffers = list(self.const_args)
        for i, s, layout in zip(self.kept_positions, self.in_shardings, self.in_layouts):
            x = args[i]
            if type(x) is ArrayImpl and sharding_of(x) is s:
                check_alive(x)
            else:
                x = self._argument(x, s)
            if layout is not None or layout_of(x) is not None:
                x = placement.with_layout(x, layout or Layout(range(x.ndim)))
            buffers.append(x)
        turns.stop_at_the_end()
        with turns.turn() if self.in_turn else _NO_TURN:
            results = self.executable.execute_sharded(buffers, with_tokens=bool(self.effects))
        if self.effects:
            token = results.consume_token()
            if self.ordered:
                _wait_for(token)
            else:
                with _tokens_lock:
                    _runtime_tokens[self.lowered.placement.devices] = token
        outs = results.consume_with_handlers(self.handlers)
        if config.debug_nans.value or config.debug_infs.value:
            check_finite(self.name.removeprefix("jit_"), outs)
        return outs if self.plain_results else self._wrap(outs)

    def _argument(self, x, s):
        dtype = getattr(getattr(x, "aval", None), "dtype", None)
        if isinstance(dtype, dtypes.ExtendedDType):
            x = dtype.physical_value(x)
        elif isinstance(x, np.ndarray) and x.dtype == dtypes.float0:
            x = np.zeros(x.shape, np.bool_)  # as in the compiled program
        elif x is avals.token:
            x = np.False_
        return placement.to_sharding(x, s, self.committed)

    def _wrap(self, outs) -> list:
        rest = iter(outs)
        found: list[Any] = []
        for aval in self.out_avals:
            if not aval.is_array:
                next(rest)
                found.append(avals.token)
            elif isinstance(aval.dtype, np.dtype):
                found.append(next(rest))
            else:
                found.append(aval.dtype.from_physical(next(rest), aval))
        return found

    def fastpath(self, out_tree: Any, out: Any, alone: bool) -> Any:
        """The data for C++ dispatch of this program, or None if the program needs Python.

        Args:
          out_tree: treedef of the results.
          out: the results of one run, a tree of that structure.
          alone: the value of `turns.are_alone` at the begin of the call.
        """
        if self.effects or not self.only_arrays or not _NATIVE_TREES or not turns.are_for_cpp(self.in_turn, alone):
            return None
        if config.debug_nans.value or config.debug_infs.value:
            return None
        if any(map(_is_elsewhere, self.in_shardings)):  # C++ copies NumPy arrays to the memory of the device
            return None
        if not self.plain_results:  # C++ has the arrays that the results consist of
            out_tree = pytree.dispatch_registry.flatten(out)[1]
            if out_tree.num_leaves != len(self.physical_avals):
                return None  # C++ cannot make arrays of this class
        return runtime.FastpathData(
            xla_executable=self.executable,
            out_pytree_def=out_tree,
            in_shardings=[self.const_sharding] * len(self.const_args) + self.in_shardings,
            out_shardings=self.out_shardings,
            out_avals=self.physical_avals,
            out_committed=[self.committed] * len(self.physical_avals),
            kept_var_bitvec=[True] * len(self.const_args) + list(self.kept),
            in_device_local_layouts=[None] * len(self.const_args) + self.in_layouts,
            const_args=self.const_args,
        )


def _handler(aval: ShapedArray, s: Any, committed: bool):
    handler = runtime.array_result_handler(aval, s, committed)
    if aval.dtype == dtypes.float0:
        # XLA computed booleans instead. A float0 has no bits.
        return handler.wrap(lambda x: np.zeros(aval.shape, dtypes.float0))
    return handler


class NonFinite(FloatingPointError):
    """Raised internally. The search for the failing operation follows."""


def check_finite(name: str, outs: Sequence[Any]) -> None:
    """Raise FloatingPointError if a result has a NaN (or an infinity) and the debug options forbid it."""
    kinds = [kind for kind, option in (("nan", config.debug_nans), ("inf", config.debug_infs)) if option.value]
    for x in outs:
        for kind in kinds:
            if is_bad(kind, x):
                raise NonFinite(kind, name)


def is_bad(kind: str, x: Any) -> bool:
    """Return whether an array has a NaN (kind ``"nan"``) or an infinity (``"inf"``)."""
    if not isinstance(x, ArrayImpl) or not dtypes.is_inexact(x.dtype):
        return False
    value = np.asarray(x)
    if not dtypes.is_native(value.dtype):
        value = value.astype(np.float32)
    return bool((np.isnan if kind == "nan" else np.isinf)(value).any())
