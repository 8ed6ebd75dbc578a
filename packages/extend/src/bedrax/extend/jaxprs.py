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
from bedrax.extend import linear_util
from bedrax.lax.choices import refuse_options
from bedrax.lax.primitives.custom_rules import FunctionWithJVP, pushed


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

    Examples:

      >>> from jax.extend import core

      >>> program = jax.make_jaxpr(lambda x: 2 * jnp.sin(x))(1.)
      >>> first, *rest = program.eqns
      >>> core.Jaxpr([], program.invars, first.outvars, [first])  # without what follows
      { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
      >>> isinstance(program.jaxpr, core.Jaxpr)
      True
    """

    target: type = ir.Jaxpr
    make: staticmethod[..., Any] = staticmethod(_program)


class ClosedJaxpr(metaclass=_ViewOf):
    """A program with the values of its constants, one for each of its constvars: what `jax.make_jaxpr` makes.

    The arguments are those of `Jaxpr`.

    Examples:

      >>> from jax.extend import core

      >>> scalar = jax.core.ShapedArray((), jnp.float32)
      >>> weight, x, out = core.Var(scalar), core.Var(scalar), core.Var(scalar)
      >>> open_ = core.Jaxpr([weight], [x], [out], [core.new_jaxpr_eqn([weight, x], [out], lax.mul_p, {})])
      >>> tripled = core.ClosedJaxpr(open_, [3.])
      >>> core.jaxpr_as_fun(tripled)(jnp.float32(7.))
      [Array(21., dtype=float32)]
    """

    target: type = ir.Jaxpr
    make: staticmethod[..., Any] = staticmethod(_program)


class JaxprEqn(metaclass=_ViewOf):
    """An equation, with the operands first: ``outvars = primitive[params] invars``.

    Examples:

      >>> from jax.extend import core

      >>> program = jax.make_jaxpr(lambda x: jnp.sum(x, axis=0))(jnp.ones((2, 3)))
      >>> (eqn,) = program.eqns
      >>> isinstance(eqn, core.JaxprEqn), eqn.primitive, eqn.params["axes"]
      (True, reduce_sum, (0,))
      >>> core.JaxprEqn(eqn.invars, eqn.outvars, lax.reduce_max_p, eqn.params)
      a:f32[3] = reduce_max[axes=(0,)] b
    """

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


class JaxprEqnContext:
    """The options under which an equation is bound, as libraries pass them to `JaxprEqn`.

    It is empty: here such options are params of the equation, or belong to its `source_info`.

    Examples:

      >>> from jax._src.core import JaxprEqnContext
      >>> from jax.extend import core

      >>> (eqn,) = jax.make_jaxpr(jnp.sin)(1.).eqns
      >>> core.JaxprEqn(eqn.invars, eqn.outvars, lax.neg_p, {}, eqn.effects, eqn.source_info, JaxprEqnContext())
      a:f32[] = neg b
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "JaxprEqnContext()"


def new_jaxpr_eqn(
    invars: Any,
    outvars: Any,
    primitive: Any,
    params: dict[str, Any],
    effects: Any = ir.no_effects,
    source_info: Any = None,
    ctx: Any = None,
) -> ir.Eqn:
    """Return an equation ``outvars = primitive[params] invars``.

    Args:
      invars: the operands, each a `Var` or a `Literal`.
      outvars: the results, each a `Var`.
      primitive: the primitive of the operation.
      params: its static parameters, a dictionary.
      effects: the set of its effects.
      source_info: the source location, such as that of a replaced equation; default: the line of the caller.
      ctx: accepted for compatibility; no effect.

    Examples:

      >>> from jax.extend import core

      >>> program = jax.make_jaxpr(jnp.sin)(1.)
      >>> (eqn,) = program.eqns
      >>> other = core.new_jaxpr_eqn(eqn.invars, eqn.outvars, lax.cos_p, eqn.params, eqn.effects, eqn.source_info)
      >>> program.replace(eqns=[other])
      { lambda ; a:f32[]. let b:f32[] = cos a in (b,) }
    """
    return JaxprEqn.make(invars, outvars, primitive, params, effects, source_info, ctx)


def eval_jaxpr(jaxpr: ir.Jaxpr, consts: Any, *args: Any, propagate_source_info: bool = True) -> list[Any]:
    """Run a program under the current trace: see `bedrax.core.ir.eval_jaxpr`.

    Args:
      jaxpr: the program.
      consts: the values of its constants.
      args: its arguments.
      propagate_source_info: whether recorded equations have the locations of the program instead of that of the caller.

    Examples:

      >>> program = jax.make_jaxpr(lambda x: jnp.sin(x) + 1)(0.)
      >>> jax.core.eval_jaxpr(program.jaxpr, program.consts, 0.)
      [Array(1., dtype=float32, weak_type=True)]
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
    """A primitive with several results. Its `call_primitive` states that it applies a function; interpreters of programs
    expect the function's program in the parameter `call_jaxpr`.

    It has no rules except those that are registered: ``def_impl(call_impl)`` is one for evaluation.

    Examples:

      >>> from jax.extend import core

      >>> from jax.extend.linear_util import wrap_init
      >>> watched_p = core.CallPrimitive("watched")
      >>> _ = watched_p.def_impl(core.call_impl)
      >>> watched_p.bind(wrap_init(lambda x, y: [x + y, x * y]), 3., 4.)
      [7.0, 12.0]
      >>> watched_p.call_primitive, lax.add_p.call_primitive  # interpreters ask before they descend
      (True, False)
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, multiple_results=True)
        self.call_primitive = True


