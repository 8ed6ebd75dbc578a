"""Export: programs that are lowered here and run in another process, without their Python source.

`export` makes an `Exported`, which holds StableHLO as a portable artifact; calling it binds a primitive whose
lowering specializes that module to the shapes and the platform of the call. `export_format` converts it to bytes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from bedrax import lax, pytree, shape_poly
from bedrax.autodiff import vjp
from bedrax.autodiff.custom_rules import custom_vjp
from bedrax.autodiff.tables import jvp_rules, transpose_rules
from bedrax.batching.tables import batch_rules
from bedrax.core import dead_code, dims, dtypes, effects, passes, source
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.ir import Jaxpr, jaxpr_as_fun
from bedrax.core.jitting import jit
from bedrax.core.staging import program_of
from bedrax.core.tables import device_rules, effect_rules
from bedrax.core.tracing import Primitive
from bedrax.lax import element_types
from bedrax.lax.primitives.placement import Memory, moved
from bedrax.numpy_backend.tables import numpy_rules
from bedrax.parallel import explicit
from bedrax.parallel.meshes import get_abstract_mesh
from bedrax.shape_poly import SymbolicScope, is_symbolic_dim, symbolic_args_specs, symbolic_dim_bounds, symbolic_shape
from bedrax.xla_backend import (
    clients,
    export_format,
    export_public,
    flags,
    placement,
    platforms,
    running,
    sharding,
    tables,
)
from bedrax.xla_backend import compile as compile_module
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.export_words import register_namedtuple_serialization, register_pytree_node_serialization

minimum_supported_calling_convention_version: int = flags.CALLING_CONVENTIONS[0]
maximum_supported_calling_convention_version: int = flags.CALLING_CONVENTIONS[-1]

PLATFORMS = tuple(platforms.PLATFORMS)

# Custom calls that are stable in XLA, jaxlib and this package. Prefixes end with "*".
_STABLE_CUSTOM_CALLS = (
    "shape_assertion",
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "annotate_device_placement",
    "mhlo.*",
    "stablehlo.*",
    "chlo.*",
    "lapack_*",
    "cusolver_*",
    "hipsolver_*",
    "cu_threefry2x32_ffi",
    "Eigh",
    "Qr",
    "ProductOfElementaryHouseholderReflectors",
    "LuDecomposition",
    "ApproxTopK",
    "TopK",
    "PartialReduce",
    "InspectSharding",
    "cu_lu_pivots_to_permutation",
    "__gpu$xla.gpu.triton",
    "tpu_custom_call",
)


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class DisabledSafetyCheck:
    """A check that `export` and calls of its result omit. The class methods make it.

    Examples:

      >>> from jax import export

      >>> check = export.DisabledSafetyCheck.custom_call("my_kernel")
      >>> check == export.DisabledSafetyCheck.custom_call("my_kernel")
      True
    """

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Permit calls on platforms that the program was not lowered for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Permit a custom call with this target, although it is not stable."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The permitted target of a custom call; None for another check."""
        return self._impl.removeprefix("custom_call:") if self._impl.startswith("custom_call:") else None

    def __str__(self) -> str:
        return self._impl

    def __repr__(self) -> str:
        return f"DisabledSafetyCheck({self._impl!r})"


def default_export_platform() -> str:
    """The default platform of exported programs: that of the default device.

    Examples:

      >>> from jax import export

      >>> export.default_export_platform() == jax.default_backend()
      True
    """
    return platforms.of_device(clients.default_device())


