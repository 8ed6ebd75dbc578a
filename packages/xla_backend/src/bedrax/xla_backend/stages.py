"""The stages of `jit` as objects: `Traced`, `Lowered`, `Compiled`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bedrax import pytree
from bedrax.core import arrays_of_values, avals, effects, ir, objects, offers, staging
from bedrax.core.array import Array
from bedrax.core.ir import Jaxpr
from bedrax.core.jitting import TracedCall
from bedrax.core.jitting import jit as dispatch_jit
from bedrax.core.signatures import parameter_names
from bedrax.core.tracing import Mutable, Tracer
from bedrax.xla_backend import clients, placement, platforms, running, turns
from bedrax.xla_backend import compile as compile_module
from bedrax.xla_backend.door import mlir, runtime
from bedrax.xla_backend.layout import Format, Layout
from bedrax.xla_backend.placement import Requested

CompilerOptions = dict[str, Any]


@runtime_checkable
class Wrapped(Protocol):
    """The result of `jit`: it can be called, traced and lowered.

    Examples:

      >>> isinstance(jax.jit(jnp.sin), jax.stages.Wrapped)
      True
    """

    def __call__(self, *args: Any, **kwargs: Any) -> None: ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The program for these arguments."""

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The program for these arguments, lowered."""


@dataclass(frozen=True, slots=True)
class ArgInfo:
    """Type of an argument, and whether it is donated.

    Examples:

      >>> lowered = jax.jit(lambda x: 2 * x).lower(jnp.ones(3))
      >>> (info,), _ = lowered.args_info
      >>> isinstance(info, jax.stages.ArgInfo), info.donated
      (True, False)
    """

    _aval: Any
    donated: bool

    @property
    def shape(self) -> Any:
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        return self._aval.dtype

    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval}, donated={self.donated})"


class Stage:
    """The common part of all stages: the structure of arguments and results."""

    args_info: Any
    out_tree: Any
    _repr_html_ = offers.shown("stage")

    def _stage_of(self, traced: Traced) -> None:
        """Copy the common parts of the first stage."""
        self._traced = traced
        self.args_info = traced.args_info
        self.out_tree = traced.out_tree

    @property
    def in_tree(self) -> Any:
        """Structure of ``(args, kwargs)``."""
        return pytree.tree_structure(self.args_info)

    @property
    def in_avals(self) -> Any:
        """Types of the arguments, as ``(args, kwargs)``."""
        return pytree.tree_map(lambda a: a._aval, self.args_info)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Positions of the donated arguments among all flat ones."""
        return tuple(i for i, a in enumerate(pytree.tree_leaves(self.args_info)) if a.donated)


