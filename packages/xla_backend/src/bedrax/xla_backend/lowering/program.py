"""jaxpr -> StableHLO, in one pass.

`Program` is the module under construction: its functions, host callbacks, and the objects that its executable must
keep alive. `inline` appends the equations of a jaxpr to a block. A rule receives one equation as a `LoweringContext`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax.core import caches, config, dead_code, dims, effects, offers, source
from bedrax.core.context import trace_context
from bedrax.core.exact import exact_items
from bedrax.core.ir import Jaxpr, Literal
from bedrax.core.staging import trace_to_jaxpr
from bedrax.core.tracing import current
from bedrax.lax import element_types
from bedrax.xla_backend import flags, tables
from bedrax.xla_backend.lowering import hints, types
from bedrax.xla_backend.lowering.build import Block, array_constant
from bedrax.xla_backend.lowering.custom_calls import Caller
from bedrax.xla_backend.lowering.partitioner import Gspmd
from bedrax.xla_backend.lowering.types import ir, tensor_type, type_of

if TYPE_CHECKING:
    from bedrax.core.avals import ShapedArray
    from bedrax.core.tracing import Primitive
    from bedrax.lax.primitives.callbacks import DebugEffect


_create = ir.Operation.create
_context = types.context


class Program:
    """A StableHLO module under construction.

    Attributes:
      platform: the platform whose rules apply.
      devices: the devices of the program, if they are known.
      partitioner: how the module expresses shardings.
      host_callbacks: Python callables that the executable calls, by index.
      keepalives: objects that must live as long as the executable.
      dim_values: symbolic dimension variable -> rank-0 i32 value, in the main function.
      lower_equation: ``(ctx, values) -> value, or list``: how equations are lowered; None: by the platform's rules.
      find_rule: ``(primitive, platform) -> rule``.
    """

    def __init__(
        self,
        name: str,
        platform: str,
        num_partitions: int = 1,
        lower_equation: Callable[..., Any] | None = None,
        devices: Sequence[Any] = (),
    ) -> None:
        self.name = name
        self.devices: tuple[Any, ...] = tuple(devices)
        self.partitioner: Any = Gspmd()
        self.mesh: Any = None  # the mesh of the shardings that users receive
        self.groups = 0  # number of groups of values with one sharding
        self.lower_equation = lower_equation
        self.find_rule: Callable[..., Any] = tables.find_rule
        self.rules: dict[Any, Callable[..., Any]] = {}  # the platform's rules that have been looked up
        self.platform = platform
        self.num_partitions = num_partitions
        self.module: ir = ir.Module.create(loc=types.unknown)
        attributes = self.module.operation.attributes
        attributes["sym_name"] = types.string(_symbol_name(name))
        attributes["mhlo.num_replicas"] = types.i32(1)
        attributes["mhlo.num_partitions"] = types.i32(num_partitions)
        self.body: ir = self.module.body
        self.host_callbacks: list[Any] = []
        self.keepalives: list[Any] = []
        self.dim_values: dict[str, Any] = {}
        self.symbolic = False
        self.manual: Any = None  # inside a `shard_map`: its mesh, and the device's position in it
        self.channels = 0  # number of collectives
        self.shapes: dict[Any, tuple[Any, ...]] = {}  # shapes with symbolic dimensions, of values whose types lack them
        # For several platforms: their names, the value of the running one's index, and whether a rule has used it.
        self.platforms: tuple[str, ...] = ()
        self.platform_index: Any = None
        self.platform_asked = False
        self.scratch: Any = None
        self._functions: dict[Any, str] = {}
        self._symbols: set[str] = {"main"}

    def position(self, where: Any) -> int:
        """The position of the device of a single-device sharding among the program's devices (None: the first).

        Raises:
          ValueError: it is over several devices, or over a device that is not one of the program's.
        """
        if where is None:
            return 0
        (device, *others) = where.assignment
        if others or (self.devices and device not in self.devices):
            raise ValueError(
                f"sharding of a callback: it is called once, on one device of the program's {len(self.devices)}; got"
                f" {where}"
            )
        return self.devices.index(device) if self.devices else 0

    def unique_symbol(self, name: str) -> str:
        """A symbol name like `name` that the module does not have yet."""
        name = _symbol_name(name)
        found, n = name, 0
        while found in self._symbols:
            found = f"{name}_{n}"
            n += 1
        self._symbols.add(found)
        return found

    def function(
        self,
        symbol: str,
        in_types: list[Any],
        out_types: list[Any],
        body: Callable[..., Any],
        public: bool = False,
        arg_attrs: list[Any] | None = None,
        res_attrs: list[Any] | None = None,
        at_begin: bool = False,
        names: Sequence[str] = (),
    ) -> None:
        """Add a function. ``body(block, arguments)`` returns the results; `names` are those of the last arguments."""
        with _context:
            function_type = ir.FunctionType.get(list(in_types), list(out_types), _context)
        attributes = {
            "sym_name": types.string(symbol),
            "function_type": ir.TypeAttr.get(function_type, _context),
            "sym_visibility": types.string("public" if public else "private"),
        }
        for what, attrs, types_ in (("arguments", arg_attrs, in_types), ("results", res_attrs, out_types)):
            if attrs is not None and len(attrs) != len(types_):  # MLIR would crash
                raise ValueError(f"{symbol} has {len(types_)} {what}, and was given attributes of {len(attrs)}")
        if arg_attrs is not None:
            attributes["arg_attrs"] = ir.ArrayAttr.get(arg_attrs, _context)
        if res_attrs is not None:
            attributes["res_attrs"] = ir.ArrayAttr.get(res_attrs, _context)
        point = ir.InsertionPoint.at_block_begin(self.body) if at_begin else ir.InsertionPoint(self.body)
        op = _create("func.func", attributes=attributes, regions=1, loc=types.unknown, ip=point)
        places = [types.unknown] * (len(in_types) - len(names))
        places += [ir.Location.name(name, types.unknown, _context) for name in names]
        block = op.regions[0].blocks.append(*in_types, arg_locs=places)
        place = Block(self, ir.InsertionPoint(block))
        results = body(place, list(block.arguments))
        _create("func.return", operands=list(results), loc=types.unknown, ip=place.ip)

    def text(self, debug_info: bool = False) -> str:
        """The module as text."""
        return self.module.operation.get_asm(enable_debug_info=debug_info, pretty_debug_info=False)


def _symbol_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "_.-$" else "_" for c in name)


def inline(
    block: Block,
    jaxpr: Jaxpr,
    operands: Sequence[Any],
    consts: Sequence[Any] | None = None,
    call: Any = None,
    scope: str = "",
) -> list[Any]:
    """Append the equations of `jaxpr` to `block`.

    Args:
      operands: a value per invar.
      consts: a value per constvar; by default the program's constants are embedded.
      call: the line of the call, for equations that have no line of their own.
      scope: a path: the names of the operations are within it.

    Returns:
      A value per outvar.
    """
    env: dict[Any, Any] = {}
    several = block.program.num_partitions > 1
    if jaxpr.constvars:
        if consts is None:
            consts = [array_constant(block, c, v.aval) for v, c in zip(jaxpr.constvars, jaxpr.consts)]
        if several and any(map(_holds_sums, jaxpr.constvars)):
            in_parts = offers.offered("constants in parts")
            consts = [
                in_parts(block, x, v.aval) if _holds_sums(v) else x
                for v, x in zip(jaxpr.constvars, consts, strict=True)
            ]
        env.update(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, operands, strict=True))
    jaxpr = dead_code.live(jaxpr)
    program = block.program
    if program.symbolic:
        _remember_shapes(program, jaxpr.invars, operands)
    lower_equation, rules, moving = program.lower_equation, program.rules, element_types.eqns_that_move_elements(jaxpr)
    for eqn in jaxpr.eqns:
        prim, params, outvars = eqn.primitive, eqn.params, eqn.outvars
        values = []
        avals_in = []
        for v in eqn.invars:
            aval = v.aval
            avals_in.append(aval)
            if type(v) is Literal:
                values.append(
                    block.constant(v.val, aval.dtype)
                    if isinstance(aval.dtype, np.dtype) and not aval.shape
                    else array_constant(block, v.val, aval)
                )
            else:
                values.append(env[v])
        place = eqn.place
        where = place or call or ()
        location = _location(prim, params.get("name"), where, scope)
        avals_out = [outvars[0].aval] if len(outvars) == 1 else [v.aval for v in outvars]
        ctx = LoweringContext(block, prim, avals_in, avals_out, params, location, eqn.effects, where, scope)
        try:
            if moving and eqn in moving:
                out = ctx.lower_fun(element_types.function_on_bases(prim, avals_in, params), *values)
            elif several and _partial(eqn):
                out = offers.offered("lowering of partial sums")(ctx, values, _lower_one)
            elif lower_equation is not None:
                out = lower_equation(ctx, values)
            else:
                rule = rules.get(prim)
                if rule is None:
                    rule = rules[prim] = program.find_rule(prim, program.platform)
                out = rule(ctx, *values, **params)
        except ir.MLIRError as error:
            raise _lowering_bug(ctx, error) from error
        if place and len(place) > 3:
            hints.mark_all(out, values, place[3])
        if program.symbolic:
            _remember_shapes(program, outvars, out if type(out) is list or type(out) is tuple else [out])
        if several:
            out = _as_typed(ctx, eqn, out)
        if prim.multiple_results:
            if len(out) != len(outvars):
                raise ValueError(
                    f"the StableHLO rule of '{prim}' returned {len(out)} values, the primitive has {len(outvars)}"
                )
            env.update(zip(outvars, out))
        else:
            if type(out) is list or type(out) is tuple:
                (out,) = out
            env[outvars[0]] = out
    return [env[v] if type(v) is not Literal else array_constant(block, v.val, v.aval) for v in jaxpr.outvars]


def _lower_one(ctx: LoweringContext, values: Sequence[Any]) -> Any:
    """The results of an equation by its rule."""
    program = ctx.program
    if program.lower_equation is not None:
        return program.lower_equation(ctx, values)
    return program.find_rule(ctx.prim, program.platform)(ctx, *values, **ctx.params)


def _partial(eqn) -> bool:
    """Whether an operand or a result holds partial sums."""
    return any(map(_holds_sums, eqn.invars)) or any(map(_holds_sums, eqn.outvars))


def _holds_sums(v) -> bool:
    split = getattr(v.aval, "split", None)
    return split is not None and bool(split.spec.unreduced)


def _as_typed(ctx: LoweringContext, eqn, out: Any) -> Any:
    """The results of an equation, with the shardings of their types."""
    if all(getattr(v.aval, "split", None) is None for v in eqn.outvars):
        return out
    several = type(out) is list or type(out) is tuple
    found = [
        value
        if getattr(v.aval, "split", None) is None
        else ctx.program.partitioner.constrained(ctx, value, v.aval.split)
        for v, value in zip(eqn.outvars, out if several else [out], strict=True)
    ]
    return found if several else found[0]


def _remember_shapes(program: Program, variables, values) -> None:
    for v, value in zip(variables, values):
        aval = v.aval
        if value is not None and aval.is_array and not dims.is_constant_shape(aval.shape):
            program.shapes[value] = types.physical(aval)[0]


def _lowering_bug(ctx: LoweringContext, error) -> Exception:
    return ValueError(
        f"the StableHLO rule of primitive '{ctx.prim}' made an invalid operation for operands"
        f" {[str(a) for a in ctx.avals_in]} and parameters {ctx.params}: {error}"
    )


_locations: dict[Any, Any] = {}
_NAMES = {"scan": "while"}  # names of operations that differ from those of their primitives


@config.on_change(flags.hlo_source_file_canonicalization_regex)
def _forget_locations(_: config.Flag) -> None:
    _locations.clear()


def path_within(scope: str, source_info: tuple[Any, ...], name: str, called: bool = False) -> str:
    """The path of an equation's operation. A transformation of a called function encloses its name: ``jvp(jit(f))``."""
    scope = "/".join(filter(None, (scope, *source_info[2:3])))
    if called and (at := scope.find("()", scope.rfind("/") + 1)) >= 0:
        return f"{scope[: at + 1]}{name}{scope[at + 1 :]}"
    return f"{scope}/{name}" if scope else name