@dataclasses.dataclass(frozen=True, eq=False)
class Exported:
    """A lowered program with the data for its calls.

    Attributes:
      fun_name: the name of the function in messages.
      in_tree: structure of ``(args, kwargs)``.
      in_avals: types of the flat arguments; shapes may have dimension variables.
      out_tree, out_avals: the same for the results.
      in_shardings_hlo, out_shardings_hlo: shardings (None: not specified) by flat argument and result.
      nr_devices: the number of devices that the program was lowered for.
      platforms: the platforms that it was lowered for. With several, the module's main function takes the index of the
        one it runs on as first argument.
      ordered_effects, unordered_effects: effects of the program.
      disabled_safety_checks: checks that are omitted.
      mlir_module_serialized: the module as a portable StableHLO artifact.
      calling_convention_version: the version of the calling convention of the main function.
      module_kept_var_idx: positions of the flat arguments that the main function takes.
      uses_global_constants: whether main must be specialized to a platform or to shapes before it is compiled.

    Examples:

      >>> from jax import export

      >>> exported = export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((2,), jnp.float32))
      >>> isinstance(exported, export.Exported)
      True
      >>> exported.in_avals
      (ShapedArray(float32[2]),)
    """

    fun_name: str
    in_tree: Any
    in_avals: tuple[Any, ...]
    out_tree: Any
    out_avals: tuple[Any, ...]
    _in_named_shardings: tuple[Any, ...]
    _out_named_shardings: tuple[Any, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Any, ...]
    unordered_effects: tuple[Any, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None
    _in_memories: tuple[str | None, ...] = ()  # per flat argument: its memory, if it is not the memory of the device
    _out_memories: tuple[str | None, ...] = ()

    def mlir_module(self, serialized: bool = True) -> Any:
        """The StableHLO module as text, with the names and lines of the source, or (not `serialized`) as a module of
        MLIR's Python bindings."""
        from bedrax.xla_backend.lowering import modules  # MLIR is loaded at first use

        module = modules.deserialize(self.mlir_module_serialized)
        return module.operation.get_asm(enable_debug_info=True) if serialized else module

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    __repr__ = __str__

    @property
    def _has_named_shardings(self) -> bool:
        """Whether shardings are stored with the names of mesh axes; those of older programs are stored in XLA's
        form."""
        return len(self._in_named_shardings) == len(self.in_avals) and len(self._out_named_shardings) == len(
            self.out_avals
        )

    def in_shardings_jax(self, mesh: Any) -> tuple[Any, ...]:
        """Shardings of the arguments over `mesh`, a mesh with the number of devices that the program was lowered
        for."""
        return self._shardings(self.in_shardings_hlo, self.in_avals, mesh)

    def out_shardings_jax(self, mesh: Any) -> tuple[Any, ...]:
        """Shardings of the results over `mesh`; see `in_shardings_jax`."""
        return self._shardings(self.out_shardings_hlo, self.out_avals, mesh)

    def _shardings(self, shardings, avals, mesh):
        devices = runtime.DeviceList(tuple(mesh.devices.flat))
        return tuple(
            [
                None if s is None else sharding.from_hlo(s, devices, mesh, len(a.shape))
                for s, a in zip(shardings, avals, strict=True)
            ]
        )

    def has_vjp(self) -> bool:
        """Whether `vjp` is available."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The derivative: takes the flat arguments and one cotangent per result, returns one per argument.

        Raises:
          ValueError: the program was serialized without it.
        """
        if self._get_vjp is None:
            raise ValueError("No VJP is available")
        known = self.__dict__.get("_derivative")
        if known is None:
            known = self._get_vjp(self)
            object.__setattr__(self, "_derivative", known)
        return known

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The program as bytes for `deserialize`, in the public format, which other implementations of `jax.export`
        read.

        The public format has no form for some data (dtypes such as ``int2``, dictionaries with integer keys,
        unconstrained dimensions of shardings, the memory ``unpinned_host`` without a mesh). Programs with these are
        written in the format of this package, which only this package reads.

        Args:
          vjp_order: the number of times that the deserialized program can be differentiated (in reverse mode).

        Raises:
          ValueError: classes of pytree nodes are not registered for serialization, effects have no name.
        """
        levels = []
        for exported in _derivatives(self, vjp_order):
            fields = {name: getattr(exported, name) for name in (*export_format.FIELDS, *export_public.NAMED)}
            levels.append({**fields, "disabled_safety_checks": [str(c) for c in exported.disabled_safety_checks]})
        return export_format.write(levels)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program, here or inside other programs.

        Raises:
          ValueError: arguments do not have the exported structure, shapes or dtypes; the platform or the
            number of devices differs.
        """
        leaves, tree = pytree.tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise ValueError(
                f"'{self.fun_name}' was exported for arguments of one structure and is called with another:\n"
                f"expected {self.in_tree}\ngot      {tree}"
            )
        given = [_operand(x, a) for x, a in zip(leaves, self.in_avals, strict=True)]
        outs = _differentiable(self)(*_in_memories(given, self._in_memories))
        return pytree.tree_unflatten(self.out_tree, _in_memories(outs, self._out_memories))


def _in_memories(values: Sequence[Any], memories: Sequence[str | None]) -> Sequence[Any]:
    """Values in memories (None: unchanged)."""
    if not any(memories):
        return values
    return [x if m is None else moved(x, sharding.Memory(m)) for x, m in zip(values, memories, strict=True)]


def _operand(x: Any, aval) -> Any:
    """A Python scalar in the dtype of the program's argument, float0 as booleans; other values unchanged."""
    if getattr(x, "dtype", None) == dtypes.float0:
        return np.zeros(x.shape, np.bool_)
    if type(x) in (bool, int, float, complex) and isinstance(aval.dtype, np.dtype):
        weak = aval_of(x)
        if weak.dtype.kind == aval.dtype.kind:
            return np.asarray(x, aval.dtype)
    return x


def _differentiable(exported: Exported) -> Callable:
    """The call on flat arguments, as a function with a rule for reverse mode."""
    known = exported.__dict__.get("_function")
    if known is not None:
        return known

    @custom_vjp
    def call_exported(*args):
        return call_exported_p.bind(*args, exported=exported)

    def forward(*args):
        return call_exported(*args), args

    def backward(args, cts):
        derivative = exported.vjp()
        kept = [_operand(ct, a) for ct, a in zip(cts, derivative.in_avals[len(args) :], strict=True)]
        outs = _differentiable(derivative)(*args, *kept)
        return tuple([g if dtypes.is_inexact(a.dtype) else None for g, a in zip(outs, exported.in_avals, strict=True)])

    call_exported.defvjp(forward, backward)
    object.__setattr__(exported, "_function", call_exported)
    return call_exported


def _derivatives(exported: Exported, order: int) -> Iterator[Exported]:
    """A program, its derivative, and so on."""
    yield exported
    for _ in range(order):
        exported = exported.vjp()
        yield exported


def deserialize(blob: bytes | bytearray) -> Exported:
    """The exported program from the result of `Exported.serialize`, of this or another implementation of `jax.export`.

    Raises:
      ValueError: the bytes are not an exported program, damaged, or of a later version; the program has pytree nodes or
        effects that are not registered in this process.

    Examples:

      >>> from jax import export

      >>> exported = export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((), jnp.float32))
      >>> export.deserialize(exported.serialize()).call(0.)
      Array(0., dtype=float32)
    """
    return _from_levels(export_format.read(blob, maximum_supported_calling_convention_version))


def _from_levels(levels: list[dict[str, Any]]) -> Exported:
    checks = tuple([DisabledSafetyCheck(c) for c in levels[0]["disabled_safety_checks"]])
    derivative = (lambda _: _from_levels(levels[1:])) if len(levels) > 1 else None
    return Exported(**{**levels[0], "disabled_safety_checks": checks, "_get_vjp": derivative})


# ---- exporting ----


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Any = None,
) -> Callable[..., Exported]:
    """Export a function.

    Args:
      fun_jit: a jitted function, or a function of this library.
      platforms: some of ``"cpu" "cuda" "rocm" "tpu"``. Default: the platform of the default device.
        With several, the result can be called on any of them.
      disabled_checks: checks to omit.

    Returns:
      A function of the argument types (arrays, or `ShapeDtypeStruct`s, whose shapes may be symbolic) that returns an
      `Exported`.

    Raises (when called):
      ValueError: the shapes of the arguments do not determine the dimension variables; the program has custom calls
        that are not stable.
      NotImplementedError: the program calls back into Python.

    Examples:

      >>> from jax import export

      >>> exported = export.export(jax.jit(lambda x: 2 * x))(jax.ShapeDtypeStruct((3,), jnp.float32))
      >>> exported.call(jnp.ones(3))
      Array([2., 2., 2.], dtype=float32)
    """
    if not hasattr(fun_jit, "trace") and (getattr(fun_jit, "__module__", None) or "").startswith("bedrax."):
        fun_jit = jit(fun_jit)  # functions of the library need not be jitted
    if not hasattr(fun_jit, "trace"):
        raise ValueError(f"export needs a function made by jit, got {fun_jit!r}; write export(jit(f))")
    if _override_lowering_rules is not None:
        raise NotImplementedError("_override_lowering_rules is not supported")
    if platforms is not None:
        if isinstance(platforms, str) or not platforms:
            raise ValueError(f"platforms must be a non-empty sequence of names, got {platforms!r}")
        bad = [p for p in platforms if p not in PLATFORMS]
        if bad:
            raise ValueError(f"unknown platforms {bad}; known ones are {PLATFORMS}")

    @functools.wraps(fun_jit, updated=())
    def exporter(*args, **kwargs) -> Exported:
        traced = fun_jit.trace(*args, **kwargs)
        targets = tuple(platforms) if platforms is not None else (default_export_platform(),)
        return _export(traced, targets, tuple(disabled_checks))

    return exporter


