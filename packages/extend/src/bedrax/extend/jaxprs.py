"""Construction and parts of programs, in the form that libraries use.

A `Jaxpr` here holds its constants, so it is the `Jaxpr` and the `ClosedJaxpr` of libraries. The
two names below are views of that class: they construct it from the arguments that libraries
pass, and ``isinstance`` tests for it.

Needed by Equinox, diffrax, Optimistix (`Jaxpr`, `ClosedJaxpr`, `mapped_aval`, `find_top_trace`), dm-haiku (`JaxprEqn`,
`set_current_trace`, `take_current_trace`, `TraceTag`), distrax and NumPyro (`Literal`, `valid_jaxtype`); the names
that end in ``DO_NOT_USE`` are upstream's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from bedrax.batching import trace as batching
from bedrax.core import avals, dtypes, ir, tracing
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.context import end_entered, note_entered
from bedrax.core.errors import ConcretizationTypeError
from bedrax.core.signatures import signature_of
from bedrax.core.source import user_frame
from bedrax.extend.unsupported import refuse_options


class _ViewOf(type):
    """Metaclass of another name of a class, with another constructor."""

    target: type

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, cls.target)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls.target)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.make(*args, **kwargs)

    @property
    def __signature__(cls) -> Any:
        return signature_of(cls.make)


def _program(
    constvars: Any = None,
    invars: Sequence[Any] | None = None,
    outvars: Sequence[Any] | None = None,
    eqns: Sequence[Any] | None = None,
    effects: Any = ir.no_effects,
    debug_info: Any = None,
    is_high: bool = False,
    consts: Sequence[Any] | None = None,
    *,
    jaxpr: ir.Jaxpr | None = None,
) -> ir.Jaxpr:
    refuse_options("Jaxpr", is_high=is_high)
    given = constvars if jaxpr is None else jaxpr
    if isinstance(given, ir.Jaxpr):  # then the second argument is the constants
        values = invars if consts is None else consts
        if outvars is not None or eqns is not None or (values is not None and len(values) != len(given.constvars)):
            raise TypeError(
                f"a Jaxpr of a Jaxpr takes a value for each of its {len(given.constvars)} constvars and nothing else, got"
                f" {values}"
            )
        return given if values is None else given.replace(consts=list(values), effects=given.effects)
    if given is None or invars is None or outvars is None or eqns is None:
        raise TypeError("a Jaxpr takes constvars, invars, outvars and eqns, or a Jaxpr and the values of its constants")
    # Until the constants are given, the constvars are bound to nothing.
    values = [None] * len(given) if consts is None else list(consts)
    return ir.Jaxpr(invars, outvars, eqns, given, values, frozenset(effects), debug_info)


class Jaxpr(metaclass=_ViewOf):
    """A program. Libraries pass its constvars first; then it has no constants.

    Args:
      constvars: a list of `Var`, of constants; or a program, whose constants `invars` or `consts` are.
      invars: a list of `Var`, of arguments.
      outvars: the results: `Var` or `Literal`.
      eqns: a list of `JaxprEqn`.
      effects: of all equations.
      debug_info: a `DebugInfo`, or None.
      is_high: False.
      consts: values of the constvars, or None.

    Raises:
      TypeError: if there are other arguments, or not a constant for each of the constvars.
      NotImplementedError: if `is_high` is true.
    """

    target: type = ir.Jaxpr
    make: staticmethod[..., Any] = staticmethod(_program)


class ClosedJaxpr(metaclass=_ViewOf):
    """A program with the values of its constants, one for each of its constvars: what `jax.make_jaxpr` makes.

    The arguments are those of `Jaxpr`.
    """

    target: type = ir.Jaxpr
    make: staticmethod[..., Any] = staticmethod(_program)


class JaxprEqn(metaclass=_ViewOf):
    """An equation, with the operands first: ``outvars = primitive[params] invars``."""

    target: type = ir.Eqn

    @staticmethod
    def make(
        invars: Any,
        outvars: Any,
        primitive: Any,
        params: dict[str, Any],
        effs: Any = ir.no_effects,
        source_info: Any = None,
        ctx: Any = None,
    ) -> ir.Eqn:
        """An equation.

        Args:
          invars, outvars: lists of `Var` (and, of operands, `Literal`).
          primitive, params: the operation, and its static parameters (a dict).
          effs: its effects.
          source_info: the source location, such as that of a replaced equation. Default: the line of the caller.
          ctx: accepted for compatibility.
        """
        where = source_info if isinstance(source_info, tuple) else user_frame()
        return ir.Eqn(primitive, invars, outvars, params, frozenset(effs), where)


def new_jaxpr_eqn(
    invars: Any,
    outvars: Any,
    primitive: Any,
    params: dict[str, Any],
    effects: Any = ir.no_effects,
    source_info: Any = None,
    ctx: Any = None,
) -> ir.Eqn:
    """An equation: see `JaxprEqn`, whose `effs` are the `effects` here."""
    return JaxprEqn.make(invars, outvars, primitive, params, effects, source_info, ctx)


def eval_jaxpr(jaxpr: ir.Jaxpr, consts: Any, *args: Any, propagate_source_info: bool = True) -> list[Any]:
    """Run a program under the current trace: see `bedrax.core.ir.eval_jaxpr`.

    Args:
      propagate_source_info: whether recorded equations have the locations of the program instead of that of the caller.
    """
    if propagate_source_info:
        return ir.eval_jaxpr(jaxpr, consts, *args)
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    read = lambda v: v.val if type(v) is ir.Literal else env[v]
    for eqn in jaxpr.eqns:
        out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    return [read(v) for v in jaxpr.outvars]


class CallPrimitive(tracing.Primitive):
    """A primitive with several results. Its `call_primitive` states that it applies a function.

    It has no rules except those that are registered: ``def_impl(call_impl)`` is one for evaluation.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, multiple_results=True)
        self.call_primitive = True


