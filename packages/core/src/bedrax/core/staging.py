"""Staging: reading a Python function into a jaxpr.

`StagingTrace` records every operation bound while it is current, whether or not its
operands are traced. Values that the function closes over become constants: scalars
become literals, arrays and tracers of outer transformations become constvars.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from bedrax import pytree
from bedrax.core import avals, caches, codes, config, errors, objects, passes, source, tracing, typecheck
from bedrax.core.array import Array, no_arrays
from bedrax.core.avals import AbstractValue, aval_of
from bedrax.core.columns import Column
from bedrax.core.exact import same_bits
from bedrax.core.ir import DebugInfo, Eqn, Jaxpr, Literal, Var, eval_jaxpr, no_effects
from bedrax.core.names import hints_of, scopes
from bedrax.core.public import public
from bedrax.core.quiet import quietly
from bedrax.core.signatures import Signature, leaf_names, plain_code
from bedrax.core.tables import effect_rules, pure
from bedrax.core.tracing import Primitive, Trace, Tracer, current
from bedrax.core.typed_values import typed
from bedrax.core.typing import ArrayLike
from bedrax.pytree import PyTreeDef

source.replays = eval_jaxpr.__code__


def _record(trace, prim, args, params):
    """The staging of a primitive whose params are data."""
    return trace.record(prim, args, params)


# Primitives whose params hold Python functions have their own staging rule, which traces those functions.
stage_rules: Final = Column(
    "staging", signature="rule(trace, prim, args, params) -> results", otherwise=lambda prim: _record
)


class StagedTracer(Tracer):
    """A variable of the program being recorded.

    Examples:

      >>> from jax.interpreters import partial_eval as pe

      >>> def f(x):
      ...     print(type(x) is pe.DynamicJaxprTracer, x.aval)
      ...     return 2 * x
      ...
      >>> program = jax.make_jaxpr(f)(jnp.ones(3))
      True float32[3]
    """

    __slots__ = ("aval", "source_info", "variable")

    def __init__(
        self, trace: StagingTrace, aval: AbstractValue, var: Var, source_info: tuple[Any, int] | None = None
    ) -> None:
        self._trace = trace
        self.aval: AbstractValue = aval
        self.variable: Var = var
        self.source_info: tuple[Any, int] | None = source_info

    @property
    def source(self) -> Any:
        return self.source_info

    def arguments(self) -> str:
        """Return the names of the arguments that the value depends on, and the traced function; '' if unknown."""
        info = self._trace.debug_info
        file = "" if info is None else info.func_src_info.rpartition(" at ")[2].rpartition(":")[0]
        if not file or source.is_excluded(file):
            return ""
        names = self._trace.names_of_arguments_of(self.variable)
        what = f"the argument{'s' if len(names) > 1 else ''} {', '.join(names)}"
        return f"{what} of {info.func_src_info}" if names else ""

    def origin(self) -> str:
        """Return a phrase for messages: the traced function, and the arguments that the value depends on."""
        info = self._trace.debug_info
        if info is None or not info.func_src_info:
            return ""
        names = self._trace.names_of_arguments_of(self.variable)
        depends = (
            f" It depends on the value of the argument{'s' if len(names) > 1 else ''} {', '.join(names)}."
            if names
            else ""
        )
        return f"This came up while tracing the function {info.func_src_info}.{depends}"

    def __repr__(self) -> str:
        return f"JitTracer({'~' if getattr(self.aval, 'weak_type', False) else ''}{_long_name(self.aval)})"

    def __str__(self) -> str:
        return f"Traced<ShapedArray({_long_name(self.aval)})>"  # the form in the documents for users


def _long_name(aval: AbstractValue) -> str:
    return aval.str_short() if isinstance(aval, avals.ShapedArray) else aval.short()


avals.aval_functions[StagedTracer] = operator.attrgetter("aval")
StagedValue: Final = typed(StagedTracer)

_SCALARS = (bool, int, float, complex)


class StagingTrace(Trace):
    """Records operations as equations."""

    __slots__ = (
        "arrays",
        "const_vars",
        "consts",
        "debug_info",
        "eqns",
        "facts",
        "has_effects",
        "invars",
        "line",
        "names",
        "objects",
        "places",
        "scopes",
    )

    def __init__(self, parent: Trace, debug_info: DebugInfo | None = None) -> None:
        self.parent: Trace = parent
        self.alive: bool = True
        self.eqns: list[Eqn] = []
        self.const_vars: dict[Any, Var] = {}  # by id, NumPy arrays by contents
        self.consts: list[Any] = []
        self.arrays: dict[int, tuple[weakref.ref[Any], np.ndarray[Any, Any], Var]] = {}  # by id, each with its copy
        self.invars: list[Var] = []
        self.has_effects: bool = False
        self.debug_info: DebugInfo | None = debug_info
        self.facts: dict[Any, Any] = {}  # of the program; see `bedrax.core.facts`
        self.objects: objects.UsedObjects | None = None
        # Whether equations keep the user's lines.
        self.places: bool = getattr(parent, "places", True) and not current.shared
        self.names: tuple[Any, ...] = ()  # those of the last equation, and what `scopes` makes of them
        self.scopes: tuple[Any, ...] = ()
        self.line: Any = getattr(parent, "line", None)  # the line of all equations, in place of that of their call

    def input(self, aval: AbstractValue) -> StagedTracer:
        """Return a tracer for a new argument of the program."""
        aval = avals.interned(aval)
        var = Var(aval)
        self.invars.append(var)
        return self.tracer(aval, var)

    def tracer(self, aval: AbstractValue, var: Var, where: Any = None) -> StagedTracer:
        """Return the tracer of a variable."""
        return (aval.tracer_class or (StagedTracer if aval.is_array else StagedValue))(self, aval, var, where)

    def names_of_arguments_of(self, var: Var) -> list[str]:
        """Return the names of the program's arguments that a variable depends on."""
        needed = {var}
        for eqn in reversed(self.eqns):
            if not needed.isdisjoint(eqn.outvars):
                needed.update(v for v in eqn.invars if type(v) is Var)
        names = self.debug_info.arg_names or []
        return [name for name, v in zip(names, self.invars, strict=False) if v in needed]

    def lift(self, x: Any) -> Var | Literal:
        """Return an atom for a value in the recorded function."""
        kind = type(x)
        if kind is StagedTracer and x._trace is self:
            return x.variable
        if kind in _SCALARS:
            return Literal(x, aval_of(x))
        if isinstance(x, np.generic) and x.dtype.kind != "V":
            aval = aval_of(x)
            # float64 beyond float32 becomes infinite
            return Literal(x if x.dtype is aval.dtype else quietly(x.astype, aval.dtype), aval)
        if isinstance(x, StagedTracer) and x._trace is self:  # of a subclass
            return x.variable
        if isinstance(x, _SCALARS):  # of a subclass
            return self.lift(next(t for t in _SCALARS if isinstance(x, t))(x))
        if kind is np.ndarray and not x.ndim and x.dtype.kind != "V":
            return self.lift(x[()])
        if isinstance(x, np.ndarray) and x.dtype.itemsize:
            return self.lift_array(x)
        key = id(x)
        var = self.const_vars.get(key)
        if var is None:
            if isinstance(x, Tracer) and not x._trace.alive:
                raise errors.escaped_tracer_error(x)
            aval = aval_of(x) if kind in no_arrays else None
            if aval is None or not aval.is_high:
                if hasattr(x, "__jax_array__"):
                    return self.lift(x.__jax_array__())
                aval = aval_of(x)
            elif (operand := aval.as_operand(x)) is not x:
                return self.lift(operand)
            var = self.const_vars[key] = Var(aval)
            self.consts.append(x)  # also keeps `x` alive, so that its id stays its own
        return var

    def lift_array(self, x: np.ndarray) -> Var:
        """Return the variable of a copy of a NumPy array, which may be written to while the function is traced.

        The array is copied and hashed at first use, and again only after a write.
        """
        now = np.asarray(x, order="C")
        arrays, number = self.arrays, id(x)
        known = arrays.get(number)
        if known is not None and same_bits(known[1], now):
            return known[2]
        dtype = aval_of(x).dtype
        with np.errstate(all="ignore"):  # float64 beyond float32 becomes infinite
            data = np.asarray(now, dtype).tobytes()
        key, copy = (dtype, now.shape, data), np.ndarray(now.shape, dtype, data)
        var = self.const_vars.get(key)
        if var is None:
            var = self.const_vars[key] = Var(aval_of(copy))
            self.consts.append(copy)
        original = copy if now.dtype == dtype else now.copy()
        arrays[number] = weakref.ref(x, lambda _: arrays.pop(number, None)), original, var
        return var

    def lift_result(self, x: Any, i: int) -> Var | Literal:
        """Return an atom for a result of the function."""
        try:
            atom = self.lift(x)
            if atom.aval.mutable:
                raise self.escaping(atom, i)
            return atom
        except TypeError:
            info = self.debug_info
            if info is None or isinstance(x, Tracer) or type(x) in _SCALARS:
                raise
            raise TypeError(
                codes.coded(
                    "BX-JIT-RESULT",
                    f"function {info.func_src_info} returned a value of type {type(x)} (leaf {i} of its result), which"
                    f" is not a valid JAX type: {x!r}. A traced function returns pytrees of arrays; other values are"
                    " known before it is called",
                )
            ) from None

    def escaping(self, atom: Var | Literal, i: int) -> ValueError:
        """Return the error of a result that is a reference: results must be values."""
        info = self.debug_info
        what = f"function {info.func_src_info}" if info is not None and info.func_src_info else "the function"
        return ValueError(
            public(
                f"{what} returned a reference, of type {atom.aval.short()} (leaf {i} of its result). References cannot"
                " be returned from what is traced: return the value (ref[...], or jax.freeze of a reference made"
                " inside)."
            )
        )

    def process(
        self, prim: Primitive, args: tuple[Any, ...] | list[Any], params: dict[str, Any]
    ) -> Array | list[Array]:
        rule = stage_rules[prim]
        return self.record(prim, args, params) if rule is _record else rule(self, prim, args, params)

    def record(self, prim: Primitive, args: tuple[Any, ...] | list[Any], params: dict[str, Any]) -> Array | list[Array]:
        """Append an equation; returns the tracer(s) of its result(s)."""
        invars = []
        types = []
        for x in args:
            atom = x.variable if type(x) is StagedTracer and x._trace is self else self.lift(x)
            invars.append(atom)
            types.append(atom.aval)
        try:
            out = prim.result_types(types, params)
        except (TypeError, ValueError) as error:
            codes.with_facts(error, errors.sources_of(args))
            raise
        effects_of = effect_rules[prim]
        if effects_of is pure:
            effects = no_effects
        else:
            effects = frozenset(effects_of(*types, **params))
            self.has_effects = self.has_effects or bool(effects)
        where = (self.line or source.user_frame(3)) if self.places else None  # skips `record`, `process` and the caller
        if (names := current.names) and where is not None:
            if names is not self.names:
                self.names, self.scopes = names, scopes(names)
            where = where + self.scopes if len(where) == 2 else (*where[:2], *scopes(names, where[2:]))
        if prim.multiple_results:
            outvars = [Var(a) for a in out]
            self.eqns.append(Eqn(prim, invars, outvars, params, effects, where))
            return [
                StagedTracer(self, v.aval, v, where) if v.aval.is_array else self.tracer(v.aval, v, where)
                for v in outvars
            ]
        var = Var(out)
        self.eqns.append(Eqn(prim, invars, [var], params, effects, where))
        return StagedTracer(self, out, var, where) if out.is_array else self.tracer(out, var, where)

    def finish(self, invars: Sequence[Var], outs: Sequence[Any]) -> Jaxpr:
        """End recording; the values `outs` are the program's results."""
        outvars = [self.lift_result(x, i) for i, x in enumerate(outs)]
        self.alive = False
        constvars, effects = list(self.const_vars.values()), None if self.has_effects else no_effects
        program = Jaxpr(invars, outvars, self.eqns, constvars, self.consts, effects, self.debug_info)
        program.cache.update(self.facts)
        return program