def _export(traced, platforms: tuple[str, ...], disabled: tuple) -> Exported:
    call = traced._call
    if any(a.mutable for a in traced.jaxpr.in_avals):
        raise NotImplementedError(
            f"export: {traced.fun_name} takes a reference, which no other process has; export a function of its value"
        )
    if any(not a.is_array for a in traced.jaxpr.in_avals + traced.jaxpr.out_avals):
        raise NotImplementedError(
            f"export: {traced.fun_name} takes or returns a token or a value of a library's type, and exported programs are of"
            " arrays; export a function that makes such values and keeps them"
        )
    program = traced._pure
    _, arguments, results = placement.claims(program, call.args, traced._requested)
    return export_program(
        program,
        traced.fun_name,
        call.in_tree,
        traced.out_tree,
        platforms,
        disabled,
        (arguments, results),
        names=_names(traced),
        result_names=running.result_names(traced.out_tree),
    )


def _names(traced) -> list[str]:
    """The names of the arguments in messages: ``args[0]['x']``, ``kwargs['y']``."""
    paths = pytree.tree_flatten_with_path(traced.args_info)[0]
    return [("args" if path[0].idx == 0 else "kwargs") + pytree.keystr(path[1:]) for path, _ in paths]


def export_program(
    jaxpr: Jaxpr,
    name: str,
    in_tree: Any,
    out_tree: Any,
    platforms: tuple[str, ...],
    disabled: tuple[Any, ...] = (),
    shardings: tuple[Any, ...] | None = None,
    names: Sequence[str] | None = None,
    result_names: Sequence[str] | None = None,
) -> Exported:
    """Export a traced program; see `export`.

    Args:
      shardings: those of the arguments and those of the results (None: not specified).
      names, result_names: the names of arguments and results in messages and in the module.
    """
    from bedrax.xla_backend.lowering import modules  # MLIR is loaded at first use

    jaxpr = dead_code.live(jaxpr)  # what is not compiled needs no device and no callback
    _refuse_callbacks(jaxpr, name)
    happens = sorted(jaxpr.effects, key=lambda e: str(type(e)))
    ordered = tuple(effects.ordered_effects.filter_in(happens))
    in_avals, out_avals = tuple(jaxpr.in_avals), tuple(jaxpr.out_avals)
    for what, types in (("argument", in_avals), ("result", out_avals)):
        for i, aval in enumerate(types):
            _check_sums(f"export of '{name}'", f"{what} {i}", aval)
    arguments, results = shardings or ((None,) * len(in_avals), (None,) * len(out_avals))
    devices = placement.device_count(jaxpr, placement.Requested(arguments, results))
    alone = effects.shardable_ordered_effects.filter_not_in(ordered)
    if devices > 1 and alone:
        raise ValueError(
            f"export: '{name}' is for {devices} devices and has the ordered effects {alone}, which one device has"
        )
    memories = compile_module.memories(jaxpr, arguments, results)
    if set(platforms) != {"cpu"}:
        jaxpr = compile_module.with_operands_on_device(jaxpr, arguments, results)
    if devices == 1:  # the call chooses the device
        arguments, results = (None,) * len(in_avals), (None,) * len(out_avals)
    kept = modules.solvable_arguments(jaxpr, compile_module.kept_arguments(jaxpr))

    def mark(arg_attrs, res_attrs, partitioner):
        if devices > 1:
            for attrs, i in zip(arg_attrs, kept, strict=True):
                compile_module.mark_sharding(attrs, arguments[i], in_avals[i], partitioner)
            for attrs, s, aval in zip(res_attrs, results, out_avals, strict=True):
                compile_module.mark_sharding(attrs, s, aval, partitioner)
        compile_module.mark_memories([arg_attrs, res_attrs], [[memories[0][i] for i in kept], memories[1]])

    lowered = modules.lower(
        jaxpr,
        "jit_" + name,
        platforms,
        kept,
        num_partitions=devices,
        names=names,
        result_names=result_names,
        mark_shardings=mark,
        ordered=ordered,
    )
    if lowered.program.host_callbacks or lowered.program.keepalives:
        raise NotImplementedError(
            f"export: a lowering rule of '{name}' keeps Python objects ({[*lowered.program.host_callbacks, *lowered.program.keepalives]}),"
            " which an exported program cannot"
        )
    check_custom_calls(modules.custom_call_targets(lowered.program.module), disabled)

    has_names = all(s is None or isinstance(s, sharding.NamedSharding) for s in (*arguments, *results))

    def named(shardings):
        if not has_names:
            return ()
        return tuple([None if s is None else s.update(mesh=s.mesh.abstract_mesh) for s in shardings])

    def hlo(s, aval):
        return None if s is None else s._to_xla_hlo_sharding(len(element_types.base_aval(aval).shape))

    return Exported(
        fun_name=name,
        in_tree=in_tree,
        in_avals=in_avals,
        out_tree=out_tree,
        out_avals=out_avals,
        _in_named_shardings=named(arguments),
        _out_named_shardings=named(results),
        _in_memories=memories[0],
        _out_memories=memories[1],
        in_shardings_hlo=tuple([hlo(s, a) for s, a in zip(arguments, in_avals, strict=True)]),
        out_shardings_hlo=tuple([hlo(s, a) for s, a in zip(results, out_avals, strict=True)]),
        nr_devices=devices,
        platforms=platforms,
        ordered_effects=ordered,
        unordered_effects=tuple(effects.ordered_effects.filter_not_in(happens)),
        disabled_safety_checks=disabled,
        mlir_module_serialized=modules.serialize(lowered.program.module),
        calling_convention_version=flags.export_calling_convention_version.value,
        module_kept_var_idx=kept,
        uses_global_constants=lowered.symbolic,
        _get_vjp=functools.partial(_export_vjp, jaxpr, (arguments, results)),
    )