def call_impl(f: Any, *args: Any, **params: Any) -> list[Any]:
    """Return ``f(*args)``.

    Args:
      f: a `WrappedFun` (`jax.extend.linear_util`), or a function.
      args: its arguments.
      params: parameters that describe the call, such as its name; no effect.

    Examples:

      >>> from jax.extend import core

      >>> from jax.extend.linear_util import wrap_init
      >>> core.call_impl(wrap_init(lambda x, y: [x + y, x * y]), 3, 4, name="both")
      [7, 12]
    """
    return getattr(f, "call_wrapped", f)(*args)


def gensym() -> Callable[[Any], ir.Var]:
    """Returns a function that makes new variables of given types (``jax.core.ShapedArray``). Printing names them.

    Examples:

      >>> from jax.extend import core

      >>> newvar = core.gensym()
      >>> vector = jax.core.ShapedArray((3,), jnp.float32)
      >>> x, y, z = newvar(vector), newvar(vector), newvar(vector)
      >>> eqns = [core.new_jaxpr_eqn([x], [y], lax.neg_p, {}), core.new_jaxpr_eqn([y], [z], lax.abs_p, {})]
      >>> core.Jaxpr([], [x], [z], eqns)
      { lambda ; a:f32[3]. let b:f32[3] = neg a; c:f32[3] = abs b in (c,) }
    """
    return ir.Var


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[ir.Jaxpr]:
    """The programs in an equation's params, also in tuples and lists, but not those inside these programs.

    Examples:

      >>> from jax.extend import core

      >>> program = jax.make_jaxpr(lambda n, x: lax.switch(n, [lax.sin, lax.cos, lax.exp], x))(0, 1.)
      >>> for branch in core.jaxprs_in_params(program.eqns[-1].params):
      ...     print(branch.eqns[0].primitive)
      sin
      cos
      exp
    """
    for value in params.values():
        yield from (v for v in (value if isinstance(value, tuple | list) else (value,)) if type(v) is ir.Jaxpr)


def subjaxprs(jaxpr: ir.Jaxpr) -> Iterator[ir.Jaxpr]:
    """The programs in a program's equations, but not those inside these programs.

    Examples:

      >>> from jax.extend import core

      >>> program = jax.make_jaxpr(lambda xs: lax.map(jnp.sin, xs))(jnp.ones(3))
      >>> [inner.eqns[0].primitive.name for inner in core.subjaxprs(program.jaxpr)]
      ['sin']
    """
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def mapped_aval(size: Any, axis: int | None, aval: Any) -> Any:
    """Return the type of one element of a batch.

    Args:
      size: the number of elements of the batch.
      axis: the axis of the batch; None: `aval` is the type of the element (it is not mapped, or is not an array).
      aval: the type of the batch.

    Raises:
      ValueError: the batch has another size.

    Examples:

      >>> from jax.extend import core

      >>> core.mapped_aval(4, 1, jax.core.ShapedArray((3, 4), jnp.float32))
      ShapedArray(float32[3])
      >>> core.mapped_aval(4, None, jax.core.ShapedArray((3, 4), jnp.float32))
      ShapedArray(float32[3,4])
    """
    if axis is not None and aval.is_array and aval.shape[axis] != size:
        raise ValueError(f"mapped_aval: {aval} has {aval.shape[axis]} elements along axis {axis}, not {size}")
    return batching.mapped_aval(aval, axis)