class OpenTrace(StagingTrace):
    """The trace of `make_jaxpr`. Libraries read it while it is current, and add arguments to the program."""

    __slots__ = ()

    def new_arg(self, aval: AbstractValue, source_info: Any = None) -> StagedTracer:
        """Return a tracer for a further argument of the program; it comes after those that the program has so far.

        Args:
          aval: the type of the argument.
          source_info: ignored, because an argument belongs to no operation.
        """
        return self.input(aval)


class ShapeTrace(StagingTrace):
    """Computes types and records nothing."""

    __slots__ = ()

    def record(self, prim: Primitive, args: tuple[ArrayLike, ...], params: dict[str, Any]) -> Array:
        types = [x.aval if type(x) is StagedTracer and x._trace is self else self.lift(x).aval for x in args]
        out = prim.result_types(types, params)
        if prim.multiple_results:
            return [self.tracer(a, Var(a)) for a in out]
        return self.tracer(out, Var(out))


observers: Final[list[Callable[[Jaxpr], None]]] = []
"""Functions that are called with every recorded program."""


@tracing.checks_leaks
def trace_to_jaxpr(
    fun: Callable[..., Any],
    in_avals: Sequence[AbstractValue],
    debug_info: DebugInfo | None = None,
    *,
    types_only: bool = False,
    kind: type[StagingTrace] = StagingTrace,
) -> tuple[Jaxpr, Any]:
    """Record a flat function.

    Args:
      fun: takes one value per aval, returns (list of values, any object, such as the structure of the result).
      in_avals: the arguments' types.
      types_only: record only the types of arguments and results: the program has no equations.
      kind: the class of the trace that records.

    Returns:
      (program, second result of `fun`). The program's constants may hold tracers of enclosing transformations;
      see `close_over`.
    """
    trace = (ShapeTrace if types_only else kind)(current.trace, debug_info)
    tracers = [trace.input(a) for a in in_avals]
    names = current.names
    with tracing.entered(trace, hints_of(names) if names else None):
        outs, aux = fun(*tracers)
        if trace.objects is not None:
            trace.objects.refuse_changes()
        jaxpr = trace.finish(trace.invars, outs)
    if config.enable_checks.value and not types_only:
        typecheck.check_jaxpr(jaxpr)
    for observe in observers:
        observe(jaxpr)
    return jaxpr, aux


