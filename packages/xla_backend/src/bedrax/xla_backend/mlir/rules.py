"""Lowering rules in the form of libraries: with MLIR's own Python builders.

A library's rule is ``rule(ctx, *values, **params)``. It returns a value, or a sequence of values, which it makes with
the builders of `jax.extend.mlir.dialects` and the functions of this module. While it runs, the location and the
insertion point of the equation are current. `register_lowering` adds it to the StableHLO column.

Needed by Equinox (`register_lowering`, `lower_fun`), and by libraries that call their own kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bedrax import pytree
from bedrax.core import effects
from bedrax.core.avals import AbstractValue, ShapedArray, aval_of
from bedrax.core.ir import Jaxpr
from bedrax.lax.choices import refuse_options
from bedrax.parallel import Mesh
from bedrax.xla_backend import clients, dispatch, platforms, tables
from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.lowering.build import Block, array_constant
from bedrax.xla_backend.lowering.program import LoweringContext, Program
from bedrax.xla_backend.lowering.types import ir

if TYPE_CHECKING:
    from bedrax.core.tracing import Primitive


Value = ir.Value
Token = ir.Value
LoweringRule = Callable[..., Sequence[Any]]
MeshAxisName = Any
lowerable_effects: Final = effects.lowerable_effects

# Kinds of channels in StableHLO's send and recv.
DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3


class TokenSet:
    """Tokens of ordered effects, by effect.

    Examples:

      >>> from jax.interpreters import mlir

      >>> tokens = mlir.TokenSet({"printing": "token 1", "writing": "token 2"})
      >>> len(tokens), sorted(tokens.effects()), tokens.get("writing")
      (2, ['printing', 'writing'], 'token 2')
    """

    def __init__(self, tokens: Any = ()) -> None:
        self._tokens = dict(tokens)

    def get(self, effect: Any) -> Any:
        """The token of an effect."""
        return self._tokens[effect]

    def effects(self) -> Any:
        """The effects with a token."""
        return set(self._tokens)

    def items(self) -> Any:
        """Pairs of effect and token."""
        return tuple(self._tokens.items())

    def tokens(self) -> Any:
        """The tokens."""
        return tuple(self._tokens.values())

    def __len__(self) -> int:
        return len(self._tokens)


class ModuleContext:
    """The module that a rule adds to.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import mlir

      >>> same_p = Primitive("same_and_tell")
      >>> _ = same_p.def_abstract_eval(lambda x: x)
      >>> def rule(ctx, x):
      ...     module = ctx.module_context
      ...     print(type(module) is mlir.ModuleContext, module.platforms, "main" in module.symbol_table)
      ...     return [x]
      ...
      >>> _ = mlir.register_lowering(same_p, rule)
      >>> _ = jax.jit(same_p.bind).trace(1.).lower(lowering_platforms=("cpu",))
      True ('cpu',) True
    """

    __slots__ = ("program",)

    def __init__(self, program: Program) -> None:
        self.program: Program = program

    @property
    def context(self) -> Any:
        return types.context

    @property
    def module(self) -> Any:
        return self.program.module

    @property
    def symbol_table(self) -> Any:
        return ir.SymbolTable(self.program.module.operation)

    @property
    def ip(self) -> Any:
        return ir.InsertionPoint(self.program.body)

    @property
    def host_callbacks(self) -> Any:
        return self.program.host_callbacks

    @property
    def keepalives(self) -> Any:
        return self.program.keepalives

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms to lower for."""
        self.program.platform_asked = True
        return self.program.platforms or (self.program.platform,)

    def add_host_callback(self, function: Any) -> int:
        """Keep a Python function with the executable. Returns its index."""
        self.program.host_callbacks.append(function)
        return len(self.program.host_callbacks) - 1

    def add_keepalive(self, x: Any) -> None:
        """Keep `x` alive as long as the executable."""
        if x is not None:
            self.program.keepalives.append(x)