def call_impl(f: Any, *args: Any, **params: Any) -> list[Any]:
    """Apply a function, wrapped (`jax.extend.linear_util`) or not, to `args`. `params` only describe the call."""
    return getattr(f, "call_wrapped", f)(*args)


def gensym() -> Callable[[Any], ir.Var]:
    """Returns a function that makes new variables of given types (``jax.core.ShapedArray``). Printing names them."""
    return ir.Var


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[ir.Jaxpr]:
    """The programs in an equation's params, also in tuples and lists, but not those inside these programs."""
    for value in params.values():
        yield from (v for v in (value if isinstance(value, tuple | list) else (value,)) if type(v) is ir.Jaxpr)


def subjaxprs(jaxpr: ir.Jaxpr) -> Iterator[ir.Jaxpr]:
    """The programs in a program's equations, but not those inside these programs."""
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def mapped_aval(size: Any, axis: int | None, aval: Any) -> Any:
    """The type of one element of a batch of `size` along `axis` (None: not mapped, such as tokens).

    Raises:
      ValueError: the batch has another size.
    """
    if axis is not None and aval.is_array and aval.shape[axis] != size:
        raise ValueError(f"mapped_aval: {aval} has {aval.shape[axis]} elements along axis {axis}, not {size}")
    return batching.mapped_aval(aval, axis)