def _location(prim, called: Any, source_info, scope: str) -> Any:
    """The source location of an equation, under the name of the primitive and of the function that it calls."""
    if not source_info:
        key: Any = (prim, called, scope)
    else:  # hashing a code object reads all of it; the entry keeps it alive, so its id is enough
        key = (prim, called, scope, id(source_info[0]), *source_info[1:])
    found = _locations.get(key)
    if found is None:
        if len(_locations) > 20000:
            _locations.clear()
        name, child, code = _NAMES.get(prim.name, prim.name), None, None
        if isinstance(called, str):
            name = f"{name}({called})"
        if source_info:
            code = source_info[0]
            file, line, _, column, *_ = source.position_of(source_info[:2])
            if unwanted := flags.hlo_source_file_canonicalization_regex.value:
                file = re.sub(unwanted, "", file)
            child = ir.Location.file(file, line, column, _context)
        name = path_within(scope, source_info, name, isinstance(called, str))
        found = _locations[key] = (ir.Location.name(name, child, _context), code)
    return found[0]


class LoweringContext(Caller):
    """The view of one equation for a rule.

    Attributes:
      prim, params, effects: the primitive, its parameters, the equation's effects.
      avals_in, avals_out: types of operands and results.
      line: the user's line, as in `Eqn.source_info`, or empty.
      scope: the path in which the equation's names are.
    """

    __slots__ = ("avals_in", "avals_out", "effects", "line", "params", "prim", "scope")

    def __init__(
        self,
        block: Block,
        prim: Primitive,
        avals_in: list[ShapedArray],
        avals_out: list[ShapedArray],
        params: dict[str, Any],
        location: Any = types.unknown,
        effects: frozenset[DebugEffect] = frozenset(),
        line: Any = (),
        scope: str = "",
    ) -> None:
        self.block = block
        self.program: Any = block.program
        self.location: ir = location
        self.prim: Any = prim
        self.avals_in: Any = avals_in
        self.avals_out: Any = avals_out
        self.params: Any = params
        self.effects: frozenset[Any] = effects
        self.line: Any = line
        self.scope: str = scope

    inline_in: staticmethod[..., Any] = staticmethod(inline)

    def own_results(self) -> tuple[list[Any], bool]:
        """The types of the equation's results, and whether there is a single one."""
        return list(map(type_of, self.avals_out)), not self.prim.multiple_results

    def own_result(self) -> Any:
        """The type of the equation's only result."""
        return type_of(self.avals_out[0])

    def spread_operands(self, operands: Sequence[Any]) -> Sequence[Any]:
        """The equation's operands. Those of rank 0 are broadcast to the shape of the result.

        The types of the equation say which these are. `broadcast_operands` looks at the values, which takes longer.
        """
        for aval in self.avals_in:
            if not aval.shape:
                break
        else:
            return operands
        if self.program.symbolic:
            return self.broadcast_operands(operands)
        out = self.avals_out[0]
        shape, dtype = types.physical(out)
        if not shape:
            return operands
        result = type_of(out)
        found = []
        for v, aval in zip(operands, self.avals_in, strict=True):
            if not aval.shape:
                rest, own = types.physical(aval)
                if not rest:
                    v = self.spread(v, result if own is dtype else tensor_type(shape, own))
            found.append(v)
        return found

    def broadcast_operands(self, operands: Sequence[Any], shape: Sequence[Any] | None = None) -> list[Any]:
        """Any values. Those of rank 0 are broadcast to `shape` (default: the shape of the result)."""
        if shape is None:
            shape = types.physical(self.avals_out[0])[0] if self.avals_out[0].is_array else ()
        if not shape:
            return list(operands)
        return [v if v.type.rank else self.broadcast_in_dim(v, shape, ()) for v in operands]

    @property
    def platform(self) -> str:
        """The platform of the lowering."""
        self.program.platform_asked = True
        return self.program.platform

    def replace(self, **changes: Any) -> LoweringContext:
        """A copy for other avals or parameters, at the same insertion point."""
        fields = dict(prim=self.prim, avals_in=self.avals_in, avals_out=self.avals_out, params=self.params)
        fields.update(changes)
        return LoweringContext(
            self.block, location=self.location, effects=self.effects, line=self.line, scope=self.scope, **fields
        )

    def jaxpr_region(self, jaxpr: Jaxpr) -> tuple[Any, ...]:
        """A region whose body is `jaxpr`, on its arguments."""
        return [type_of(v.aval) for v in jaxpr.invars], lambda *args: self.inline_jaxpr(jaxpr, *args)

    @contextlib.contextmanager
    def only_platform(self, platform: str) -> Iterator[None]:
        """Inside this context, the rules of one of the program's platforms apply."""
        program = self.program
        saved = program.platform, program.platforms
        program.platform, program.platforms = platform, ()
        try:
            yield
        finally:
            program.platform, program.platforms = saved

    # ---- nested programs ----

    def inline_jaxpr(self, jaxpr: Jaxpr, *operands: Any, part: str | None = None, called: bool = False) -> list[Any]:
        """Append the equations of `jaxpr` here. Returns a value per result.

        Args:
          part: a path, such as ``"while/body"``, for the names of the operations within those of the equation. None: the
            operations stand for the equation, and their names are within the scopes around it.
          called: whether `part` names a function.
        """
        scope = path_within(self.scope, self.line, part, called) if part else self.within()
        return inline(self.block, jaxpr, operands, call=self.line[:2], scope=scope)

    def within(self) -> str:
        """The path of the scopes around the equation."""
        return "/".join(filter(None, (self.scope, *self.line[2:3])))

    def call_jaxpr(self, name: str, jaxpr: Jaxpr, *operands: Any, pairs: Sequence[tuple[str, str]] = ()) -> list[Any]:
        """Call `jaxpr` as a private function of the module, made once per program. Returns a value per result.

        Args:
          pairs: frontend attributes of the call, or of its operations if they are inlined.
        """
        program = self.program
        by_device = program.manual is not None  # the function belongs to one manual part, and uses its device indices
        if program.symbolic or by_device or any(e in effects.ordered_effects for e in jaxpr.effects):
            results = self.inline_jaxpr(jaxpr, *operands)
            hints.mark_all(results, operands, pairs)
            return results
        symbol = program._functions.get(jaxpr)
        if symbol is None:
            symbol = program._functions[jaxpr] = program.unique_symbol(name)
            program.function(
                symbol,
                [type_of(v.aval) for v in jaxpr.invars],
                [type_of(v.aval) for v in jaxpr.outvars],
                lambda block, arguments: inline(block, jaxpr, arguments),
            )
        op = _create(
            "func.call",
            [type_of(v.aval) for v in jaxpr.outvars],
            operands,
            {"callee": types.symbol(symbol)},
            None,
            0,
            self.location,
            self.block.ip,
        )
        if pairs:
            hints.mark(op, pairs)
        return list(op.results)

    def lower_fun(
        self, fun: Callable[..., Any], *operands: Any, avals: Sequence[Any] | None = None, **kwargs: Any
    ) -> Any:
        """Trace ``fun(*args, **kwargs)`` at `avals` and inline it. By default, these are `avals_in` without their splits.

        Returns:
          a value if `fun` returns an array, else a list of values.
        """
        if avals is None:
            avals = [a.update(sharding=None) if getattr(a, "split", None) is not None else a for a in self.avals_in]
            avals = map(element_types.base_aval, avals)
        jaxpr, single = traced(fun, tuple(avals), kwargs)
        out = inline(self.block, jaxpr, operands, call=self.line[:2], scope=self.within())
        return out[0] if single else out

    # ---- effects, callbacks, dimensions ----

    def token(self, effect: Any) -> Any:
        """The current token of an ordered effect."""
        tokens = self.block.tokens
        if effect not in tokens:
            tokens[effect] = self.emit("stablehlo.create_token", (), types.token_type())
        return tokens[effect]

    def set_token(self, effect: Any, token: Any) -> None:
        """Make `token` the current token of an ordered effect."""
        self.block.tokens[effect] = token