class LoweringRuleContext:
    """The context of one equation for a library's rule.

    Attributes:
      module_context: the module.
      primitive, avals_in, avals_out: the operation, and the types of its operands and results.
      tokens_in, tokens_out: tokens of the equation's ordered effects.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.extend.mlir.dialects import stablehlo
      >>> from jax.interpreters import mlir
      >>> def rule(ctx, x):
      ...     print(type(ctx).__name__, ctx.primitive, ctx.avals_in, ctx.avals_out)
      ...     return [stablehlo.negate(x)]
      ...
      >>> below_p = Primitive("below_zero")
      >>> _ = below_p.def_abstract_eval(lambda x: x)
      >>> _ = mlir.register_lowering(below_p, rule)
      >>> jax.jit(below_p.bind)(jnp.array([1., 2.]))
      LoweringRuleContext below_zero [ShapedArray(float32[2])] [ShapedArray(float32[2])]
      Array([-1., -2.], dtype=float32)

      >>> twice_p = Primitive("twice_and_tell")
      >>> _ = twice_p.def_abstract_eval(lambda x: x)
      >>> def rule(ctx, x):
      ...     print(type(ctx) is mlir.LoweringRuleContext, ctx.primitive, ctx.avals_in, ctx.avals_out)
      ...     return [stablehlo.add(x, x)]
      ...
      >>> _ = mlir.register_lowering(twice_p, rule)
      >>> jax.jit(twice_p.bind)(jnp.array([1., 2.]))
      True twice_and_tell [ShapedArray(float32[2])] [ShapedArray(float32[2])]
      Array([2., 4.], dtype=float32)
    """

    tokens_out: TokenSet

    def __init__(self, inner: LoweringContext) -> None:
        self.inner: LoweringContext = inner
        self.module_context: ModuleContext = ModuleContext(inner.program)
        self.primitive: Any = inner.prim
        self.avals_in: list[Any] = list(inner.avals_in)
        self.avals_out: list[Any] = list(inner.avals_out)
        self.tokens_out: TokenSet | None = None

    @property
    def platforms(self) -> Any:
        return self.module_context.platforms

    @property
    def dim_var_values(self) -> Any:
        return tuple(self.inner.program.dim_values.values())

    @property
    def tokens_in(self) -> TokenSet:
        ordered = [e for e in self.inner.effects if e in effects.ordered_effects]
        return TokenSet({e: self.inner.token(e) for e in ordered})

    def set_tokens_out(self, tokens: TokenSet) -> None:
        """Set the new tokens."""
        self.tokens_out = tokens
        for effect, token in tokens.items():
            self.inner.set_token(effect, token)

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """A copy for other types, or another primitive, at the same position.

        Raises:
          TypeError: another attribute was to be changed.
        """
        names = {"primitive": "prim", "avals_in": "avals_in", "avals_out": "avals_out"}
        unknown = sorted(set(changes) - set(names))
        if unknown:
            raise TypeError(f"LoweringRuleContext.replace changes {sorted(names)}, got {unknown}")
        return LoweringRuleContext(self.inner.replace(**{names[k]: v for k, v in changes.items()}))

    def is_forward_compat(self) -> bool:
        """Whether older consumers must be able to read the module. Serialization handles this."""
        return False


def _inner(ctx: Any) -> LoweringContext:
    return ctx.inner if isinstance(ctx, LoweringRuleContext) else ctx