def program_of(
    fun: Callable[..., Any], in_avals: Sequence[AbstractValue], debug_info: DebugInfo | None = None
) -> Jaxpr:
    """Return the program of a function that returns a list of values only, without the references that it makes."""
    return without_references(trace_to_jaxpr(lambda *args: (fun(*args), None), in_avals, debug_info)[0])


def close_over(jaxpr: Jaxpr, every: bool = True) -> tuple[Jaxpr, list[Any]]:
    """Turn constants into leading arguments.

    Args:
      every: all constants; else only tracers and references (concrete arrays stay in the program).

    Returns:
      (program, values of the new leading arguments).
    """
    if not jaxpr.consts:
        return jaxpr, []
    if every:
        moved = list(range(len(jaxpr.consts)))
    else:
        moved = [i for i, c in enumerate(jaxpr.consts) if isinstance(c, Tracer) or jaxpr.constvars[i].aval.mutable]
        if not moved:
            return jaxpr, []
    chosen = set(moved)
    stay = [i for i in range(len(jaxpr.consts)) if i not in chosen]
    closed = jaxpr.replace(
        invars=[jaxpr.constvars[i] for i in moved] + jaxpr.invars,
        constvars=[jaxpr.constvars[i] for i in stay],
        consts=[jaxpr.consts[i] for i in stay],
    )
    return closed, [jaxpr.consts[i] for i in moved]