def _refuse_callbacks(jaxpr, name: str) -> None:
    """Raise NotImplementedError, with the name and the location, if a program calls Python code of the user."""
    for eqn in passes.all_equations(jaxpr):
        if eqn.primitive.family == "callbacks":
            called = eqn.params.get("callback", eqn.primitive)
            raise NotImplementedError(
                f"export: '{name}' calls back into Python, which the process that runs an exported program does not have:"
                f" {eqn.primitive} of {called}, {source.describe(eqn.source_info)}. Export the function without it."
            )


def check_custom_calls(targets: set[str], disabled: Sequence[DisabledSafetyCheck]) -> None:
    """Raise ValueError for a custom call that is neither stable nor permitted."""
    allowed = {c.is_custom_call() for c in disabled}
    stable = [s.removesuffix("*") for s in _STABLE_CUSTOM_CALLS if s.endswith("*")]
    bad = [
        t
        for t in sorted(targets)
        if t not in allowed and t not in _STABLE_CUSTOM_CALLS and not any(t.startswith(s) for s in stable)
    ]
    if bad:
        raise ValueError(
            f"the program has custom calls that other versions may not support: {', '.join(bad)}. To export one all the same, pass disabled_checks=[DisabledSafetyCheck.custom_call(target)]."
        )


def _export_vjp(jaxpr, shardings, primal: Exported) -> Exported:
    """The derivative of a program, exported for the platforms of `primal`."""
    fun = jaxpr_as_fun(jaxpr)
    count = len(primal.in_avals)
    ct_avals = tuple([a.to_tangent_aval() for a in primal.out_avals])

    active = [dtypes.is_inexact(a.dtype) for a in primal.in_avals]

    def derivative(*args_and_cts):
        args = args_and_cts[:count]

        def of_active(*values):
            given = iter(values)
            outs = fun(*[next(given) if m else x for m, x in zip(active, args, strict=True)])
            return [y for y, a in zip(outs, ct_avals, strict=True) if a.dtype != dtypes.float0]

        _, back = vjp(of_active, *[x for m, x in zip(active, args, strict=True) if m])
        grads = iter(
            back([ct for ct, a in zip(args_and_cts[count:], ct_avals, strict=True) if a.dtype != dtypes.float0])
        )
        return [next(grads) if m else _no_gradient(a) for m, a in zip(active, primal.in_avals, strict=True)]

    in_avals = (*primal.in_avals, *ct_avals)
    program = program_of(derivative, in_avals)
    arguments, results = shardings
    placed = ((*arguments, *results), tuple([s if m else None for s, m in zip(arguments, active, strict=True)]))
    in_tree = pytree.tree_structure((tuple(range(len(in_avals))), {}))
    out_tree = pytree.tree_structure(tuple(range(count)))
    return export_program(
        program,
        primal.fun_name + "_vjp",
        in_tree,
        out_tree,
        primal.platforms,
        tuple(primal.disabled_safety_checks),
        placed,
    )