def adapt(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A library's rule as a rule of the StableHLO column."""

    def adapted(ctx, *operands, **params):
        with types.context, ctx.location, ctx.block.ip:
            out = rule(LoweringRuleContext(ctx), *operands, **params)
        return flatten_ir_values([out] if isinstance(out, Value) else out)

    return adapted


def register_lowering(
    prim: Primitive, rule: Callable[..., Any], platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Callable[..., Any]:
    """Set the StableHLO rule of a primitive.

    Args:
      prim: the primitive.
      rule: ``(ctx, *values, **params) -> values``; `ctx` is a `LoweringRuleContext`. A result of `lower_fun` is such a
        rule.
      platform: ``"cpu"``, ``"cuda"``, ``"rocm"``, ``"tpu"``; ``"gpu"`` for both GPUs. Default: all platforms without
        their own rule.
      inline, cacheable: accepted for compatibility; rules are always inlined and run once per equation.

    Returns:
      `rule`.

    Raises:
      NotImplementedError: the platform is none of these, and no plug-in has registered it.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import mlir

      >>> from jax.extend.mlir.dialects import stablehlo
      >>> square_p = Primitive("square_in_stablehlo")
      >>> _ = square_p.def_abstract_eval(lambda x: x)
      >>> _ = mlir.register_lowering(square_p, lambda ctx, x: [stablehlo.multiply(x, x)])
      >>> jax.jit(square_p.bind)(jnp.array([1., 2., 3.]))
      Array([1., 4., 9.], dtype=float32)
    """
    known = {name for p in platforms.PLATFORMS.values() for name in (p.name, p.family)} | clients.registered()
    if platform is not None and platform not in known:
        raise NotImplementedError(
            f"register_lowering of {prim.name}: the platform {platform!r} is unknown; known are {', '.join(sorted(known))}"
        )
    dispatch.forget(prim)  # code that was compiled with another rule
    if platform is None:
        tables.lowering_rules.replace(prim, adapt(rule))
    else:
        tables.lowering_rules.load(prim.family)
        for name in platforms.members(platform):
            tables.on_platform(name).replace(prim, adapt(rule))
    return rule


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """A rule from a function of arrays.

    Args:
      fun: ``(*arrays, **params)``, written with public operations.
      multiple_results: whether it returns a sequence of arrays.

    Returns:
      ``(ctx, *values, **params) -> list of values``.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import mlir

      >>> soft_p = Primitive("softened")
      >>> _ = soft_p.def_abstract_eval(lambda x, by: x)
      >>> rule = mlir.lower_fun(lambda x, by: x / (by + abs(x)), multiple_results=False)
      >>> _ = mlir.register_lowering(soft_p, rule)
      >>> jax.jit(lambda x: soft_p.bind(x, by=1.))(jnp.array([-1., 3.]))
      Array([-0.5 ,  0.75], dtype=float32)
    """

    def rule(ctx, *operands, **params):
        inner = _inner(ctx)
        wrapped = fun if multiple_results else _AsList(fun)
        out = inner.lower_fun(wrapped, *operands, avals=inner.avals_in, **params)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    return rule


class _AsList(NamedTuple):
    """A function that returns one array, as one that returns a list. It is equal to others of the same function."""

    fun: Callable[..., Any]

    def __call__(self, *args: Any, **params: Any) -> list[Any]:
        return [self.fun(*args, **params)]


# ---- types, constants, attributes


def dtype_to_ir_type(dtype: Any) -> Any:
    """The MLIR type of one element.

    Examples:

      >>> from jax.interpreters import mlir

      >>> mlir.dtype_to_ir_type(jnp.dtype("float32")), mlir.dtype_to_ir_type(jnp.dtype("bool"))
      (F32Type(f32), IntegerType(i1))
    """
    return types.element_type(np.dtype(dtype))


def aval_to_ir_type(ctx: Any, aval: AbstractValue | None = None) -> Any:
    """Return the MLIR type of values of a type. The context may be left out: ``aval_to_ir_type(aval)``.

    Args:
      ctx: the context of the lowering; no effect.
      aval: the type, such as a `ShapedArray`.

    Examples:

      >>> from jax.interpreters import mlir

      >>> mlir.aval_to_ir_type(jax.core.ShapedArray((2, 3), jnp.dtype("bfloat16")))
      RankedTensorType(tensor<2x3xbf16>)
    """
    return types.type_of(ctx if aval is None else aval)


def aval_to_ir_types(ctx: Any, aval: AbstractValue | None = None) -> tuple[Any, ...]:
    """Return the MLIR types that represent a type, always one. The context may be left out.

    Args:
      ctx, aval: as in `aval_to_ir_type`.

    Examples:

      >>> from jax.interpreters import mlir

      >>> mlir.aval_to_ir_types(jax.core.ShapedArray((2,), jnp.dtype("uint8")))
      (RankedTensorType(tensor<2xui8>),)
    """
    return (aval_to_ir_type(ctx, aval),)


def token_type() -> Any:
    """The MLIR type of tokens.

    Examples:

      >>> from jax.interpreters import mlir

      >>> print(mlir.token_type())
      !stablehlo.token
    """
    return types.token_type()


def i32_attr(i: int) -> Any:
    """A 32-bit integer attribute.

    Examples:

      >>> from jax.interpreters import mlir

      >>> print(mlir.i32_attr(7))
      7 : i32
    """
    return types.i32(i)


def i64_attr(i: int) -> Any:
    """A 64-bit integer attribute.

    Examples:

      >>> from jax.interpreters import mlir

      >>> print(mlir.i64_attr(7))
      7 : i64
    """
    return types.i64(i)


def dense_int_array(xs: Sequence[int]) -> Any:
    """An attribute that is an array of 64-bit integers.

    Examples:

      >>> from jax.interpreters import mlir

      >>> print(mlir.dense_int_array([1, 2, 3]))
      array<i64: 1, 2, 3>
    """
    return ir.DenseI64ArrayAttr.get([int(x) for x in xs], types.context)


def dense_int_elements(xs: Sequence[int]) -> Any:
    """A dense elements attribute of 64-bit integers.

    Examples:

      >>> from jax.interpreters import mlir

      >>> print(mlir.dense_int_elements([1, 2, 3]))
      dense<[1, 2, 3]> : tensor<3xi64>
    """
    with types.context:
        return ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))