def unmapped_aval(size: Any, axis: int | None, aval: Any, explicit_mesh_axis: Any = None) -> Any:
    """Return the type of a batch.

    Args:
      size: the number of elements of the batch.
      axis: the position of the new axis; None: the result is `aval` (it is not mapped, or is not an array).
      aval: the type of an element.
      explicit_mesh_axis: only None.

    Raises:
      NotImplementedError: `explicit_mesh_axis` was given.

    Examples:

      >>> from jax.extend import core

      >>> core.unmapped_aval(5, 1, jax.core.ShapedArray((3, 4), jnp.float32))
      ShapedArray(float32[3,5,4])
    """
    refuse_options("unmapped_aval", explicit_mesh_axis=explicit_mesh_axis)
    return batching.unmapped_aval(size, axis, aval)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents for a dtype of values: the same for floats and complex numbers, else `float0`.

    Args:
      primal_dtype: a dtype, or an object that NumPy accepts as one (``jnp.float32``, ``"bfloat16"``). An extended dtype
        defines its own.

    Examples:

      >>> from jax.extend import core

      >>> core.primal_dtype_to_tangent_dtype(np.dtype("float16"))
      dtype('float16')
      >>> core.primal_dtype_to_tangent_dtype(np.dtype("int32")) == jax.dtypes.float0
      True
    """
    dtype = dtypes.as_dtype(primal_dtype)
    return dtype if dtypes.is_inexact(dtype) else getattr(dtype, "tangent_dtype", dtypes.float0)


def valid_jaxtype(x: Any) -> bool:
    """Whether a primitive accepts `x`: arrays, scalars and tracers, but no containers of them.

    Examples:

      >>> [jax.core.valid_jaxtype(x) for x in (jnp.ones(2), 3, np.float16(1), "text", [1, 2])]
      [True, True, True, False, False]
    """
    return avals.is_valid_value(x)


array_types: Final = frozenset({np.ndarray, Array})
no_effects: Final = ir.no_effects


def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """The value of an object that may be a tracer, converted by `force` (e.g. ``int``).

    Args:
      force: a conversion, e.g. ``int``; None leaves the value as it is.
      val: the object.
      context: an explanation for the error.

    Raises:
      ConcretizationTypeError: the value is traced, so it is unknown.

    Examples:

      >>> jax.core.concrete_or_error(int, jnp.array(3))
      3
      >>> @jax.jit
      ... def f(x):
      ...     return jax.core.concrete_or_error(int, x, "it is the length of a list")
      ...
      >>> try:
      ...     f(3)
      ... except jax.errors.ConcretizationTypeError as error:
      ...     print("it is the length of a list" in str(error))
      True
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
    """Context manager: a trace (or None: evaluation) is the current one of the entering thread.

    Examples:

      >>> from jax.extend import core

      >>> def f(x):
      ...     with core.set_current_trace(None):  # what follows runs, rather than being recorded
      ...         table = jnp.arange(4) ** 2
      ...     return x * table
      ...
      >>> jax.make_jaxpr(f)(jnp.ones(4, jnp.int32))
      { lambda a:i32[4]; b:i32[4]. let c:i32[4] = mul b a in (c,) }
    """

    def __init__(self, trace: Any, check_leaks: bool = False) -> None:
        refuse_options("set_current_trace", check_leaks=check_leaks)
        self.trace: Any = trace if trace is not None else tracing.eval_trace

    def __enter__(self) -> Any:
        note_entered(self, tracing.current.trace)
        tracing.current.trace = self.trace
        return self.trace

    def __exit__(self, *_: Any) -> None:
        tracing.current.trace = end_entered(self)


class take_current_trace:
    """Context manager: returns the current trace of the entering thread; inside, evaluation is current.

    Examples:

      >>> from jax.extend import core

      >>> def f(x):
      ...     with core.take_current_trace() as trace:  # evaluation takes its place
      ...         print(jnp.arange(3) + 1)
      ...         with core.set_current_trace(trace):
      ...             return x + 1
      ...
      >>> jax.make_jaxpr(f)(1.)
      [1 2 3]
      { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }
    """

    def __enter__(self) -> Any:
        saved = tracing.current.trace
        note_entered(self, saved)
        tracing.current.trace = tracing.eval_trace
        return saved

    def __exit__(self, *_: Any) -> None:
        tracing.current.trace = end_entered(self)


def find_top_trace(_: Any) -> tracing.Trace:
    """The current trace.

    Examples:

      >>> def f(x):
      ...     return jax.core.find_top_trace([x]) is x._trace
      ...
      >>> traces = []
      >>> _ = jax.make_jaxpr(lambda x: traces.append(f(x)))(1.)
      >>> traces
      [True]
    """
    return tracing.current.trace


class _AnyTrace(type):
    def __instancecheck__(cls, x: object) -> bool:
        return type.__instancecheck__(cls, x) or (cls is Trace and isinstance(x, tracing.Trace))