def _no_gradient(aval) -> Any:
    """The gradient of an argument that has none: float0, or False for a symbolic shape."""
    if dims.is_constant_shape(aval.shape):
        return np.zeros(aval.shape, dtypes.float0)
    return lax.full(aval.shape, False, np.bool_)


# ---- calling ----

call_exported_p: Final = Primitive("call_exported", "calls", multiple_results=True)


class _Everywhere:
    """The place of a program that was exported for a number of arbitrary devices."""

    assignment = None

    def __init__(self, exported: Exported) -> None:
        self.num_devices = exported.nr_devices


effect_rules.add(call_exported_p, lambda *_, exported: {*exported.ordered_effects, *exported.unordered_effects})
tables.result_places[call_exported_p] = lambda params: [
    kind and Memory(kind) for kind in params["exported"]._out_memories or (None,) * len(params["exported"].out_avals)
]
device_rules.add(call_exported_p, lambda params: (_Everywhere(params["exported"]),))


_WHY = "an exported program is compiled code of fixed types"
batch_rules.absent(call_exported_p, why=f"{_WHY}; export the function after vmap, or map its calls with lax.map")
jvp_rules.absent(call_exported_p, why=f"{_WHY}; Exported.call is a function with a rule for reverse mode")
transpose_rules.absent(call_exported_p, why=f"{_WHY}; Exported.call is a function with a rule for reverse mode")
numpy_rules.absent(call_exported_p, why=f"{_WHY}, which NumPy does not run")
for _table in (batch_rules, jvp_rules, transpose_rules):
    _table.absent(shape_poly.dim_as_value_p, why="it has no operands")


