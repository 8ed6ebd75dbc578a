"""Programs as MLIR modules and functions, in the form that libraries use (`jax.interpreters.mlir`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from bedrax.core.effects import Effect
from bedrax.core.ir import Jaxpr
from bedrax.lax.choices import refuse_options
from bedrax.xla_backend import clients, platforms
from bedrax.xla_backend import compile as compile_module
from bedrax.xla_backend.lowering.linking import rename_functions
from bedrax.xla_backend.lowering.program import inline
from bedrax.xla_backend.lowering.types import ir, type_of
from bedrax.xla_backend.mlir.rules import LoweringRuleContext, Mesh, ModuleContext, TokenSet
from bedrax.xla_backend.placement import Placement

__all__ = [
    "AxisContext",
    "LoweringParameters",
    "LoweringResult",
    "SPMDAxisContext",
    "ShapePolyLoweringState",
    "ShardingContext",
    "jaxpr_subcomp",
    "lower_jaxpr_to_fun",
    "lower_jaxpr_to_module",
    "merge_mlir_modules",
    "unflatten_ir_values_like_types",
]


@dataclass(frozen=True)
class ShardingContext:
    """The axis context of a program for some devices that the compiler partitions.

    Examples:

      >>> from jax.interpreters import mlir

      >>> cpu = jax.devices("cpu")[0]
      >>> context = mlir.ShardingContext(1, (cpu,))
      >>> context.num_devices, context.device_assignment[0].platform
      (1, 'cpu')
      >>> program = jax.make_jaxpr(jnp.cos)(1.)
      >>> result = mlir.lower_jaxpr_to_module(
      ...     "cosine", program.jaxpr, num_const_args=0, in_avals=program.in_avals, ordered_effects=[], platforms=["cpu"],
      ...     backend=None, axis_context=context, donated_args=[False], lowering_parameters=mlir.LoweringParameters())
      >>> "stablehlo.cosine" in str(result.module)
      True
    """

    num_devices: int
    device_assignment: tuple[Any, ...] | None = None
    abstract_mesh: Any = None


@dataclass(frozen=True)
class SPMDAxisContext:
    """The axis context of a program that is written per device, for some axes of a mesh.

    Examples:

      >>> from jax.interpreters import mlir

      >>> mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("rows",))
      >>> context = mlir.SPMDAxisContext(mesh, frozenset({"rows"}))
      >>> context.mesh.axis_names, sorted(context.manual_axes)
      (('rows',), ['rows'])
    """

    mesh: Mesh
    manual_axes: frozenset[Any] = frozenset()


AxisContext = ShardingContext | SPMDAxisContext


@dataclass(frozen=True)
class LoweringParameters:
    """Parameters of a lowering. Constants are always written into the module.

    Examples:

      >>> from jax.interpreters import mlir

      >>> mlir.LoweringParameters()
      LoweringParameters(override_lowering_rules=None, ...)
      >>> program = jax.make_jaxpr(jnp.sin)(1.)
      >>> try:
      ...     mlir.lower_jaxpr_to_module(
      ...         "sine", program.jaxpr, num_const_args=0, in_avals=program.in_avals, ordered_effects=[], platforms=["cpu"],
      ...         backend=None, axis_context=mlir.ShardingContext(1), donated_args=[False],
      ...         lowering_parameters=mlir.LoweringParameters(for_export=True))
      ... except NotImplementedError as error:
      ...     print(error)
      ...
      lower_jaxpr_to_module: the options for_export=True are not supported here; leave them out
    """

    override_lowering_rules: tuple[Any, ...] | None = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False


class ShapePolyLoweringState(NamedTuple):
    """The symbolic dimensions and the platforms of a module.

    Examples:

      >>> from jax.interpreters import mlir

      >>> state = mlir.ShapePolyLoweringState(("n",), ("cpu", "tpu"))
      >>> state.uses_dim_vars, state.has_platform_index_argument
      (True, True)
      >>> mlir.ShapePolyLoweringState((), ("cpu",)).has_platform_index_argument
      False
    """

    dim_vars: tuple[str, ...] = ()
    lowering_platforms: tuple[str, ...] | None = None

    @property
    def has_platform_index_argument(self) -> Any:
        return len(self.lowering_platforms or ()) > 1

    @property
    def uses_dim_vars(self) -> Any:
        return bool(self.dim_vars)


class LoweringResult(NamedTuple):
    """A module, and the objects that must live as long as its executable.

    Examples:

      >>> from jax.interpreters import mlir

      >>> program = jax.make_jaxpr(lambda x: jax.pure_callback(np.sin, jax.typeof(x), x))(1.)
      >>> result = mlir.lower_jaxpr_to_module(
      ...     "with_callback", program.jaxpr, num_const_args=0, in_avals=program.in_avals, ordered_effects=[],
      ...     platforms=["cpu"], backend=None, axis_context=mlir.ShardingContext(1), donated_args=[False],
      ...     lowering_parameters=mlir.LoweringParameters())
      >>> type(result) is mlir.LoweringResult, len(result.host_callbacks), "callback" in str(result.module)
      (True, 1, True)
    """

    module: Any
    keepalive: Any
    host_callbacks: list[Any]
    shape_poly_state: ShapePolyLoweringState


def lower_jaxpr_to_module(
    module_name: str,
    jaxpr: Jaxpr,
    *,
    num_const_args: int,
    in_avals: Sequence[Any],
    ordered_effects: list[Effect],
    platforms: Sequence[str],
    backend: Any,
    axis_context: Any,
    donated_args: Sequence[bool],
    lowering_parameters: LoweringParameters,
    out_avals: Sequence[Any] | None = None,
    **options: Any,
) -> LoweringResult:
    """The module of a program for one device.

    Args:
      module_name: the name of the module.
      jaxpr: the program, with the values of its constants.
      num_const_args: only 0: constants are written into the module.
      platforms: the name of one platform.
      axis_context: a `ShardingContext` of one device.
      donated_args: a boolean per argument: whether a result may use its memory.
      lowering_parameters: only the defaults.
      in_avals, out_avals: the types of the program's arguments and results; None for the results: as they are.
      options: of programs over many devices; only None.
      ordered_effects: the ordered effects of the program.
      backend: a platform or its client; None: the default one.

    Raises:
      NotImplementedError: another option was given.

    Examples:

      >>> from jax.interpreters import mlir

      >>> program = jax.make_jaxpr(lambda x: jnp.sin(x))(1.)
      >>> result = mlir.lower_jaxpr_to_module(
      ...     "sine", program.jaxpr, num_const_args=0, in_avals=program.in_avals, ordered_effects=[], platforms=["cpu"],
      ...     backend=None, axis_context=mlir.ShardingContext(1), donated_args=[False],
      ...     lowering_parameters=mlir.LoweringParameters())
      >>> print(result.module)
      module @sine ... {
        func.func public @main(%arg0: tensor<f32>...) -> (tensor<f32>...) {
          %0 = stablehlo.sine %arg0 : tensor<f32>
          return %0 : tensor<f32>
        }
      }
    """
    changed = {f.name: getattr(lowering_parameters, f.name) for f in fields(LoweringParameters)}
    refuse_options("lower_jaxpr_to_module", num_const_args=num_const_args, **changed, **options)
    if len(platforms) != 1 or not isinstance(axis_context, ShardingContext) or axis_context.num_devices != 1:
        raise NotImplementedError(f"a module for one platform and one device, got {platforms} and {axis_context}")
    _check_types("in_avals", "arguments", in_avals, jaxpr.in_avals)
    _check_types("out_avals", "results", out_avals, jaxpr.out_avals)
    devices = (axis_context.device_assignment or clients.get_backend(backend).devices())[:1]
    platform = _one_platform(platforms[0])
    lowered = compile_module.lower(
        jaxpr,
        module_name,
        Placement(tuple(devices), committed=False),
        donated_args,
        keep_unused=True,
        platform=platform,
        embed_constants=True,
    )
    program = lowered.program
    return LoweringResult(
        lowered.module, program.keepalives, program.host_callbacks, ShapePolyLoweringState((), tuple(platforms))
    )


def _check_types(what: str, of: str, given: Sequence[Any] | None, types: Sequence[Any]) -> None:
    if given is not None and [str(a) for a in given] != [str(a) for a in types]:
        raise TypeError(f"{what} are the types of the program's {of}, {types}, got {given}")


def _one_platform(name: str) -> str:
    return platforms.members(name)[0]


def lower_jaxpr_to_fun(
    ctx: ModuleContext,
    name: str,
    jaxpr: Jaxpr,
    effects: Sequence[Effect],
    *,
    num_const_args: int,
    in_avals: Sequence[Any],
    main_function: bool = False,
    out_avals: Sequence[Any] | None = None,
    **options: Any,
) -> Any:
    """Add a program to a module, as a function with the same arguments and results.

    Args:
      ctx: the `ModuleContext`, as ``ctx.module_context`` in a rule.
      name: the name of the function. A suffix makes it unique.
      jaxpr: the program, with the values of its constants.
      effects: only empty: ordered effects are not supported.
      num_const_args: only 0: constants are in the function.
      in_avals: the types of the program's arguments.
      main_function: whether the function is public.
      out_avals: the types of the program's results, or None.
      options: further options of upstream. Only their defaults are supported.

    Returns:
      The function, a ``func.FuncOp``.

    Raises:
      NotImplementedError: ordered effects, constants as arguments, or options of programs over many devices.
      TypeError: `in_avals` or `out_avals` are not the types of the program.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import mlir

      >>> from jax.extend.mlir.dialects import func
      >>> inner = jax.make_jaxpr(lambda x: jnp.exp(x))(0.)
      >>> apart_p = Primitive("function_apart")
      >>> _ = apart_p.def_abstract_eval(lambda x: x)
      >>> def rule(ctx, x):
      ...     made = mlir.lower_jaxpr_to_fun(
      ...         ctx.module_context, "exponential", inner, [], num_const_args=0, in_avals=inner.in_avals)
      ...     return func.CallOp(made, [x]).results
      ...
      >>> _ = mlir.register_lowering(apart_p, rule)
      >>> jax.jit(apart_p.bind)(0.)
      Array(1., dtype=float32, ...)
    """
    _check_types("in_avals", "arguments", in_avals, jaxpr.in_avals)
    _check_types("out_avals", "results", out_avals, jaxpr.out_avals)
    options.pop("use_sharding_annotations", None)  # nothing is annotated
    refuse_options("lower_jaxpr_to_fun", num_const_args=num_const_args, effects=tuple(effects) or None, **options)
    program = ctx.program
    symbol = program.unique_symbol(name)
    program.function(
        symbol,
        [type_of(a) for a in jaxpr.in_avals],
        [type_of(a) for a in jaxpr.out_avals],
        lambda block, arguments: inline(block, jaxpr, arguments),
        public=main_function,
    )
    return ir.SymbolTable(program.module.operation)[symbol]


def jaxpr_subcomp(
    ctx: LoweringRuleContext,
    jaxpr: Jaxpr,
    name_stack: Any,
    tokens: TokenSet,
    consts_for_constvars: Sequence[Any],
    *args: Any,
    dim_var_values: Sequence[Any] = (),
    const_lowering: Any = None,
    outer_traceback: Any = None,
) -> tuple[list[Any], TokenSet]:
    """Append the equations of a program at the position of the current rule.

    Args:
      ctx: the context of that rule (the module alone has no position).
      jaxpr: the program.
      tokens: the tokens of ordered effects.
      consts_for_constvars: a value per constant of the program.
      args: a value per argument.
      name_stack, dim_var_values, const_lowering, outer_traceback: not used; the context has them.

    Returns:
      (a value per result, the tokens).

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import mlir

      >>> inner = jax.make_jaxpr(lambda x: jnp.cos(x) * 3)(0.).jaxpr
      >>> inline_p = Primitive("inlined_program")
      >>> _ = inline_p.def_abstract_eval(lambda x: x)
      >>> def rule(ctx, x):
      ...     out, tokens = mlir.jaxpr_subcomp(ctx, inner, None, mlir.TokenSet(), [], x, dim_var_values=())
      ...     return out
      ...
      >>> _ = mlir.register_lowering(inline_p, rule)
      >>> jax.jit(inline_p.bind)(0.)
      Array(3., dtype=float32, ...)
    """
    if not isinstance(ctx, LoweringRuleContext):
        raise TypeError(f"jaxpr_subcomp takes the context of a rule, which has the position in the module, got {ctx!r}")
    return inline(ctx.inner.block, jaxpr, args, list(consts_for_constvars)), tokens


def unflatten_ir_values_like_types(xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
    """Group values by the structure of types: the inverse of `flatten_ir_values`.

    Args:
      xs: the values, one after another.
      ys: the types. A tuple of types takes a tuple of values.

    Raises:
      ValueError: the numbers of values and types differ.

    Examples:

      >>> from jax.interpreters import mlir

      >>> number = mlir.dtype_to_ir_type(jnp.dtype("float32"))
      >>> mlir.unflatten_ir_values_like_types(["x", "y", "z"], [number, (number, number)])
      ['x', ('y', 'z')]
    """
    count = sum(len(y) if isinstance(y, tuple | list) else 1 for y in ys)
    if len(xs) != count:
        raise ValueError(f"there is one value per type: {count} are needed, got {len(xs)}")
    rest = iter(xs)
    return [tuple([next(rest) for _ in y]) if isinstance(y, tuple | list) else next(rest) for y in ys]


def merge_mlir_modules(dst_module: Any, sym_name: str, src_module: Any, dst_symtab: Any = None) -> str:
    """Move the functions of a module into another one.

    Args:
      dst_module: the module that gets the functions.
      sym_name: the new name of the function ``main`` of `src_module`, with a suffix if that name is taken.
      src_module: the module whose functions are moved.
      dst_symtab: the symbol table of `dst_module`, if available.

    Returns:
      The new name of ``main``. All moved functions are private.

    Examples:

      >>> from jax.interpreters import mlir

      >>> from jax.extend.mlir import ir
      >>> text = '''module {
      ...   func.func @main(%x: tensor<f32>) -> tensor<f32> {
      ...     %y = stablehlo.OPERATION %x : tensor<f32>
      ...     return %y : tensor<f32>
      ...   }
      ... }'''
      >>> one, other = (ir.Module.parse(text.replace("OPERATION", name), mlir.make_ir_context()) for name in ("sine", "cosine"))
      >>> mlir.merge_mlir_modules(one, "moved", other)
      'moved'
      >>> "func.func private @moved" in str(one), "stablehlo.cosine" in str(one)
      (True, True)
    """
    own = ir.Module.parse(str(src_module), context=dst_module.context)
    symbols = dst_symtab or ir.SymbolTable(dst_module.operation)
    taken = {ir.StringAttr(op.attributes["sym_name"]).value for op in dst_module.body.operations}
    renamed: dict[str, str] = {}
    for op in own.body.operations:
        name = ir.StringAttr(op.attributes["sym_name"]).value
        wanted = fresh = sym_name if name == "main" else name
        count = 0
        while fresh in taken:
            count += 1
            fresh = f"{wanted}_{count}"
        taken.add(fresh)
        renamed[name] = fresh
    rename_functions(own, renamed)
    for op in list(own.body.operations):
        dst_module.body.append(op)
        symbols.insert(op)
    return renamed["main"]