def trace(jitted: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    """Trace a jitted function for arguments, which may be arrays or other objects with a shape and a dtype."""
    call = jitted.trace_call(args, kwargs)
    if call.arg_offset or call.changes:
        raise ValueError(
            f"{jitted.name} closes over references, or values of another transformation, and cannot be staged on its own:"
            " pass them as arguments"
        )
    return Traced(jitted, call._replace(params=running.to_run(call)), running.requested_of(jitted, call))


class Traced(Stage):
    """A traced call of a jitted function.

    Attributes:
      jaxpr: the program.
      out_info: types of the results, as a pytree of `ShapeDtypeStruct`.

    Examples:

      >>> traced = jax.jit(lambda x: 2 * x).trace(jnp.ones(3))
      >>> isinstance(traced, jax.stages.Traced)
      True
      >>> traced.jaxpr
      { lambda ; a:f32[3]. let b:f32[3] = mul 2.0:f32[] a in (b,) }
    """

    def __init__(self, jitted: Callable[..., Any], call: TracedCall, requested: Requested) -> None:
        self._jitted = jitted
        self._call = call
        self._requested = requested
        self.jaxpr: Jaxpr = call.jaxpr
        self.out_tree: Any | Any = call.out_tree
        self.fun_name: Any = jitted.name
        infos = [ArgInfo(a, d) for a, d in zip(call.jaxpr.in_avals, call.params["donated_invars"], strict=True)]
        self.args_info: Any = pytree.tree_unflatten(call.in_tree, infos)
        self._pure, self._written = self.jaxpr, ()  # the program to lower, and the arguments of its further results
        if references := [a for a in self.jaxpr.in_avals if a.mutable]:
            self._pure, self._written = references[0].pure(self.jaxpr)
            if requested.results is not None:
                self._requested = requested._replace(results=(*requested.results, *[None] * len(self._written)))
        self._ins, self._outs = self._pure.in_avals, self._pure.out_avals  # types of values: arrays may represent them
        self._params, self._places = call.params, self._requested
        if objects.kinds:
            self._pure, self._params, self._places = running.on_arrays(self._pure, self._params, self._places)

    def _arrays(self, args: Sequence[Any]) -> list[Any]:
        """The arguments of `_pure`: the values of references, and the arrays of values of libraries' types."""
        values = [x[...] if isinstance(x, Mutable) else x for x in args]
        return arrays_of_values.arrays_of(self._ins, values) if objects.kinds else values

    def _of_arguments(self, facts: Sequence[Any]) -> Any:
        """The pytree of the arguments, of one fact per argument of `_pure`. A value of a library's type has a list."""
        facts = arrays_of_values.gathered(self._ins, facts) if objects.kinds else facts
        return pytree.tree_unflatten(self._call.in_tree, facts)

    def _of_results(self, facts: Sequence[Any]) -> Any:
        """The same of the results. Those of written references are last in `_pure`, and left out."""
        facts = arrays_of_values.gathered(self._outs, facts) if objects.kinds else facts
        return pytree.tree_unflatten(self.out_tree, facts[: self.out_tree.num_leaves])

    @property
    def lojax(self) -> Any:
        return self

    @property
    def effects(self) -> Any:
        return self.jaxpr.effects

    @property
    def out_avals(self) -> Any:
        return pytree.tree_unflatten(self.out_tree, self.jaxpr.out_avals)

    @property
    def out_info(self) -> Any:
        requested = self._requested.results or (None,) * len(self.jaxpr.outvars)
        out = [
            avals.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type, sharding=s) if a.is_array else a
            for a, s in zip(self.jaxpr.out_avals, requested, strict=bool(not self._written))
        ]
        return pytree.tree_unflatten(self.out_tree, out)

    def closure_convert(self) -> tuple[list[Any], Callable[..., Any]]:
        """The arrays that the function closes over, and the function with them as its first argument.

        Returns:
          ``(consts, fun)``: ``fun(consts, *args, **kwargs)`` returns the result of the function. Other arrays of the
          same types, as any pytree, may replace `consts`.
        """
        program, consts = staging.close_over(self.jaxpr)
        in_tree, out_tree = self._call.in_tree, self.out_tree

        def converted(consts, *args, **kwargs):
            leaves, tree = pytree.tree_flatten((args, kwargs))
            if tree != in_tree:
                raise TypeError(f"{self.fun_name} was traced for the arguments {in_tree}, and is called with {tree}")
            return pytree.tree_unflatten(out_tree, ir.run(program, *pytree.tree_leaves(consts), *leaves))

        converted.__name__ = converted.__qualname__ = self.fun_name
        return consts, converted

    def with_consts_as_arg(self) -> tuple[list[Any], Traced]:
        """The arrays that the function closes over, and the traced function of them: a list, the first argument."""
        consts, converted = self.closure_convert()
        args, kwargs = pytree.tree_map(avals.struct_of, self.in_avals)
        return consts, dispatch_jit(converted).trace(consts, *args, **kwargs)

    def lower(self, *, lowering_platforms: Sequence[str] | None = None, _private_parameters: Any = None) -> Lowered:
        """Make the StableHLO module.

        Args:
          lowering_platforms: platforms, e.g. ``("cuda",)``. Default: the platform of the devices. A program that is
            lowered for several, or with shardings over an `AbstractMesh` only, can be read and not compiled.

        Raises:
          ValueError: shardings are over an `AbstractMesh` only, and there are no `lowering_platforms`.
        """
        params = self._params
        requested = [p for name in lowering_platforms or () for p in platforms.members(name)[:1]]
        names = [*running.result_names(self.out_tree), *(f"reference[{i}]" for i in self._written)]
        names = arrays_of_values.spread(self._outs, names) if objects.kinds else names
        where = None
        try:
            where = placement.choose_placement(self._pure, self._arrays(self._call.args), self._places)
        except placement.WithoutDevices:
            if not requested:
                raise
        if where is None or len(requested) > 1:
            return Lowered(self, self._lower_to_read(requested, names))
        lowered = compile_module.lower(
            self._pure,
            "jit_" + self.fun_name,
            where,
            params["donated_invars"],
            params["keep_unused"],
            params["compiler_options"],
            platform=requested[0] if requested else None,
            embed_constants=True,
            result_names=names,
        )
        return Lowered(self, lowered)

    def _lower_to_read(self, requested: Sequence[str], result_names: Sequence[str]) -> Any:
        """The module for platforms and a number of devices, which need not be available."""
        from bedrax.xla_backend.lowering import modules  # MLIR is loaded by the first program

        jaxpr, params = self._pure, self._params
        _, arguments, results = placement.claims(jaxpr, self._arrays(self._call.args), self._places)
        count = placement.device_count(jaxpr, placement.Requested(arguments, results))
        used = [True] * len(jaxpr.invars) if params["keep_unused"] else compile_module.kept_arguments(jaxpr)
        kept = modules.solvable_arguments(jaxpr, used)

        def mark(arg_attrs, res_attrs, partitioner):
            if any(params["donated_invars"]):
                compile_module.mark_donated(jaxpr, params["donated_invars"], dict(zip(kept, arg_attrs)))
            for attrs, i in zip(arg_attrs, kept) if count > 1 else ():
                compile_module.mark_sharding(attrs, arguments[i], jaxpr.in_avals[i], partitioner)
            for attrs, s, aval in zip(res_attrs, results, jaxpr.out_avals) if count > 1 else ():
                compile_module.mark_sharding(attrs, s, aval, partitioner)

        ordered = tuple(effects.ordered_effects.filter_in(sorted(jaxpr.effects, key=lambda e: str(type(e)))))
        return modules.lower(
            jaxpr,
            "jit_" + self.fun_name,
            requested,
            kept,
            count,
            result_names=result_names,
            mark_shardings=mark,
            ordered=ordered,
        )