def ir_attribute(val: Any) -> Any:
    """A Python or NumPy scalar, a string, a dtype, or a sequence or dictionary of those, as an attribute.

    Examples:

      >>> from jax.interpreters import mlir

      >>> print(mlir.ir_attribute({"axes": [np.int32(0), np.int32(1)], "kind": "fast", "of": jnp.dtype("float32")}))
      {axes = [0 : i32, 1 : i32], kind = "fast", of = f32}
    """
    if isinstance(val, (list, tuple)):
        return ir.ArrayAttr.get([ir_attribute(x) for x in val], types.context)
    if isinstance(val, dict):
        return ir.DictAttr.get({k: ir_attribute(v) for k, v in val.items()}, types.context)
    if isinstance(val, (np.dtype, type)):
        return ir.TypeAttr.get(types.element_type(np.dtype(val)), types.context)
    if type(val) in (int, float):
        val = aval_of(val).dtype.type(val)
    return types.ffi_attribute(val) if isinstance(val, np.generic) else types.attribute(val)


_constant_handlers: dict[type, Callable[..., Any]] = {}
ConstantHandler = Callable[..., Any]


def register_constant_handler(type_: type, handler_fun: Callable[..., Any]) -> None:
    """Register the conversion of values of a Python type to constants.

    Args:
      type_: the type of the values. Subclasses need a handler of their own.
      handler_fun: ``(val, aval) -> MLIR value``, for a value and its type (or None).

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import mlir

      >>> from jax.extend.mlir.dialects import stablehlo
      >>> class Percent:
      ...     def __init__(self, number):
      ...         self.number = number
      ...
      >>> mlir.register_constant_handler(Percent, lambda val, aval: mlir.ir_constant(np.float32(val.number / 100)))
      >>> part_p = Primitive("part_of")
      >>> _ = part_p.def_abstract_eval(lambda x: x)
      >>> _ = mlir.register_lowering(part_p, lambda ctx, x: [stablehlo.multiply(x, mlir.ir_constant(Percent(25)))])
      >>> jax.jit(part_p.bind)(8.)
      Array(2., dtype=float32, ...)
    """
    _constant_handlers[type_] = handler_fun


def ir_constant(val: Any, *, const_lowering: Any = None, aval: AbstractValue | None = None) -> Any:
    """A constant at the current insertion point.

    Args:
      val: an array or a scalar; its dtype is canonicalized.
      aval: its type, if it differs from that of `val`.
      const_lowering: no effect.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import mlir

      >>> from jax.extend.mlir.dialects import stablehlo
      >>> plus_p = Primitive("plus_ten")
      >>> _ = plus_p.def_abstract_eval(lambda x: x)
      >>> _ = mlir.register_lowering(plus_p, lambda ctx, x: [stablehlo.add(x, mlir.ir_constant(np.float32([10, 20])))])
      >>> jax.jit(plus_p.bind)(jnp.array([1., 2.]))
      Array([11., 22.], dtype=float32)
    """
    handler = _constant_handlers.get(type(val))
    if handler is not None:
        return handler(val, aval)
    aval = aval_of(val) if aval is None else aval
    return array_constant(Block(None, ir.InsertionPoint.current), val, aval)