def close_over_both(first: Jaxpr, second: Jaxpr) -> tuple[Jaxpr, Jaxpr, list[Any]]:
    """Turn the constants of two programs into leading arguments that both take."""
    first, own = close_over(first)
    second, others = close_over(second)
    n = len(own)
    first = first.replace(invars=[*first.invars[:n], *(Var(aval_of(x)) for x in others), *first.invars[n:]])
    second = second.replace(invars=[*(Var(aval_of(x)) for x in own), *second.invars])
    return first, second, [*own, *others]


def flat_fun(fun: Callable[..., Any], in_tree: PyTreeDef) -> Callable[..., Any]:
    """Return `fun` of trees as a function of leaves that returns the leaves of the result and their treedef."""

    def flat(*leaves):
        args, kwargs = pytree.tree_unflatten(in_tree, leaves)
        return pytree.tree_flatten(fun(*args, **kwargs))

    return flat


def type_or_object(x: Any) -> AbstractValue | objects.Held:
    """Return the type of an argument of a traced function, or the object if no array represents it."""
    kind = objects.kinds.get(type(x))
    if kind is None:
        return avals.abstractify(x)
    aval = kind.typeof(x)
    return aval if aval.represented else objects.Held.of(x)


def trace_function(
    fun: Callable[..., Any], in_tree: PyTreeDef, in_avals: tuple[Any, ...]
) -> tuple[Jaxpr, list[Any], Any]:
    """Trace a function of trees for a primitive that holds programs; kept per function and signature.

    Args:
      in_tree: treedef of ``(args, kwargs)``.
      in_avals: types of the leaves.

    Returns:
      (program with closed-over values as leading arguments, these values, treedef of the result).
    """
    known = caches.traces.of(fun)
    key = (trace_function, in_tree, in_avals, caches.context())
    found = known.get(key)
    if found is None:
        traced, out_tree = trace_to_jaxpr(flat_fun(fun, in_tree), in_avals, described(fun, in_tree))
        program, consts = close_over(traced)
        program = without_references(program)
        found = (program, consts, out_tree)
        if not any(map(of_a_trace, consts)):
            known.keep(key, found)
    return found