explicit.with_types.add(call_exported_p)


def _check_sums(what: str, where: str, aval: ShapedArray) -> None:
    """Raise if an operand or result is partial sums: a program need not be linear, and its code is for whole values."""
    if aval.split is not None and aval.split.spec.unreduced:
        raise explicit.ShardingTypeError(
            f"{what}: {where} is {aval.short()}, which is partial sums, and an exported program need not be linear. Sum"
            " first, with jax.sharding.reshard(x, P(...)) without unreduced="
        )


@call_exported_p.abstract
def _call_exported_shape(*avals, exported):
    if len(avals) != len(exported.in_avals):
        raise ValueError(f"'{exported.fun_name}' was exported for {len(exported.in_avals)} arguments, got {len(avals)}")
    for i, (have, want) in enumerate(zip(avals, exported.in_avals, strict=True)):
        name, where = exported.fun_name, f"argument {i}"
        if len(have.shape) != len(want.shape):
            raise ValueError(
                f"{name}, {where}: expected rank {len(want.shape)}, of shape {want.shape}; got shape {have.shape}"
            )
        if have.dtype != want.dtype and (have.dtype, want.dtype) != (np.bool_, dtypes.float0):
            raise ValueError(f"{name}, {where}: expected dtype {want.dtype}, got {have.dtype}")
        for axis, (d, known) in enumerate(zip(have.shape, want.shape, strict=True)):
            if not dims.is_symbolic(known) and not dims.definitely_equal(d, known):
                raise ValueError(
                    f"{name}, {where}: expected size {known} of axis {axis}, as of shape {want.shape}; got shape"
                    f" {have.shape}"
                )
        _check_sums(f"call of the exported program '{name}'", where, have)
    for s in (*exported._in_named_shardings, *exported._out_named_shardings):  # of another writer
        if s is not None and s.spec.unreduced:
            raise explicit.ShardingTypeError(
                f"call of the exported program '{exported.fun_name}': it takes or returns partial sums, by its sharding"
                f" {s.spec}, and here an exported program has whole values. Export a function that sums them"
            )
    env = shape_poly.solve_dims([a.shape for a in exported.in_avals], lambda i, axis: avals[i].shape[axis])
    mesh = next((a.split.mesh for a in avals if getattr(a, "split", None) is not None), None) or get_abstract_mesh()

    def concrete(aval):
        if aval.split is not None:  # the split is a fact of the exported program, over the axes of its caller
            same = aval.split.mesh.shape_tuple == mesh.shape_tuple
            aval = aval.update(sharding=aval.split.update(mesh=mesh).sharding_of_type(aval) if same else None)
        if dims.is_constant_shape(aval.shape):
            return aval
        return aval.update(shape=tuple([d.evaluate(env) if dims.is_symbolic(d) else d for d in aval.shape]))

    return [concrete(a) for a in exported.out_avals]


