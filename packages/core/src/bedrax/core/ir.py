"""The jaxpr: a typed, first-order language for array programs.

    jaxpr ::= { lambda constvar* ; invar* . let eqn* in (atom*) }
    eqn   ::= var* = primitive[ param* ] atom*
    atom  ::= var | literal
    var   ::= name : type                     each bound once, before it is used
    type  ::= dtype[shape] | Tok              `bedrax.core.avals`
    param ::= name = hashable metadata, possibly a jaxpr

Five small types. The values of the constvars are inside the `Jaxpr` (the face calls it
`ClosedJaxpr`, too). `eval_jaxpr` is the evaluator: `read`, `write`, a loop over
equations. Every other pass has the same structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from bedrax.core.avals import AbstractValue
from bedrax.core.effects import OperandEffect, moved
from bedrax.core.names import Place
from bedrax.core.offers import offered, shown
from bedrax.core.tracing import Primitive

no_effects: frozenset[Any] = frozenset()


class Var:
    """A variable, compared by identity.

    Examples:

      >>> from jax.extend import core

      >>> x = core.Var(jax.core.ShapedArray((3,), jnp.float32))
      >>> core.Jaxpr([], [x], [x, x], [])
      { lambda ; a:f32[3]. let  in (a, a) }
      >>> x.aval
      ShapedArray(float32[3])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue) -> None:
        self.aval: AbstractValue = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.short()}"