def add_main(
    program: Program,
    jaxpr: Jaxpr,
    kept: Sequence[int],
    arg_attrs: Sequence[dict[str, Any]],
    res_attrs: Sequence[dict[str, Any]],
    *,
    hoisted: Sequence[bool] | None = None,
    extra: Sequence[Any] = (),
    begin: Callable[..., Any] | None = None,
    ordered: Sequence[Any] = (),
) -> None:
    """Add the main function: it takes `extra`, tokens, the hoisted constants, and the kept arguments of a program.

    kept: positions of the arguments that it takes; no equation uses the others.
    arg_attrs, res_attrs: attributes of its arguments and results, as Python values.
    hoisted: per constant of the program, whether it is an argument. The others are embedded.
    begin: ``begin(block, values) -> values``, called first, removes the `extra` values.
    ordered: effects whose tokens it takes, and returns before its results.
    """
    hoisted = hoisted or (False,) * len(jaxpr.constvars)
    const_vars = [v for v, h in zip(jaxpr.constvars, hoisted) if h]
    taken = [*const_vars, *(jaxpr.invars[i] for i in kept)]
    name = program.name.removeprefix("jit_")
    scope = name if name == program.name else f"jit({name})"

    def body(block, values):
        values = values if begin is None else begin(block, values)
        block.tokens.update(zip(ordered, values, strict=False))
        env = dict(zip(taken, values[len(ordered) :], strict=True))
        consts = [
            env[v] if h else array_constant(block, c, v.aval)
            for v, c, h in zip(jaxpr.constvars, jaxpr.consts, hoisted, strict=True)
        ]
        out = inline(block, jaxpr, [env.get(v) for v in jaxpr.invars], consts, scope=scope)
        return [*(block.tokens[e] for e in ordered), *out]

    tokens = [types.token_type() for _ in ordered]
    names = jaxpr.debug_info.arg_names if jaxpr.debug_info else None
    program.function(
        "main",
        [*extra, *tokens, *(types.type_of(v.aval) for v in taken)],
        [*tokens, *(types.type_of(v.aval) for v in jaxpr.outvars)],
        body,
        public=True,
        arg_attrs=[types.ffi_attribute(a) for a in arg_attrs],
        res_attrs=[types.ffi_attribute(a) for a in res_attrs],
        at_begin=True,
        names=[names[i] for i in kept] if names and len(names) == len(jaxpr.invars) else (),
    )


_traced: dict[Any, tuple[Any, ...]] = {}
caches.emptied.append(_traced.clear)


def traced(fun: Callable[..., Any], avals: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Jaxpr, bool]:
    """The jaxpr of ``fun(*avals, **kwargs)``, and whether it returns a single array."""
    key = (fun, avals, exact_items(kwargs), trace_context())
    try:
        found = _traced.get(key)
    except TypeError:
        key = found = None
    if found is not None:
        return found

    def flat(*args):
        current.trace.places = False  # equations of different lines share the program
        out = fun(*args, **kwargs)
        many = isinstance(out, (list, tuple))
        return (list(out) if many else [out]), not many

    with config.our_code():
        found = trace_to_jaxpr(flat, avals)
    if key is not None and not found[0].consts:
        if len(_traced) > 4096:
            _traced.clear()
        _traced[key] = found
    return found