class Lowered(Stage):
    """A program as StableHLO, for certain types of arguments.

    Examples:

      >>> lowered = jax.jit(lambda x: 2 * x).lower(jnp.ones(3))
      >>> isinstance(lowered, jax.stages.Lowered)
      True
      >>> "stablehlo.multiply" in lowered.as_text()
      True
    """

    def __init__(self, traced: Traced, lowered: Any) -> None:
        self._stage_of(traced)
        self._lowered = lowered

    @property
    def out_info(self) -> Any:
        return self._traced.out_info

    def compile(self, compiler_options: dict[str, Any] | None = None, *, device_assignment: Any = None) -> Compiled:
        """Compile for the devices.

        Args:
          compiler_options: options of XLA by name.
        """
        if device_assignment is not None:
            raise NotImplementedError("device_assignment is not supported; place the arguments with shardings instead")
        return Compiled(self._traced, self._of_devices().compile(compiler_options))

    def _of_devices(self) -> compile_module.LoweredProgram:
        if not isinstance(self._lowered, compile_module.LoweredProgram):
            raise ValueError(
                f"{self._traced.fun_name} was lowered for several platforms, or for the devices of an AbstractMesh, which"
                " are not there: it can be read only. jax.export makes programs for several platforms that can be called"
            )
        return self._lowered

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text: of the dialect ``"stablehlo"`` (the default) or ``"hlo"``."""
        if dialect in (None, "stablehlo"):
            return self._lowered.program.text(debug_info)
        if dialect == "hlo":
            return self.compiler_ir("hlo").as_hlo_text()
        raise ValueError(f"unknown dialect {dialect!r}: expected 'stablehlo' or 'hlo'")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The MLIR module (``"stablehlo"``) or XLA computation (``"hlo"``)."""
        if dialect in (None, "stablehlo"):
            return self._lowered.program.module
        if dialect == "hlo":
            return mlir.tools.mlir_module_to_xla_computation(
                self._lowered.program.text(), use_tuple_args=False, return_tuple=False
            )
        raise ValueError(f"unknown dialect {dialect!r}: expected 'stablehlo' or 'hlo'")

    def cost_analysis(self) -> dict[Any, Any] | None:
        """XLA's estimate of operations and bytes, before optimization."""
        client = clients.get_backend(self._of_devices().placement.devices[0].client)
        return runtime.cost_analysis(client, self.compiler_ir("hlo"))