def _traced(fun: Callable, key: tuple, *args, **options) -> tuple[Jaxpr, Any]:
    """Call `trace_to_jaxpr`. The result is kept per function, unless a library has types whose values change."""
    known, key = caches.traces.of(fun), (*key, caches.context())
    found = known.get(key)
    if found is None:
        found = trace_to_jaxpr(*args, **options)
        if not objects.kinds and not any(map(of_a_trace, found[0].consts)):
            known.keep(key, found)
    return found


def without_references(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program without the references that it makes, unless it takes references."""
    prim = passes.primitive_of_references(jaxpr)
    if prim is None or any(v.aval.mutable for v in (*jaxpr.invars, *jaxpr.constvars)):
        return jaxpr
    return prim.pure(jaxpr)[0]


def of_a_trace(x: Any) -> bool:
    """Return whether a closed-over value belongs to a transformation, which it must not outlive."""
    return isinstance(x, Tracer) or getattr(x, "_trace", tracing.eval_trace) is not tracing.eval_trace


def described(fun: Callable[..., Any], in_tree: PyTreeDef, static: Sequence[int] = ()) -> DebugInfo:
    """Return names for messages about `fun`. They do not keep it alive: the cache of its program must not."""
    code = plain_code(fun)
    try:
        alive = weakref.ref(fun) if code is None else lambda: code
    except TypeError:
        alive = lambda: fun
    return DebugInfo(
        "jit",
        functools.partial(source.describe_definition, *source.definition(fun)),
        lambda: None if alive() is None else tuple(leaf_names(alive(), in_tree, static)),
    )


def function_name(fun: Callable[..., Any]) -> str:
    """Return the name of a user's function in messages and jaxprs."""
    return (
        getattr(fun, "__name__", None) or getattr(getattr(fun, "func", None), "__name__", None) or "<unnamed function>"
    )


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, ...]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """Return a function that returns the jaxpr of `fun` for its arguments.

    Args:
      fun: takes and returns pytrees of arrays.
      static_argnums: positions of arguments that are passed to `fun` without tracing.
      axis_env: pairs ``(axis name, size)`` in scope while tracing.
      return_shape: also return a pytree of `ShapeDtypeStruct` like the result.

    Returns:
      A function with the signature of `fun`; its arguments may be arrays or anything with
      ``shape`` and ``dtype``.

    Examples:

      >>> jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.)
      { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }
    """
    if not callable(fun):
        raise TypeError(f"make_jaxpr expects a function, got {fun!r} of type {type(fun)}")
    signature = Signature(fun, None if static_argnums == () else static_argnums)

    def jaxpr_of(*args, **kwargs):
        dynamic, kwargs, static_key = signature.split(args, kwargs)
        call = signature.bound(fun, static_key)
        leaves, in_tree = pytree.tree_flatten((dynamic, kwargs))
        with tracing.extend_axes(dict(axis_env or ())):
            given = tuple([type_or_object(x) for x in leaves])
            info = described(fun, in_tree, sorted(signature.static_positions(len(args))))
            key = (make_jaxpr, in_tree, given, static_key)
            jaxpr, out_tree = _traced(
                fun, key, *objects.with_held(flat_fun(call, in_tree), given), info, kind=OpenTrace
            )
        if not return_shape:
            return jaxpr
        return jaxpr, pytree.tree_unflatten(out_tree, map(avals.struct_of, jaxpr.out_avals))

    jaxpr_of.__name__ = f"make_jaxpr({function_name(fun)})"
    return jaxpr_of


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the shapes and dtypes of ``fun(*args, **kwargs)`` without computing it.

    Args:
      fun: the function.
      *args, **kwargs: its arguments: pytrees of arrays, or of `ShapeDtypeStruct`.

    Returns:
      A pytree like the result, of `ShapeDtypeStruct`.

    Examples:

      >>> jax.eval_shape(lambda x, y: (x @ y, x.sum()), jnp.ones((2, 3)), jnp.ones((3, 4)))
      (ShapeDtypeStruct(shape=(2, 4), dtype=float32), ShapeDtypeStruct(shape=(), dtype=float32))
    """
    if not callable(fun):
        raise TypeError(f"eval_shape expects a function, got {fun!r} of type {type(fun)}")
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    types = tuple([type_or_object(x) for x in leaves])
    flat, opened = objects.with_held(flat_fun(fun, in_tree), types)
    program, out_tree = _traced(fun, (eval_shape, in_tree, types), flat, opened, types_only=not observers)
    return pytree.tree_unflatten(out_tree, map(avals.struct_of, program.out_avals))


__all__ = [
    "StagedTracer",
    "StagingTrace",
    "close_over",
    "eval_shape",
    "flat_fun",
    "function_name",
    "make_jaxpr",
    "program_of",
    "stage_rules",
    "trace_to_jaxpr",
]