def ir_constants(val: Any, *, const_lowering: Any = None, aval: AbstractValue | None = None) -> tuple[Any, ...]:
    """Return the MLIR values that represent a constant, always one.

    Args:
      val, const_lowering, aval: as in `ir_constant`.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import mlir

      >>> from jax.extend.mlir.dialects import stablehlo
      >>> half_p = Primitive("half_of")
      >>> _ = half_p.def_abstract_eval(lambda x: x)
      >>> _ = mlir.register_lowering(half_p, lambda ctx, x: [stablehlo.multiply(x, *mlir.ir_constants(np.float32(0.5)))])
      >>> jax.jit(half_p.bind)(5.)
      Array(2.5, dtype=float32, ...)
    """
    return (ir_constant(val, aval=aval),)


def shape_tensor(ctx: Any, sizes: Sequence[Any]) -> Any:
    """Return sizes as one MLIR value, a vector of i32.

    Args:
      ctx: the context of the rule.
      sizes: integers or symbolic dimensions.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import mlir

      >>> sizes_p = Primitive("sizes_of")
      >>> _ = sizes_p.def_abstract_eval(lambda x: jax.core.ShapedArray((x.ndim,), jnp.dtype("int32")))
      >>> _ = mlir.register_lowering(sizes_p, lambda ctx, x: [mlir.shape_tensor(ctx, ctx.avals_in[0].shape)])
      >>> jax.jit(sizes_p.bind)(jnp.ones((2, 5)))
      Array([2, 5], dtype=int32)
    """
    return _inner(ctx).shape_tensor(sizes)


# Containers of values for one object, such as the list of an operation's results.
ir_tree_registry: Final = pytree.PyTreeRegistry(enable_none=False)
ir_tree_registry.register_node(ir.OpResultList, lambda xs: (list(xs), None), lambda _, xs: list(xs))
ir_type_handlers: Final = types.type_handlers


def flatten_ir_values(xs: Any) -> list[Any]:
    """Values, from nested containers of them (those of `ir_tree_registry`).

    Examples:

      >>> from jax.interpreters import mlir

      >>> kind = mlir.i32_attr
      >>> [str(x) for x in mlir.flatten_ir_values([kind(1), (kind(2), [kind(3)])])]
      ['1 : i32', '2 : i32', '3 : i32']

      >>> single, triple = (mlir.dtype_to_ir_type(jnp.dtype(name)) for name in ("float32", "int8"))
      >>> mlir.flatten_ir_types([single, (triple, single)])
      [F32Type(f32), IntegerType(i8), F32Type(f32)]
    """
    return ir_tree_registry.flatten(xs)[0]


flatten_ir_types = flatten_ir_values


def lower_with_sharding_in_types(ctx: Any, op: Any, aval: AbstractValue) -> Any:
    """A value, split according to its type; unchanged if the type has no sharding."""
    inner, place = _inner(ctx), getattr(aval, "split", None)
    return op if place is None else inner.program.partitioner.constrained(inner, op, place)


# ---- programs and modules


def core_call_lowering(
    ctx: Any,
    *args: Any,
    name: str,
    backend: Any = None,
    inline_jax_late: bool = False,
    call_jaxpr: Jaxpr,
    **params: Any,
) -> list[Any]:
    """Call a program as a function of the module.

    Args:
      ctx: the context of the rule.
      args: the values of the operands.
      name: the name of the function.
      backend: no effect.
      inline_jax_late: whether the operations of the program replace the call.
      call_jaxpr: the program.
      params: other parameters of the equation; only None and False.

    Raises:
      NotImplementedError: another parameter has another value.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import mlir

      >>> inner = jax.make_jaxpr(lambda x: jnp.sin(x) + 1)(0.)
      >>> call_p = Primitive("call_of_a_program")
      >>> _ = call_p.def_abstract_eval(lambda x: x)
      >>> def rule(ctx, x):
      ...     return mlir.core_call_lowering(ctx, x, name="sine_and_one", call_jaxpr=inner)
      ...
      >>> _ = mlir.register_lowering(call_p, rule)
      >>> jax.jit(call_p.bind)(0.)
      Array(1., dtype=float32, ...)
      >>> "call @sine_and_one" in jax.jit(call_p.bind).lower(0.).as_text()
      True
    """
    refuse_options("core_call_lowering", **params)
    jaxpr = call_jaxpr if type(call_jaxpr) is Jaxpr else call_jaxpr.jaxpr
    if inline_jax_late:
        return _inner(ctx).inline_jaxpr(jaxpr, *args)
    return _inner(ctx).call_jaxpr(name, jaxpr, *args)