class DropVar(Var):
    """An unused result; prints as ``_``.

    Tracing makes a `Var` for every result. An unused one prints as ``_``, too.

    Examples:

      >>> program = jax.make_jaxpr(lambda x: lax.top_k(x, 2))(jnp.arange(3.))
      >>> (eqn,) = program.eqns
      >>> values, places = eqn.outvars
      >>> smaller = eqn.replace(outvars=[values, jax.core.DropVar(places.aval)])
      >>> program.replace(outvars=[values], eqns=[smaller])
      { lambda ; a:f32[3]. let
          b:f32[2] _:i32[2] = top_k[axis=0 is_stable=True k=2] a
        in (b,) }
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class Literal:
    """A scalar written into the program. `val` is the value, `aval` its type.

    Examples:

      >>> from jax.extend import core

      >>> program = jax.make_jaxpr(lambda x: x + 2)(1.)
      >>> added = program.eqns[0].invars[1]
      >>> isinstance(added, core.Literal), float(added.val), added.aval
      (True, 2.0, ShapedArray(float32[], weak_type=True))
    """

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: AbstractValue) -> None:
        self.val: Any = val
        self.aval: AbstractValue = aval

    def __repr__(self) -> str:
        return f"{self.val}:{self.aval.short()}"


Atom: TypeAlias = Var | Literal
Value = Any
ParamDict = dict[str, Any]


class Eqn:
    """One application of a primitive.

    Attributes:
      primitive, invars, outvars, params: as in the grammar.
      effects: its effects besides computing the results.
      source_info: the line of the user's code that bound it, and its named scopes: a `Place`, empty if they are unknown.
    """

    __slots__ = ("effects", "invars", "outvars", "params", "place", "primitive")

    @property
    def source_info(self) -> Place:
        return Place(self.place or ())

    def __init__(
        self,
        primitive: Primitive,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        params: dict[str, Any],
        effects: frozenset[Any] = no_effects,
        source_info: Any = None,
    ) -> None:
        self.primitive: Primitive = primitive
        self.invars: Sequence[Atom] = invars
        self.outvars: Sequence[Var] = outvars
        self.params: dict[Any, Any] = params if primitive.further_params is None else described(primitive, params)
        self.effects: frozenset[Any] = effects
        self.place: Any = source_info

    def replace(self, **changes: Any) -> Eqn:
        """A copy with some fields changed."""
        fields = {name: changes.pop(name, getattr(self, name)) for name in _EQN_FIELDS}
        if changes:
            raise TypeError(f"an equation has no fields {sorted(changes)}; its fields are {', '.join(_EQN_FIELDS)}")
        return Eqn(**fields)

    def __repr__(self) -> str:
        return offered("text of equations")(self)


class _Described(dict):
    """The params of an equation. Libraries may also read params that are computed from these; rules get only these."""

    __slots__ = ("primitive",)

    def __missing__(self, name: str) -> Any:
        return self.primitive.further_params(self)[name]


def described(primitive: Primitive, params: dict[str, Any]) -> dict[Any, Any]:
    """Return `params`; subscripts also find the ``further_params`` of a primitive that has some."""
    if primitive.further_params is None or type(params) is _Described:
        return params
    of = _Described(params)
    of.primitive = primitive
    return of


_EQN_FIELDS = ("primitive", "invars", "outvars", "params", "effects", "source_info")


class Jaxpr:
    """A program: see the grammar above.

    Args:
      invars, outvars, eqns: as in the grammar.
      constvars, consts: variables bound to values that the program closes over.
      effects: union of the equations' effects; computed if not given.
      debug_info: optional `DebugInfo` (names of arguments and results).
    """

    __slots__ = ("__weakref__", "cache", "consts", "constvars", "debug_info", "effects", "eqns", "invars", "outvars")

    def __init__(
        self,
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Eqn],
        constvars: Sequence[Var] = (),
        consts: Sequence[Any] = (),
        effects: frozenset[Any] | None = None,
        debug_info: DebugInfo | None = None,
    ) -> None:
        if len(constvars) != len(consts):
            raise ValueError(f"a jaxpr with {len(constvars)} constvars was given {len(consts)} constants")
        self.invars: list[Var] = list(invars)
        self.outvars: list[Any] = list(outvars)
        self.eqns: list[Eqn] = list(eqns)
        self.constvars: list[Var] = list(constvars)
        self.consts: list[Any] = list(consts)
        self.effects: frozenset[Any] = (
            join_effects(self.eqns, (*self.constvars, *self.invars)) if effects is None else effects
        )
        self.debug_info: DebugInfo | None = debug_info
        self.cache: dict[Any, Any] = {}  # results derived from this program; see `bedrax.core.facts`

    # The attributes of a `ClosedJaxpr`: the program and its constants are one object here.
    @property
    def jaxpr(self) -> Jaxpr:
        return self

    @property
    def in_avals(self) -> list[Any]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[Any]:
        return [v.aval for v in self.outvars]

    def replace(self, **changes: Any) -> Jaxpr:
        """A copy with some fields changed (`effects` recomputed unless given)."""
        fields = dict(
            invars=self.invars,
            outvars=self.outvars,
            eqns=self.eqns,
            constvars=self.constvars,
            consts=self.consts,
            debug_info=self.debug_info,
            effects=None if "eqns" in changes or (self.effects and changes) else self.effects,
        )
        inner = changes.pop("jaxpr", None)
        if inner is not None:
            return inner.replace(**changes)
        fields.update(changes)
        return Jaxpr(**fields)

    def pretty_print(self, **options: Any) -> str:
        """Return the standard printed form. Options: `source_info`, `print_shapes`, `name_stack`, `use_color`."""
        return offered("text of programs")(self, **options)

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__
    _repr_html_ = shown("program")


class DebugInfo:
    """Names for messages: the tracing function, the traced one, its arguments and results (a tuple of str each).

    All but the first may be functions, called at the first lookup.

    Examples:

      >>> from jax.extend import core

      >>> info = core.DebugInfo("jit", "loss at model.py:12", ("weights", "batch"), ("",))
      >>> info.func_src_info, info.arg_names
      ('loss at model.py:12', ('weights', 'batch'))
      >>> def f(x):
      ...     return x + 1
      ...
      >>> jax.make_jaxpr(f)(1.).debug_info.func_name
      'f'
    """

    __slots__ = ("_given", "traced_for")

    def __init__(
        self, traced_for: str = "", func_src_info: Any = "", arg_names: Any = None, result_paths: Any = None
    ) -> None:
        self.traced_for: str = traced_for
        self._given = [func_src_info, arg_names, result_paths]

    def _evaluated(self, i: int) -> Any:
        if callable(self._given[i]):
            self._given[i] = self._given[i]()
        return self._given[i]

    @property
    def func_src_info(self) -> str:
        return self._evaluated(0)

    @property
    def arg_names(self) -> Any:
        return self._evaluated(1)

    @property
    def result_paths(self) -> Any:
        return self._evaluated(2)

    @property
    def func_name(self) -> str:
        return self.func_src_info.partition(" at ")[0]

    def with_unknown_names(self) -> DebugInfo:
        """Return these names without those of arguments and results, for a program with others."""
        return DebugInfo(self.traced_for, self._given[0])

    def __repr__(self) -> str:
        return f"DebugInfo({self.func_src_info})"


def join_effects(eqns: Iterable[Eqn], inputs: Sequence[Var]) -> frozenset[Any]:
    """Return the effects of a program: the union over its equations. Of effects on values, those on `inputs`."""
    found: frozenset[Any] = no_effects
    place: dict[Any, Any] = {}
    for eqn in eqns:
        effects = eqn.effects
        if effects and effects is not found:
            if any(isinstance(e, OperandEffect) for e in effects):
                place = place or {v: i for i, v in enumerate(inputs)}
                operands = eqn.invars
                effects = moved(effects, lambda n, at=place, given=operands: at.get(given[n]))
            found = found | effects
    return found


def last_uses(jaxpr: Jaxpr) -> list[tuple[Var, ...]]:
    """Return for each equation the variables (no arguments) that neither a later equation nor the result uses."""
    found = jaxpr.cache.get(last_uses)
    if found is None:
        used = {*jaxpr.invars, *jaxpr.outvars}
        found = []
        for eqn in reversed(jaxpr.eqns):
            found.append(tuple({v for v in eqn.invars if type(v) is not Literal and v not in used}))
            used.update(eqn.invars)
        jaxpr.cache[last_uses] = found = found[::-1]
    return found


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Run a jaxpr by binding its primitives under the current trace.

    Args:
      jaxpr: the program.
      consts: one value per constvar (usually ``jaxpr.consts``).
      args: one value per invar. Only the order of `consts` and `args` together counts: the first values are
        those of the constvars.

    Returns:
      A list with one value per outvar.

    Raises:
      TypeError: there are fewer or more values than variables.
    """
    if len(args) != len(jaxpr.invars) or len(consts) != len(jaxpr.constvars):
        values = (*consts, *args)
        count = len(jaxpr.constvars)
        if len(values) != count + len(jaxpr.invars):
            raise TypeError(
                f"this jaxpr takes {count} constants and {len(jaxpr.invars)} arguments, {len(consts)} and {len(args)} were"
                " given"
            )
        consts, args = values[:count], values[count:]
    env = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn, dying in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
        values = [env[v] if type(v) is not Literal else v.val for v in eqn.invars]
        for v in dying:
            del env[v]
        out = eqn.primitive.bind(*values, **eqn.params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, out, strict=True))
        else:
            env[eqn.outvars[0]] = out
    return [env[v] if type(v) is not Literal else v.val for v in jaxpr.outvars]