@tables.lowering_rules.rule(call_exported_p)
def _lower_call(ctx, *operands, exported: Exported):
    from bedrax.xla_backend.lowering import linking, modules, types  # MLIR is loaded at first use

    program, platform = ctx.program, ctx.platform
    devices = program.num_partitions
    if exported.nr_devices != devices and exported.nr_devices != 1:
        raise ValueError(
            f"'{exported.fun_name}' was exported for {exported.nr_devices} devices and is called in a program for"
            f" {devices}. Place its arguments on {exported.nr_devices} devices; only a program for one device runs on any number."
        )
    index = None
    if platform in exported.platforms:
        index = exported.platforms.index(platform)
    elif DisabledSafetyCheck.platform() in exported.disabled_safety_checks:
        index = 0
    else:
        raise ValueError(
            f"'{exported.fun_name}' was exported for {', '.join(exported.platforms)} and is called on {platform}; name it in"
            f" export(platforms=...)"
        )
    kept = exported.module_kept_var_idx
    given = [operands[i] for i in kept]
    given = [ctx.with_sharding(v, exported.in_shardings_hlo[i]) for v, i in zip(given, kept, strict=True)]
    static = modules.all_static(ctx.avals_in)
    ordered = exported.ordered_effects
    in_types = [types.token_type() for _ in ordered] + [
        types.type_of(ctx.avals_in[i] if static else exported.in_avals[i]) for i in kept
    ]
    platform_index = index if len(exported.platforms) > 1 else None
    symbol = linking.imported(
        program, exported, in_types, platform_index, refine=static and exported.uses_global_constants
    )
    outs = linking.call_function(ctx, symbol, [*map(ctx.token, ordered), *given])
    for effect, token in zip(ordered, outs, strict=False):
        ctx.set_token(effect, token)
    outs = outs[len(ordered) :]
    return [ctx.with_sharding(v, s) for v, s in zip(outs, exported.out_shardings_hlo, strict=True)]


__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_dim_bounds",
    "symbolic_shape",
]