class Compiled(Stage):
    """A program compiled for certain types of arguments. A call never traces.

    Examples:

      >>> compiled = jax.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile()
      >>> isinstance(compiled, jax.stages.Compiled)
      True
      >>> compiled(jnp.ones(3))
      Array([2., 2., 2.], dtype=float32)
    """

    def __init__(self, traced: Traced, loaded: compile_module.LoadedProgram) -> None:
        self._stage_of(traced)
        self._loaded = loaded
        owner = weakref.ref(self)  # the garbage collector does not visit C++ objects

        def check_and_run(*args, **kwargs):
            try:
                return owner()._check_and_run(*args, **kwargs)  # type: ignore[union-attr]
            except SystemError as error:
                running.explain_depth(error, args, kwargs)
                raise

        self._dispatched = running.make_runner(traced.fun_name, check_and_run)

    @property
    def out_info(self) -> Any:
        return self._traced.out_info

    def __call__(self, *args: np.generic, **kwargs: Any) -> Array:
        """Run with arguments of the compiled types, without the static arguments."""
        return self._dispatched(*args, **kwargs)

    call = __call__

    def _check_and_run(self, *args, **kwargs):
        """The first call of C++ dispatch: the results, and the data for its next call."""
        alone = turns.are_alone()
        given = (args, kwargs)
        leaves, tree = pytree.tree_flatten(given)
        expected = self._traced._call.in_tree
        if tree != expected:
            raise TypeError(_structure_message(expected, given))
        wanted = self._traced.jaxpr.in_avals
        wrong = []
        for i, (x, aval) in enumerate(zip(leaves, wanted, strict=True)):
            if isinstance(x, Tracer):
                raise TypeError(
                    f"a compiled program takes arrays, got the traced value {x!r}: it cannot be transformed. Transform"
                    " the function before lower().compile()."
                )
            have = avals.abstractify(x)
            if _taken(have) != _taken(aval):
                wrong.append(f"  * {self._argument_name(i)}: expected {aval.str_short()}, got {have.str_short()}")
        if wrong:
            raise TypeError(
                "arguments of a compiled program have other types than it was compiled for:\n"
                + "\n".join(wrong)
                + "\nConvert them, or lower and compile for these types; the option jax_enable_x64 has to be the same."
            )
        arrays = self._traced._arrays(leaves)
        self._check_places(arrays)
        outs = running.run_loaded(self._loaded, self._traced._pure, arrays)
        if objects.kinds:
            outs = arrays_of_values.values_of(self._traced._outs, outs)
        count = self.out_tree.num_leaves
        for i, last in zip(self._traced._written, outs[count:], strict=True):
            leaves[i][...] = last
        out = pytree.tree_unflatten(self.out_tree, outs[:count])
        opened = any(a.mutable or a.represented for a in (*wanted, *self._traced.jaxpr.out_avals))
        return out, None if opened else self._loaded.fastpath(self.out_tree, out, alone)

    def _check_places(self, arrays: list) -> None:
        """Raise for committed arguments in other places: no argument is moved implicitly."""
        for i, wanted in zip(self._loaded.kept_positions, self._loaded.in_shardings, strict=True):
            have = placement.committed_sharding(arrays[i])
            if have is not None and not have.is_equivalent_to(wanted, arrays[i].ndim):
                ins = self._traced._ins
                position = arrays_of_values.spread(ins, range(len(ins)))[i]
                found, expected = placement.texts_of_places(have, wanted)
                raise ValueError(
                    f"argument {self._argument_name(position)} of a compiled program is placed by {found}, and the program"
                    f" was compiled for {expected}: move it first, with device_put"
                )

    def _argument_name(self, i: int) -> str:
        jitted = self._traced._jitted
        names = parameter_names(jitted.fun)
        static = jitted.signature.static_positions(len(names)) if hasattr(jitted, "signature") else ()
        names = [name for k, name in enumerate(names) if k not in static]
        path, _ = pytree.tree_flatten_with_path(self.args_info)[0][i]
        if path[0] == type(path[0])(0) and len(path) > 1 and path[1].idx < len(names):
            return f"'{names[path[1].idx]}{pytree.keystr(path[2:])}'"
        return f"'{pytree.keystr(path)}'"

    def as_text(self) -> str:
        """The optimized HLO."""
        return "\n\n".join(module.to_string() for module in self._loaded.executable.hlo_modules())

    def cost_analysis(self) -> dict[Any, Any] | None:
        """XLA's estimate of operations and bytes."""
        return self._loaded.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Sizes of arguments, results, code and temporary memory."""
        return self._loaded.executable.get_compiled_memory_stats()

    def runtime_executable(self) -> Any:
        """jaxlib's executable."""
        return self._loaded.executable

    @property
    def input_shardings(self) -> Any:
        """The shardings of arguments, as ``(args, kwargs)``; None for those that the program does not use.

        A value of a library's type has a list: those of the arrays that represent it.
        """
        loaded = self._loaded
        found: list[Any] = [None] * len(loaded.kept)
        for i, s in zip(loaded.kept_positions, loaded.in_shardings):
            found[i] = s
        return self._traced._of_arguments(found)

    @property
    def output_shardings(self) -> Any:
        """The shardings of results, like the result's pytree. Values of libraries' types have lists."""
        return self._traced._of_results(self._loaded.out_shardings)

    @property
    def input_formats(self) -> Any:
        """`input_shardings` with the layouts of the arguments."""
        layouts: list[Any] = [None] * len(self._loaded.kept)
        found = self._loaded.executable.get_parameter_layouts()[len(self._loaded.const_args) :]
        for i, layout in zip(self._loaded.kept_positions, found, strict=True):
            layouts[i] = layout
        return self._formats(self.input_shardings, layouts)

    @property
    def output_formats(self) -> Any:
        """`output_shardings` with the layouts of the results."""
        shardings = self.output_shardings
        layouts = self._loaded.executable.get_output_layouts()
        return self._formats(shardings, layouts[: len(pytree.tree_leaves(shardings, is_leaf=lambda s: s is None))])

    @staticmethod
    def _formats(shardings, layouts) -> Any:
        leaves, tree = pytree.tree_flatten(shardings, is_leaf=lambda s: s is None)
        formats = [
            None if s is None else Format(Layout.from_pjrt_layout(layout), s)
            for s, layout in zip(leaves, layouts, strict=True)
        ]
        return pytree.tree_unflatten(tree, formats)


def _taken(aval: Any) -> tuple[Any, ...]:
    """The part of the type of an argument that a compiled program depends on. A token has no shape."""
    if aval.represented:
        return (aval,)
    return aval.mutable, getattr(aval, "shape", None), getattr(aval, "dtype", None)


def _structure_message(expected, given) -> str:
    full = pytree.skeleton(expected)
    lines = []
    for name, want, have in (("args", full[0], given[0]), ("kwargs", full[1], given[1])):
        want_tree, have_tree = pytree.tree_structure(want), pytree.tree_structure(have)
        if want_tree != have_tree:
            if isinstance(want, tuple) and len(want) != len(have):
                lines.append(f"  * {name}: expected {len(want)} positional arguments, got {len(have)}")
            else:
                lines.append(f"  * {name}: expected the structure {want_tree}, got {have_tree}")
    return "a compiled program is called with arguments of another structure:\n" + "\n".join(lines)