def run(jaxpr: Jaxpr, *args: Any) -> list[Any]:
    """Call `eval_jaxpr` with the program's own constants."""
    return eval_jaxpr(jaxpr, jaxpr.consts, *args)


def jaxpr_as_fun(closed_jaxpr: Jaxpr, *args: Any) -> Callable[..., list[Any]]:
    """Return a program as a function from values to a list of values.

    Args:
      closed_jaxpr: a program with the values of its constants.
      args: the first arguments of each call.

    Examples:

      >>> from jax.extend import core

      >>> program = jax.make_jaxpr(lambda x: (x + 1, x * x))(1.)
      >>> core.jaxpr_as_fun(program)(5.)
      [Array(6., dtype=float32, weak_type=True), Array(25., dtype=float32, weak_type=True)]
      >>> jax.grad(lambda x: core.jaxpr_as_fun(program)(x)[1])(5.)
      Array(10., dtype=float32, weak_type=True)
    """
    return lambda *rest: eval_jaxpr(closed_jaxpr, closed_jaxpr.consts, *args, *rest)


def call_flat(fun: Jaxpr | Callable[..., Any], args: Sequence[Any]) -> list[Any]:
    """Call the program of a call-like primitive, or (before staging) its flat function."""
    return eval_jaxpr(fun, fun.consts, *args) if type(fun) is Jaxpr else list(fun(*args))