class Trace(tracing.Trace, metaclass=_AnyTrace):
    """Base class for the traces of libraries (Quax). They define `process_primitive`, and set their parent in it.

    They may also define ``process_custom_jvp_call(primitive, fun, jvp, tracers, *, symbolic_zeros)``. It gets two
    wrapped functions: `fun` of the operands, and `jvp` of operands and tangents, which returns results and tangents.
    Without it, `process_primitive` gets the call as one operation.

    Examples:

      >>> seen = []
      >>> _ = jax.grad(lambda x: (seen.append(x._trace), x * x)[1])(3.)
      >>> isinstance(seen[0], jax.core.Trace), jax.jit(lambda x: isinstance(x._trace, jax.core.Trace))(1.)
      (True, Array(True, dtype=bool))
    """

    __slots__ = ()
    process_custom_jvp_call: Callable[..., list[Any]]  # of subclasses

    def process(self, prim: tracing.Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Process one operation. Inside, evaluation is current."""
        if type(prim) is FunctionWithJVP and hasattr(self, "process_custom_jvp_call"):
            fun, jvp = (f.call_wrapped for f in prim.get_bind_params(params)["subfuns"])
            return self._process_functions(prim, fun, jvp, args, params["rule"].symbolic_zeros)
        if prim.further_params is not None:  # libraries unpack the params into arguments: all of them must be there
            params = params | prim.further_params(params)
        with tracing.set_trace(tracing.eval_trace):
            return self.process_primitive(prim, args, params)

    def call(self, prim: Any, rule: Any, args: Sequence[Any]) -> list[Any]:
        """Apply a function with rules of its own that is not traced yet."""
        if type(prim) is FunctionWithJVP and hasattr(self, "process_custom_jvp_call"):
            return self._process_functions(prim, rule.primal, pushed(rule), args, rule.symbolic_zeros)
        return super().call(prim, rule, args)

    def _process_functions(self, prim, fun, jvp, args, symbolic_zeros) -> list[Any]:
        wrapped = linear_util.wrap_init(fun), linear_util.wrap_init(jvp)
        with tracing.set_trace(tracing.eval_trace):
            return self.process_custom_jvp_call(prim, *wrapped, args, symbolic_zeros=symbolic_zeros)

    def process_primitive(self, primitive: tracing.Primitive, tracers: Any, params: dict[str, Any]) -> Any:
        """The same as `process` of the system's traces."""
        raise NotImplementedError(f"{type(self).__name__} does not define process_primitive")

    def full_raise(self, x: Any) -> Any:
        """`x`: a trace uses values of outer traces unchanged."""
        return x


class TraceTag:
    """Identity token of a trace. Tracers carry the token of their trace. Compares by identity.

    Examples:

      >>> from jax.extend import core

      >>> mine, yours = core.TraceTag(), core.TraceTag()
      >>> found = {mine: "values of mine", yours: "values of yours"}
      >>> mine == yours, found[mine]
      (False, 'values of mine')
    """


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether a named axis is in scope, as inside ``jax.vmap(f, axis_name="i")``.

    Examples:

      >>> from jax.extend import core

      >>> inside = []
      >>> _ = jax.vmap(lambda x: inside.append(core.nonempty_axis_env_DO_NOT_USE()), axis_name="i")(jnp.ones(2))
      >>> inside, core.nonempty_axis_env_DO_NOT_USE()
      ([True], False)
    """
    return bool(tracing.current.axes)


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes in scope, outermost first.

    Examples:

      >>> from jax.extend import core

      >>> def f(x, y):
      ...     print(core.unsafe_get_axis_names_DO_NOT_USE())
      ...
      >>> jax.vmap(jax.vmap(f, (None, 0), axis_name="j"), (0, None), axis_name="i")(jnp.ones(2), jnp.ones(3))
      ['i', 'j']
    """
    return list(tracing.current.axes)


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a program is recorded now: by `jax.jit`, `jax.make_jaxpr`, or for a loop or branch.

    Examples:

      >>> from jax.extend import core

      >>> def f(x):
      ...     print(core.unsafe_am_i_under_a_jit_DO_NOT_USE())
      ...
      >>> f(1.), jax.jit(f)(1.), jax.vmap(f)(jnp.ones(2))
      False
      True
      False
      (None, None, None)
    """
    return _under("StagingTrace")


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a function is batched now: whether `jax.vmap` is among the current transformations.

    Examples:

      >>> from jax.extend import core

      >>> def f(x):
      ...     print(core.unsafe_am_i_under_a_vmap_DO_NOT_USE())
      ...
      >>> f(1.), jax.jit(f)(1.), jax.vmap(f)(jnp.ones(2))
      False
      False
      True
      (None, None, None)
    """
    return _under("BatchTrace")


def _under(kind: str) -> bool:
    trace: Any = tracing.current.trace
    while trace is not None:
        if any(c.__name__ == kind for c in type(trace).__mro__):
            return True
        trace = trace.parent
    return False


get_aval = aval_of
