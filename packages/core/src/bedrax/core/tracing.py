"""Tracing: primitives, traces, tracers.

There is one current trace per thread. Binding a primitive calls its `process`. A tracer
has a reference to its trace. A transformation makes its trace current while it runs
the user's function, and makes the *parent* current while it runs a rule. So nested
transformations are nested Python calls, and there is no search for an interpreter.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import operator
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from marshal import dumps
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from bedrax.core import array, avals, config, errors, executors, offers
from bedrax.core.avals import AbstractValue, aval_functions, aval_of, interned
from bedrax.core.codes import coded
from bedrax.core.public import has_interface, public
from bedrax.core.tables import effect_rules, eval_rules, named_axes, pure_shapes, shape_rules, varying_rules
from bedrax.core.typing import ArrayLike, F


class Trace:
    """An interpreter: its method `process` interprets one operation.

    Attributes:
      parent: the trace that was current when this one started.
      alive: false once the transformation has ended; a tracer of a dead trace has leaked.
      sees_constants: whether it processes operations on values of no trace, too. If not, a backend may dispatch a
        call of a jitted function on such values without the kernel.
      evaluates: whether operations on values of no trace are evaluated: neither this trace nor an enclosing one
        follows or records them.
    """

    __slots__ = ("__weakref__", "alive", "parent")
    sees_constants = True
    evaluates = False

    def __init__(self, parent: Trace | None = None) -> None:
        self.parent: Trace | None = parent
        self.alive: bool = True

    def process(self, prim: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Interpret one operation.

        This trace is current at the call. The method runs rules with the parent current, and restores this
        trace before it returns.

        Args:
          prim: the primitive.
          args: the operands: tracers of this trace, tracers of enclosing ones, and values of no trace.
          params: hashable metadata by name.

        Returns:
          A value, or a list of values if the primitive has `multiple_results`. Values that depend on tracers of
          this trace are tracers of this trace.
        """
        raise NotImplementedError

    def call(self, prim: Any, rule: Any, args: Sequence[Any]) -> list[Any]:
        """Apply a function with custom rules that is not traced yet.

        A trace overrides this to call the function or its rules directly. The default traces a program.

        Args:
          prim: has a method ``stage(rule, args)``: it traces the function and binds the program.
          rule: has a method ``primal(*args)``, the function.
          args: the leaves of its arguments.

        Returns:
          The leaves of its result.
        """
        return prim.stage(rule, args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


_own_evaluation = dict.get  # no search in the column: such primitives register when they are defined


class EvalTrace(Trace):
    """The lowest trace: the executor evaluates operations eagerly."""

    __slots__ = ()
    evaluates = True

    def __reduce__(self) -> str:
        return "eval_trace"

    def process(
        self, prim: Primitive, args: tuple[ArrayLike, ...], params: dict[str, Any]
    ) -> list[ArrayLike] | ArrayLike:
        """Evaluate by the primitive's own function if it has one, else by the executor."""
        if executors.ready and (ready := executors.ready.get(prim)):
            try:
                run = ready.get(dumps(params, 2) if params else None)
            except ValueError:
                run = None
            if run is not None:
                return run(*args)
        reports = executors.observers and [observe(prim, args, params) for observe in executors.observers]
        impl = _own_evaluation(eval_rules, prim)
        out = impl(*args, **params) if impl else (executors.active or executors.get()).apply(prim, args, params)
        if reports:
            for report in filter(None, reports):
                out = report(out)
        return out

    def call(self, prim: Primitive, rule: Any, args: Any) -> Any:
        """Run the function."""
        return rule.primal(*args)


eval_trace: Final = EvalTrace(None)


class Mutable:
    """The base class of values that operations can write to (references, in `bedrax.state`).

    Such a value cannot be an operand of an operation on arrays. Its class defines how an operation with such a value is
    processed. The methods get all operands; one of them is the value whose method is called.
    """

    __slots__ = ()

    @staticmethod
    def operation(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any] | None:
        """Return the results of an operation with several results; None if it is processed like any other."""
        raise NotImplementedError

    @staticmethod
    def inputs(
        trace: Trace, args: Sequence[Any], chosen: Sequence[bool], take: Callable[..., Any], give: Callable[..., Any]
    ) -> contextlib.AbstractContextManager[list[Any]]:
        """See `inputs_of`."""
        raise NotImplementedError

    @staticmethod
    def parts(prim: Primitive, rule: Any, args: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        """Return a function with rules, and its arguments, in which other values replace views of mutable values."""
        raise NotImplementedError


def mutable_among(values: Sequence[Any]) -> Mutable | None:
    """Return the first mutable value, or None."""
    for x in values:
        if isinstance(x, Mutable):
            return x
    return None


def inputs_of(
    trace: Trace, args: Sequence[Any], chosen: Sequence[bool], take: Callable[..., Any], give: Callable[..., Any]
) -> Any:
    """Context manager: the arguments that a transformation passes to a function.

    A reference becomes a reference of `trace` that holds ``take(i, value)``. At the end, ``give(i, value)`` of its
    contents is written back.

    Args:
      trace: that of the transformation, entered inside.
      chosen: a flag per argument: whether it is transformed. The function gets the others unchanged.
      take: ``(position, value) -> value of the trace``.
      give: ``(position, value of the trace) -> value``.
    """
    mutable = mutable_among(args)
    if mutable is not None:
        return mutable.inputs(trace, args, chosen, take, give)
    return contextlib.nullcontext([take(i, x) if c else x for i, (x, c) in enumerate(zip(args, chosen, strict=True))])


class _Current(threading.local):
    def __reduce__(self) -> str:
        return "current"

    # functions that close over it are pickled with the name, not with a state
    trace: Trace = eval_trace
    axes: dict[Any, Any] = {}  # axis name -> size, of enclosing vmaps and shard_maps; never mutated
    varying: frozenset[Any] = frozenset()  # the axes for which types record whether values vary
    names: tuple[str, ...] = ()  # the enclosing named_scopes
    shared: bool = False  # whether the recorded program serves calls in several lines, so that it has no line
    watched: list[Any] | None = None  # weak references to the traces entered, while leaks are checked


current: Final = _Current()
varies: bool = False  # whether any type has recorded varying axes; until then, threads are not checked


class set_trace:
    """Context manager: make `trace`, whose transformation is running, the current one."""

    __slots__ = ("saved", "trace")
    saved: Trace

    def __init__(self, trace: Trace) -> None:
        self.trace: Trace = trace

    def __enter__(self) -> Any:
        self.saved = current.trace
        current.trace = self.trace
        return self.trace

    def __exit__(self, *_: Any) -> None:
        current.trace = self.saved


class entered:
    """Context manager: the run of a transformation. Its `trace` is current inside, and dead afterwards.

    Names are in force inside, if they are given.

    Every new trace is entered this way. A backend that dispatches calls of jitted functions is notified that the
    kernel must see them; `checks_leaks` gets the trace to watch.
    """

    __slots__ = ("names", "notice", "outside", "saved", "seen", "trace")
    saved: Trace
    seen: Any

    def __init__(self, trace: Trace, names: tuple[Any, ...] | None = None) -> None:
        self.trace: Trace = trace
        self.names: tuple[Any, ...] | None = names
        self.outside: tuple[Any, ...] | None = None
        self.notice: Callable[..., Any] | None = executors.must_see_calls if trace.sees_constants else None

    def __enter__(self) -> Any:
        trace = self.trace
        if current.watched is not None:
            current.watched.append(weakref.ref(trace))
        self.saved = current.trace
        self.seen = None if self.saved is eval_trace and not current.axes else True
        try:
            if self.notice is not None:
                self.seen = self.notice(True)
            if self.names is not None:
                self.outside = current.names
                current.names = self.names
            current.trace = trace
            return trace
        except BaseException:  # interrupted: the block is not entered, and __exit__ is not called
            self._end()
            raise

    def _end(self):
        current.trace = self.saved
        if self.outside is not None:
            current.names = self.outside
        self.trace.alive = False
        if self.notice is not None:
            self.notice(self.seen)

    def __exit__(self, *_: Any) -> None:
        try:
            current.trace = self.saved
            if self.outside is not None:
                current.names = self.outside
            self.trace.alive = False
            if self.notice is not None:
                self.notice(self.seen)
        except BaseException:
            self._end()
            raise


class extend_axes:
    """Context manager: axis names (and their sizes) are in scope.

    Args:
      varying: types record which values vary over these axes; see `cast_operands`.
    """

    __slots__ = ("new", "notice", "saved", "seen", "varying")
    saved: tuple[dict[Any, Any], frozenset[Any]]
    notice: Callable[..., Any] | None
    seen: Any

    def __init__(self, axes: dict[Any, Any], varying: bool = False) -> None:
        global varies
        varies = varies or varying
        self.new: dict[Any, Any] = axes
        self.varying: bool = varying

    def __enter__(self) -> Any:
        self.saved = current.axes, current.varying
        self.notice = executors.must_see_calls
        self.seen = None if current.trace is eval_trace and not current.axes else True
        own = frozenset(self.new)
        try:
            current.axes = {**current.axes, **self.new}
            current.varying = current.varying | own if self.varying else current.varying - own
            if self.notice is not None:
                self.seen = self.notice(True)
        except BaseException:  # as above
            self._end()
            raise

    def _end(self):
        current.axes, current.varying = self.saved
        if self.notice is not None:  # not a backend that was added since
            self.notice(self.seen)

    def __exit__(self, *_: Any) -> None:
        try:
            self._end()
        except BaseException:
            self._end()
            raise


class Position(int):
    """The size of a named axis whose index is a known value while the function runs, such as a core of a kernel.

    Attributes:
      index: that index, an int32 scalar; `jax.lax.axis_index` returns it.
    """

    index: Any

    def __new__(cls, size: int, index: Any) -> Position:
        new = super().__new__(cls, size)
        new.index = index
        return new

    # A result that is cached for one index is wrong for another index.
    if not TYPE_CHECKING:  # a function of C
        __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other


def axis_size(name: str) -> int:
    """Return the size of the named axis in scope.

    Raises:
      NameError: no enclosing transformation binds the name.
    """
    try:
        return current.axes[name]
    except (KeyError, TypeError):
        bound = ", ".join(map(repr, current.axes)) or "none"
        raise NameError(
            coded(
                "BX-AXIS-NAME",
                f"no axis named {name!r} is bound here; the bound axes: {bound}. Call the function under a vmap(...,"
                " axis_name=...) or shard_map that has it.",
            )
        ) from None


class Tracer(array.Array):
    """Represents an array while a transformation traces a function.

    Examples:

      >>> def f(x):
      ...     print(isinstance(x, jax.core.Tracer))
      ...     return x
      ...
      >>> _ = jax.jit(f)(1.)
      True
    """

    # No attribute of a tracer may have the name of a method of arrays (`trace` is one).
    __slots__ = ("_trace",)
    _trace: Trace
    aval: AbstractValue
    _defined_in: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Set the module of a class to one of `jax`, which has the class, too. Autoray finds the functions for a value by
        the package of its class; it would look for functions of `bedrax`."""
        super().__init_subclass__(**kwargs)
        cls._defined_in = cls.__module__
        if cls.__module__.startswith("bedrax.") and has_interface():
            cls.__module__ = "jax._src.core"

    def __init__(self, trace: Trace, aval: AbstractValue) -> None:
        """For the tracers of libraries, which have a place for `aval`; those of the system set what they need."""
        self._trace = trace
        self.aval = aval

    def concrete(self) -> Any | None:
        """The value, where the transformation knows one (eager differentiation), else None."""
        return None

    @property
    def inner(self) -> Any:
        """The value of the enclosing trace that this one stands for; None if this trace records the program."""
        return None

    def _require_concrete(self, error, *details):
        value = self.concrete()
        if value is None:
            raise error(self, *details)
        return value

    def __bool__(self) -> bool:
        return bool(self._require_concrete(errors.TracerBoolConversionError))

    def __int__(self) -> int:
        return int(self._require_concrete(errors.ConcretizationTypeError, _conversion("int")))

    def __float__(self) -> float:
        return float(self._require_concrete(errors.ConcretizationTypeError, _conversion("float")))

    def __complex__(self) -> complex:
        return complex(self._require_concrete(errors.ConcretizationTypeError, _conversion("complex")))

    def __index__(self) -> int:
        return self._require_concrete(errors.TracerIntegerConversionError).__index__()

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray[Any, Any]:
        raise errors.TracerArrayConversionError(self)

    def item(self, *args: Any) -> Any:
        """The element as a Python scalar; needs a concrete value."""
        return self._require_concrete(errors.ConcretizationTypeError, _conversion("item")).item(*args)

    def tolist(self) -> Any:
        """Nested lists; needs a concrete value."""
        return self._require_concrete(errors.ConcretizationTypeError, _conversion("tolist")).tolist()

    def block_until_ready(self) -> Any:
        """Return `self`: there is nothing to wait for."""
        return self

    def copy_to_host_async(self) -> None:
        """Do nothing: there is nothing to copy."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Name the class by the module that defines it. cloudpickle would write a copy of a class into the bytes if the
        module of its `__module__` is not loaded."""
        reduced = super().__reduce_ex__(protocol)
        if self._defined_in == type(self).__module__:
            return reduced
        _, _, *state = reduced
        return _blank, (self._defined_in, type(self).__qualname__), *state

    def __repr__(self) -> str:
        return f"Traced<{self.aval.short()}>with<{type(self._trace).__name__}>"

    def __format__(self, spec: str) -> str:
        try:
            return format(str(self), spec)
        except ValueError:
            raise errors.JAXTypeError(
                public(
                    f"the format {spec!r} is for a number, got a traced array of type {errors.shaped(self)}; print it with"
                    " jax.debug.print, which applies formats when the program runs"
                )
                + errors.origin_of(self)
            ) from None


def _blank(module: str, name: str) -> Tracer:
    """Return a tracer of a class, without attributes. pickle sets the attributes."""
    return object.__new__(operator.attrgetter(name)(importlib.import_module(module)))


def _conversion(name: str) -> str:
    if name in ("item", "tolist"):
        return f"The method {name} was called."
    return (
        f"{name}(x) makes a Python number of it. To change the dtype, write x.astype({name}) or"
        f" lax.convert_element_type(x, {name})."
    )


# `(value whose type has a sharding, axes) -> (value that varies over those axes over which it was a sum, other axes)`
cast_sums: Callable[..., Any] = lambda x, axes: (x, axes)
# `(prim, args, params) -> args`, where a whole operand that is combined with partial sums over manual axes becomes one
operands_in_parts: Callable[..., Any] = lambda prim, args, params: args


_types_of_plain: dict[Any, Any] = {}  # the types of results, by a primitive and the tokens of its operands' types
_primitives: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()  # (module, name) -> the primitive


def _module_being_imported() -> str:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return "" if frame is None else frame.f_globals.get("__name__", "")  # code run by `exec` may have no module


def _primitive(home: str, name: str) -> Primitive:
    importlib.import_module(home)
    return _primitives[home, name]


class Primitive:
    """An operation that transformations identify by name.

    Args:
      name: the name in printed jaxprs.
      family: the row of the matrix, i.e. the file name that its rules share; empty for a
        primitive whose owner registers every rule itself.
      multiple_results: whether binding returns a list.

    Examples:

      >>> from jax.extend import core

      >>> double_p = core.Primitive("double")
      >>> _ = double_p.def_impl(lambda x: 2 * x)
      >>> _ = double_p.def_abstract_eval(lambda x: x)
      >>> double_p.bind(jnp.array([1, 2]))
      Array([2, 4], dtype=int32)
      >>> jax.make_jaxpr(double_p.bind)(1.)
      { lambda ; a:f32[]. let b:f32[] = double a in (b,) }
    """

    __slots__ = ("__weakref__", "direct", "family", "home", "multiple_results", "name")
    if TYPE_CHECKING:
        takes_references: bool
        pure: Callable[[Any], tuple[Any, tuple[int, ...]]]
        impl: Any
        abstract_eval: Any
    else:
        takes_references = property(operator.attrgetter("multiple_results"))  # like primitives that hold programs
    of_references = False  # whether it makes, reads or writes references; then it has a method `pure`
    # ``further_params(params) -> dict``: params that libraries read, which follow from those that rules take.
    further_params: Callable[..., Any] | None = None

    def __init__(self, name: str, family: str = "", *, multiple_results: bool = False) -> None:
        self.name: str = name
        self.family: str = family
        self.multiple_results: bool = multiple_results
        self.direct: dict[type, Callable[..., Any]] = {}  # see `executors.note_direct`
        self.home: str = _module_being_imported()
        _primitives[self.home, name] = self

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive to array values; `params` are hashable metadata."""
        trace = current.trace
        try:
            if trace is eval_trace:
                ready = executors.ready.get(self)
                if ready:
                    try:
                        run = ready.get(dumps(params, 2) if params else None)
                    except ValueError:
                        run = None  # params that `marshal` does not support
                    if run is not None:
                        return run(*args)
            elif varies and current.varying:
                args = cast_operands(self, args, params)
            if self.multiple_results and (mutable := mutable_among(args)) is not None:  # it may hold programs
                done = mutable.operation(self, args, params)
                if done is not None:
                    return done
            return trace.process(self, args, params)
        except TypeError:
            form = offers.offered("calls of libraries", lambda *_: None)(self, args, params)
            if form is None:
                raise
        return self.bind(*form[0], **form[1])

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the params that `bind` takes for an equation with `params`: the same, in a new dictionary."""
        return dict(params)

    def result_types(self, types: Sequence[AbstractValue], params: dict[str, Any]) -> Any:
        """Return the types by the shape rule, and by the rule of the splits if types of operands have a split.

        Results that depend on the arguments alone are cached.
        """
        if self.home in pure_shapes and not (varies and current.varying):
            key: Any = None
            if not params:  # one type or two, mostly plain ones: their tokens are hashed without calls of Python
                first = types[0].token if types else None
                if first is not None and len(types) == 1:
                    key = self, first
                elif first is not None and len(types) == 2 and (second := types[1].token) is not None:
                    key = self, first, second
                known = _types_of_plain.get(key)
                if known is not None:
                    return known
            try:
                known = _known_types(self, tuple(types), **params)
                if known is not None:
                    if key is not None:
                        if len(_types_of_plain) > 8192:
                            _types_of_plain.clear()
                        _types_of_plain[key] = known
                    return known
            except TypeError:  # a parameter that cannot be hashed, or an error that the rule raises again
                pass
        for aval in types:
            if aval.mutable and not self.takes_references:
                what = f"got a reference of type {aval.short()}: read it first, ref[...]"
                raise TypeError(f"{self} is an operation on arrays, {what}")
            split = getattr(aval, "split", None)
            if split is not None:
                out = split.result_types(self, types, params, shape_rules[self](*types, **params))
                return _varying_types(self, types, params, out) if varies and current.varying else out
        if varies and current.varying:
            return _varying_types(self, types, params, shape_rules[self](*types, **params))
        return shape_rules[self](*types, **params)

    def abstract(self, rule: F) -> F:
        """Register the shape rule, ``rule(*avals, **params) -> aval`` or list of avals; a later call replaces it."""
        shape_rules.replace(self, rule)
        return rule

    def def_abstract_eval(self, rule: F) -> F:
        """Register the shape rule (the name that libraries use)."""
        return self.abstract(rule)

    def def_effectful_abstract_eval(self, rule: F) -> F:
        """Register a rule that returns ``(avals, effects)``."""
        self.abstract(lambda *avals, **params: rule(*avals, **params)[0])
        effect_rules.replace(self, lambda *avals, **params: rule(*avals, **params)[1])
        return rule

    def def_impl(self, impl: F) -> F:
        """Register a function that evaluates it eagerly, in place of the executor."""
        eval_rules.replace(self, impl)
        executors.ready.pop(self, None)
        self.direct.clear()
        return impl

    # The rules as attributes: equinox, optax and others read `impl` and `abstract_eval`, some set them.
    if not TYPE_CHECKING:
        impl = property(eval_rules.find, def_impl)
        abstract_eval = property(lambda self: shape_rules[self], lambda self, rule: shape_rules.replace(self, rule))

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.home or _primitives.get((self.home, self.name)) is not self:
            raise TypeError(f"the primitive {self.name} cannot be pickled: no module has made it while it was imported")
        return _primitive, (self.home, self.name)


def unary(prim: Primitive, takes: Collection[Any], convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that binds a primitive of one operand without params, in few steps of Python for a concrete one.

    Args:
      takes: the dtypes of the arrays that are operands as they are.
      convert: makes an operand of any other argument.
    """
    bind, direct = prim.bind, prim.direct

    def function(x, /):
        run = direct.get(type(x))
        if run is not None and current.trace is eval_trace and x.dtype in takes:
            return run(x)
        # of the type: an object with `__jax_array__` may forward all attributes of its array
        aval = x.aval if hasattr(type(x), "weak_type") else None
        return bind(x if aval is not None and aval.dtype in takes else convert(x))

    return function


def binary(prim: Primitive) -> Callable[[Any, Any], Any]:
    """Return `bind` of a primitive of two operands without params, in few steps of Python for concrete ones."""
    bind, direct = prim.bind, prim.direct

    def call(x, y):
        run = direct.get(type(x))
        if run is not None and current.trace is eval_trace and type(y) in direct:
            return run(x, y)
        return bind(x, y)

    return call


# ---- values that vary over manual axes


# Inside `shard_map` a type records the mesh axes over which the value differs among the instances of the function
# (`vma`). This identity adds axes to the type. Its transpose is the sum over the axes.
# It is not bound if there are no new axes.
# params: axes (a frozenset of names)
class _Cast(Primitive):
    __slots__ = ()

    def bind(self, x: Any, *, axes: frozenset[str]) -> Any:
        more = (axes & current.varying) - varying_axes(aval_of(x))
        if more and getattr(aval_of(x), "split", None) is not None:
            x, more = cast_sums(x, more)
        return current.trace.process(self, (x,), {"axes": more}) if more else x


pvary_p: Final = _Cast("pvary", "collectives")
pvary_p.abstract(lambda aval, *, axes: aval)
named_axes.add(pvary_p, lambda params: tuple(params["axes"]))
varying_rules.add(pvary_p, lambda axes, params: (None, axes[0] | params["axes"]))


def varying_axes(aval: AbstractValue) -> frozenset[Any]:
    """Return the axes over which values of a type vary."""
    return getattr(aval, "vma", frozenset())


def cast_operands(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
    """Cast operands that vary over different axes to the axes that the primitive needs.

    Constants are not cast: no derivative with respect to them is taken.
    """
    if avals.any_split:
        args = operands_in_parts(prim, args, params)
    axes = [_axes_of_operand(x) for x in args]
    to, _ = varying_rules[prim](axes, params)
    return args if not to or all(to <= own for own in axes) else _cast_to(args, to)


def cast_together(args: Sequence[Any]) -> Sequence[Any]:
    """Cast values that are broadcast against each other, like `cast_operands`.

    A cast before broadcasting is better: its transpose sums smaller arrays over devices.
    """
    return _cast_to(args, frozenset().union(*map(_axes_of_operand, args))) if current.varying else args


def _axes_of_operand(x: Any) -> frozenset:
    return varying_axes(x.aval) if isinstance(x, Tracer) else frozenset()


def _cast_to(args: Sequence[Any], axes: frozenset) -> list:
    return [pvary_p.bind(x, axes=axes) if isinstance(x, Tracer) and x.aval.is_array else x for x in args]


def _varying_types(prim: Primitive, types: Sequence[AbstractValue], params: dict, out: Any) -> Any:
    """Return the types `out` of results, with the axes over which they vary."""
    _, axes = varying_rules[prim]([varying_axes(a) for a in types], params)
    if not prim.multiple_results:
        return _with_axes(out, axes)
    every = axes if isinstance(axes, list) else [axes] * len(out)
    return [_with_axes(a, own) for a, own in zip(out, every, strict=True)]


def _with_axes(aval: AbstractValue, axes: frozenset) -> AbstractValue:
    return aval if not aval.is_array or aval.vma == axes else aval.update(vma=axes)


def checks_leaks(run: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a function that enters traces: with `jax_check_tracer_leaks`, none may be held when it returns.

    The function's result must not hold tracers of these traces.

    Raises:
      LeakedTracerError: tracers remain; the message names the objects that hold them.
    """

    @functools.wraps(run)
    def watched(*args, **kwargs):
        flag = config.check_tracer_leaks
        if not (flag.value if flag.may_be_local else flag.global_value):
            return run(*args, **kwargs)
        saved, current.watched = current.watched, []
        try:
            result = run(*args, **kwargs)
            traces = current.watched
        finally:
            current.watched = saved
        if any(ref() is not None for ref in traces):
            gc.collect()  # frees objects in cycles only
        for ref in traces:
            trace = ref()
            if trace is not None:
                raise errors.LeakedTracerError(
                    coded(
                        "BX-LEAK-CHECK",
                        f"values leaked from a {type(trace).__name__} that has ended:\n{_holders(trace)}\nReturn values from"
                        " the function instead of storing them.",
                    )
                )
        return result

    return watched


def _holders(trace: Trace) -> str:
    lines = []
    for tracer in gc.get_referrers(trace):
        if isinstance(tracer, Tracer):
            origin = getattr(tracer, "origin", None)
            lines.append(f"{tracer!r}. {origin() if origin else ''}".rstrip())
            held = [x for x in gc.get_referrers(tracer) if type(x).__name__ not in ("frame", "list_iterator")]
            lines += [
                f"  held by a {type(x).__name__} of {len(x)}" if hasattr(x, "__len__") else f"  held by {type(x)}"
                for x in held[:3]
            ]
    return "\n".join(lines) or "(no tracer of it can be found, but something holds the trace itself)"


@functools.lru_cache(8192, typed=True)
def _known_types(prim, types, /, **params):
    """Return the types by the shape rule; None if a type has a split, or is that of a reference.

    Parameters are compared with their types: 1, 1.0 and True are three. Their elements are compared by `==` alone.
    """
    if any(aval.mutable or getattr(aval, "split", None) is not None for aval in types):
        return None
    out = shape_rules[prim](*types, **params)
    return [*map(interned, out)] if prim.multiple_results else interned(out)  # one object for equal types


def trace_state_clean() -> bool:
    """Return whether no transformation is being traced on this thread.

    Examples:

      >>> inside = []
      >>> _ = jax.make_jaxpr(lambda x: inside.append(jax.core.trace_state_clean()))(1.)
      >>> jax.core.trace_state_clean(), inside
      (True, [False])
    """
    return current.trace is eval_trace


class OpaqueTraceState:
    """Compares equal while the same transformation is current; holds nothing alive."""

    __slots__ = ("axes", "trace")

    def __init__(self) -> None:
        self.trace: weakref.ref[Trace] = weakref.ref(
            current.trace
        )  # the same object for each state of one trace, also after its end
        self.axes: tuple[tuple[Any, Any], ...] = tuple(current.axes.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self.trace is other.trace and self.axes == other.axes

    def __hash__(self) -> int:
        return hash((id(self.trace), self.axes))


def get_opaque_trace_state(convention: Any = None) -> OpaqueTraceState:
    """Return the current trace as a value that can be compared.

    Examples:

      >>> outside, inside = jax.core.get_opaque_trace_state(), []
      >>> _ = jax.make_jaxpr(lambda x: inside.append(jax.core.get_opaque_trace_state()))(1.)
      >>> outside == jax.core.get_opaque_trace_state(), outside == inside[0]
      (True, False)
    """
    return OpaqueTraceState()


aval_functions[Tracer] = lambda x: x.aval