def emit_python_callback(
    ctx: Any,
    callback: Callable[..., Any],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[ShapedArray],
    result_avals: Sequence[ShapedArray],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[Any, ...]:
    """Call a Python function when the program runs.

    Args:
      ctx: the context of the rule.
      callback: ``(*arrays) -> sequence of arrays``.
      token: only None: order calls by an ordered effect of the primitive.
      operands: the values of the operands.
      operand_avals, result_avals: the types of operands and results.
      has_side_effect: whether the call stays although its results are not used.
      returns_token, partitioned: no effect.
      sharding: only None.

    Returns:
      (values of the results, None, None).

    Raises:
      NotImplementedError: a token or a sharding was given.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import mlir

      >>> ask_p = Primitive("ask_python")
      >>> _ = ask_p.def_abstract_eval(lambda x: x)
      >>> def rule(ctx, x):
      ...     out, _, _ = mlir.emit_python_callback(
      ...         ctx, lambda value: (np.sort(value),), None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False)
      ...     return out
      ...
      >>> _ = mlir.register_lowering(ask_p, rule)
      >>> jax.jit(ask_p.bind)(jnp.array([3., 1., 2.]))
      Array([1., 2., 3.], dtype=float32)
    """
    if token is not None or sharding is not None:
        raise NotImplementedError(
            "emit_python_callback takes neither a token nor a sharding; use jax.experimental.io_callback(ordered=True)"
        )
    out = _inner(ctx).host_callback(callback, operands, list(result_avals), has_side_effect=has_side_effect)
    return out, None, None


def make_ir_context() -> Any:
    """The context of all modules.

    Examples:

      >>> from jax.interpreters import mlir

      >>> from jax.extend.mlir import ir
      >>> with mlir.make_ir_context():
      ...     module = ir.Module.parse("func.func @same(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
      ...
      >>> module.operation.verify()
      True
    """
    return types.context


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """Return the text of an MLIR module.

    Args:
      module: an `ir.Module`.
      enable_debug_info: whether the text has source locations; None: False.

    Examples:

      >>> from jax.interpreters import mlir

      >>> from jax.extend.mlir import ir
      >>> module = ir.Module.parse("module @empty {}", mlir.make_ir_context())
      >>> print(mlir.module_to_string(module))
      module @empty {
      }
    """
    return module.operation.get_asm(enable_debug_info=bool(enable_debug_info))


def module_to_bytecode(module: Any) -> bytes:
    """A module as MLIR bytecode.

    Examples:

      >>> from jax.interpreters import mlir

      >>> from jax.extend.mlir import ir
      >>> module = ir.Module.parse("module @empty {}", mlir.make_ir_context())
      >>> code = mlir.module_to_bytecode(module)
      >>> print(ir.Module.parse(code, mlir.make_ir_context()))
      module @empty {
      }
    """
    import io

    out = io.BytesIO()
    module.operation.write_bytecode(file=out)
    return out.getvalue()


__all__ = [
    "DEVICE_TO_DEVICE_TYPE",
    "RECV_FROM_HOST_TYPE",
    "SEND_TO_HOST_TYPE",
    "ConstantHandler",
    "LoweringRule",
    "LoweringRuleContext",
    "Mesh",
    "MeshAxisName",
    "ModuleContext",
    "Token",
    "TokenSet",
    "Value",
    "aval_to_ir_type",
    "aval_to_ir_types",
    "core_call_lowering",
    "dense_int_array",
    "dense_int_elements",
    "dtype_to_ir_type",
    "emit_python_callback",
    "flatten_ir_types",
    "flatten_ir_values",
    "i32_attr",
    "i64_attr",
    "ir",
    "ir_attribute",
    "ir_constant",
    "ir_constants",
    "ir_tree_registry",
    "ir_type_handlers",
    "lower_fun",
    "lower_with_sharding_in_types",
    "lowerable_effects",
    "make_ir_context",
    "module_to_bytecode",
    "module_to_string",
    "register_constant_handler",
    "register_lowering",
    "shape_tensor",
    "token_type",
]