def unmapped_aval(size: Any, axis: int | None, aval: Any, explicit_mesh_axis: Any = None) -> Any:
    """The type of a batch: values of type `aval`, `size` of them along the new `axis` (None: it is not mapped).

    Raises:
      NotImplementedError: `explicit_mesh_axis` was given.
    """
    refuse_options("unmapped_aval", explicit_mesh_axis=explicit_mesh_axis)
    return batching.unmapped_aval(size, axis, aval)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents for a dtype of values: the same for floats and complex numbers, else `float0`.

    Args:
      primal_dtype: a dtype, or an object that NumPy accepts as one (``jnp.float32``, ``"bfloat16"``). An extended dtype
        defines its own.
    """
    dtype = dtypes.as_dtype(primal_dtype)
    return dtype if dtypes.is_inexact(dtype) else getattr(dtype, "tangent_dtype", dtypes.float0)


def valid_jaxtype(x: Any) -> bool:
    """Whether a primitive accepts `x`: arrays, scalars and tracers, but no containers of them."""
    return avals.is_valid_value(x)


array_types: Final = frozenset({np.ndarray, Array})
no_effects: Final = ir.no_effects


def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """The value of an object that may be a tracer, converted by `force` (e.g. ``int``).

    Raises:
      ConcretizationTypeError: the value is traced, so it is unknown.
    """
    force = force or (lambda x: x)
    if isinstance(val, tracing.Tracer):
        known = val.concrete()
        if known is None:
            raise ConcretizationTypeError(val, context)
        val = known
    return force(val)


def full_lower(val: Any) -> Any:
    """The value that a tracer stands for (by its method `full_lower`, if a library's tracer has one), or `val`."""
    lower = getattr(type(val), "full_lower", None) if isinstance(val, tracing.Tracer) else None
    return val if lower is None else lower(val)


class set_current_trace:
    """Context manager: a trace (or None: evaluation) is the current one of the entering thread."""

    def __init__(self, trace: Any, check_leaks: bool = False) -> None:
        refuse_options("set_current_trace", check_leaks=check_leaks)
        self.trace = trace if trace is not None else tracing.eval_trace

    def __enter__(self) -> Any:
        note_entered(self, tracing.current.trace)
        tracing.current.trace = self.trace
        return self.trace

    def __exit__(self, *_: Any) -> None:
        tracing.current.trace = end_entered(self)


class take_current_trace:
    """Context manager: returns the current trace of the entering thread; inside, evaluation is current."""

    def __enter__(self) -> Any:
        saved = tracing.current.trace
        note_entered(self, saved)
        tracing.current.trace = tracing.eval_trace
        return saved

    def __exit__(self, *_: Any) -> None:
        tracing.current.trace = end_entered(self)


def find_top_trace(_: Any) -> tracing.Trace:
    """The current trace."""
    return tracing.current.trace


class _AnyTrace(type):
    def __instancecheck__(cls, x: object) -> bool:
        return type.__instancecheck__(cls, x) or (cls is Trace and isinstance(x, tracing.Trace))


class Trace(tracing.Trace, metaclass=_AnyTrace):
    """Base class for the traces of libraries (Quax). They define `process_primitive`, and set their parent in it."""

    __slots__ = ()

    def process(self, prim: tracing.Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Process one operation. Inside, evaluation is current."""
        with tracing.set_trace(tracing.eval_trace):
            return self.process_primitive(prim, args, ir.described(prim, params))

    def process_primitive(self, primitive: tracing.Primitive, tracers: Any, params: dict[str, Any]) -> Any:
        """The same as `process` of the system's traces."""
        raise NotImplementedError(f"{type(self).__name__} does not define process_primitive")

    def full_raise(self, x: Any) -> Any:
        """`x`: a trace uses values of outer traces unchanged."""
        return x


class TraceTag:
    """Identity token of a trace. Tracers carry the token of their trace. Compares by identity."""


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether a named axis is in scope, as inside ``jax.vmap(f, axis_name="i")``."""
    return bool(tracing.current.axes)


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes in scope, outermost first."""
    return list(tracing.current.axes)


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a program is recorded now: by `jax.jit`, `jax.make_jaxpr`, or for a loop or branch."""
    return _under("StagingTrace")


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a function is batched now: whether `jax.vmap` is among the current transformations."""
    return _under("BatchTrace")


def _under(kind: str) -> bool:
    trace: Any = tracing.current.trace
    while trace is not None:
        if any(c.__name__ == kind for c in type(trace).__mro__):
            return True
        trace = trace.parent
    return False


get_aval = aval_of
