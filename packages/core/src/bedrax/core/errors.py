"""The errors that users meet when a traced value is used where Python needs a number.

Constructors take the tracer: anything with an `aval`, and perhaps an `origin` (a phrase that names the
traced function and the argument that the value comes from, or a function that makes the phrase) and a `source`
(see `source.py`).
"""

from __future__ import annotations

import copyreg
import importlib
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from bedrax.core import source
from bedrax.core.codes import coded
from bedrax.core.public import has_interface, public

_Kind = TypeVar("_Kind", bound=type[BaseException])


def _with_page(message: str, kind: Any) -> str:
    return coded(kind.code, message) if kind.code else public(message)


def _again(kind: Any, args: tuple) -> BaseException:
    if isinstance(kind, tuple):  # the module and the name of the class
        kind = getattr(importlib.import_module(kind[0]), kind[1])
    error = kind.__new__(kind, *args)
    error.args = args
    return error


def public_error(kind: _Kind) -> _Kind:
    """Decorate a class of `jax.errors`: messages show this module if it is installed, pickles the module that defines it."""
    home = kind.__module__, kind.__qualname__
    copyreg.pickle(kind, lambda error: (_again, (home, error.args), error.__dict__ or None))  # type: ignore[arg-type]
    if has_interface():  # installed, but perhaps not imported
        kind.__module__ = "jax.errors"
    return kind


def shaped(tracer: Any) -> str:
    """`float32[3]`"""
    aval = tracer.aval
    dtype = getattr(aval, "dtype", None)
    shape = getattr(aval, "shape", None)
    if dtype is None or shape is None:
        return str(aval)
    return f"{getattr(dtype, 'name', dtype)}[{','.join(map(str, shape))}]"


def recorded(x: Any) -> Any:
    """Return the value of the recorded program that a value of `vmap` or of a derivative stands for, or the value."""
    while (inner := getattr(x, "inner", None)) is not None:
        x = inner
    return x


def sources_of(operands: Sequence[Any]) -> list[str]:
    """Return sentences that name the arguments of the traced function that each operand depends on."""
    facts = []
    for i, x in enumerate(map(recorded, operands)):
        describe = getattr(x, "arguments", None)
        if found := describe() if callable(describe) else None:
            facts.append(f"Operand {i}, {shaped(x)}, depends on {found}.")
    return facts


def origin_of(tracer: Any) -> str:
    """Return sentences that name the traced function and the line that made the value; '' if unknown."""
    lines = []
    tracer = recorded(tracer)
    origin = getattr(tracer, "origin", None)
    if callable(origin):
        origin = origin()
    if origin:
        lines.append(str(origin))
    place = getattr(tracer, "source", None)
    if place is not None:
        lines.append(f"The value was made at {source.describe(place)}.")
    return "".join(f"\n{line}" for line in lines)


class JAXTypeError(TypeError):
    """Base class of our errors about the types of values.

    Examples:

      >>> issubclass(jax.errors.UnexpectedTracerError, jax.errors.JAXTypeError)
      True
    """

    code: ClassVar[str] = ""

    def __init__(self, message: str) -> None:
        super().__init__(_with_page(message, type(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args)


class JAXIndexError(IndexError):
    """Base class of our errors about indices.

    Examples:

      >>> issubclass(jax.errors.NonConcreteBooleanIndexError, jax.errors.JAXIndexError)
      True
    """

    code: ClassVar[str] = ""

    def __init__(self, message: str) -> None:
        super().__init__(_with_page(message, type(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args)


class ConcretizationTypeError(JAXTypeError):
    """A number was needed, but the value is only known as a shape and a type.

    Inside `jit`, `scan`, `vmap` and the other transformations that trace, arrays are stand-ins: the program
    is recorded first and runs later. A decision that Python makes during recording cannot depend on them.

    A program that fails, because the shape of a result would depend on a value::

      @jit
      def first(x, n):
          return x[:int(n)]

      first(jnp.arange(5.), 3)        # raises ConcretizationTypeError

    Repaired by making `n` a part of the program (it is compiled again for each `n`)::

      @partial(jit, static_argnames="n")
      def first(x, n):
          return x[:n]

    or by an operation whose shape does not depend on it::

      @jit
      def first(x, n):
          return jnp.where(jnp.arange(x.shape[0]) < n, x, 0.)

    Examples:

      >>> issubclass(jax.errors.TracerBoolConversionError, jax.errors.ConcretizationTypeError)
      True
      >>> @jax.jit
      ... def f(n):
      ...     return jnp.arange(n)
      ...
      >>> try:
      ...     f(3)
      ... except jax.errors.ConcretizationTypeError:
      ...     print("a shape is known when a function is traced: make n static")
      ...
      a shape is known when a function is traced: make n static
    """

    code = "BX-TRACED-VALUE"

    def __init__(self, tracer: Any, context: str = "") -> None:
        detail = f"\n{context}" if context else ""
        super().__init__(
            f"the concrete value of an abstract tracer, a traced array of type {shaped(tracer)}, is needed, but it is"
            f" not known while tracing{detail}{origin_of(tracer)}"
        )


class TracerBoolConversionError(ConcretizationTypeError):
    """Python needed the boolean of a traced value: in `if`, `while`, `and`, `or`, `not`, `assert`.

    A program that fails::

      @jit
      def absolute(x):
          return x if x > 0 else -x       # raises TracerBoolConversionError

    Repaired by an operation that chooses elements, or a traced branch::

      @jit
      def absolute(x):
          return jnp.where(x > 0, x, -x)

      @jit
      def absolute(x):
          return lax.cond(x > 0, lambda x: x, lambda x: -x, x)

    Loops become `lax.while_loop` or `lax.fori_loop`; `and` of arrays is `jnp.logical_and`. If the decision is
    about an argument that is part of the program, name it in `static_argnames`.

    Examples:

      >>> try:
      ...     jax.jit(lambda x: 1 if x > 0 else 2)(1.)
      ... except jax.errors.TracerBoolConversionError:
      ...     print("use jnp.where or lax.cond")
      ...
      use jnp.where or lax.cond
    """

    code = "BX-TRACED-BOOL"

    def __init__(self, tracer: Any) -> None:
        JAXTypeError.__init__(
            self,
            f"Python needs the boolean value of a traced array of type {shaped(tracer)}.{origin_of(tracer)}\n"
            "To choose by a traced value, use jnp.where, lax.cond or lax.while_loop instead of if and while.",
        )


class TracerArrayConversionError(JAXTypeError):
    """A function of NumPy (or of another library) needed the numbers of a traced value.

    A program that fails::

      @jit
      def f(x):
          return np.sin(x)            # raises TracerArrayConversionError

    Repaired with the function of `jax.numpy`::

      @jit
      def f(x):
          return jnp.sin(x)

    It also happens when a NumPy array is indexed by a traced index: `jnp.asarray(table)[i]` works. A function
    that has no counterpart can be called with `jax.pure_callback`.

    Examples:

      >>> try:
      ...     jax.jit(lambda x: np.sin(x))(1.)
      ... except jax.errors.TracerArrayConversionError:
      ...     print("use jnp.sin")
      ...
      use jnp.sin
    """

    code = "BX-TRACED-NUMPY"

    def __init__(self, tracer: Any) -> None:
        super().__init__(
            f"NumPy needs the elements of a traced array of type {shaped(tracer)} (by __array__).{origin_of(tracer)}\n"
            "Use the function of jax.numpy instead of the one of NumPy; an array of NumPy that is indexed by a traced "
            "value has to be made an array with jnp.asarray first."
        )


class TracerIntegerConversionError(JAXTypeError):
    """Python needed an integer: for `range`, for the index of a list, for an axis; the value is traced.

    A program that fails::

      @jit
      def pick(i):
          return [1., 2., 3.][i]          # raises TracerIntegerConversionError

    Repaired by indexing an array, or by making the argument a part of the program::

      @jit
      def pick(i):
          return jnp.array([1., 2., 3.])[i]

      pick = jit(lambda i: [1., 2., 3.][i], static_argnums=0)

    `for i in range(n)` with a traced `n` is `lax.fori_loop(0, n, body, init)`.

    Examples:

      >>> try:
      ...     jax.jit(lambda i: [10, 20][i])(1)
      ... except jax.errors.TracerIntegerConversionError:
      ...     print("use jnp.array([10, 20])[i]")
      ...
      use jnp.array([10, 20])[i]
    """

    code = "BX-TRACED-INTEGER"

    def __init__(self, tracer: Any) -> None:
        super().__init__(
            f"Python needs the integer value of a traced array of type {shaped(tracer)} (by __index__)."
            f"{origin_of(tracer)}\n"
            "To index a Python sequence, make it an array first; a traced trip count needs lax.fori_loop; name a number "
            "that is part of the program in static_argnums."
        )


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used after, or outside of, the trace that it belongs to: it leaked.

    A program that fails::

      kept = []

      @jit
      def f(x):
          kept.append(x * 2)              # leaves f by a side door
          return x

      f(1.)
      kept[0] + 1                         # raises UnexpectedTracerError

    Repaired by returning what is needed::

      @jit
      def f(x):
          return x, x * 2

    Values leak into globals, into attributes of objects, and into caches. `with jax.checking_leaks():` finds
    the place when it happens rather than when the value is used.

    Examples:

      >>> leaked = []
      >>> _ = jax.jit(lambda x: leaked.append(x))(1)
      >>> try:
      ...     leaked[0] + 1
      ... except jax.errors.UnexpectedTracerError:
      ...     print("return it instead")
      ...
      return it instead
    """

    code = "BX-LEAKED"


def escaped_tracer_error(tracer: Any, detail: str = "") -> UnexpectedTracerError:
    """Return the error for `tracer` being used outside its trace; `detail` is added to the message."""
    place = getattr(tracer, "source", None)
    made = f"\nThe leaked value was created at {source.describe(place)}." if place is not None else ""
    origin = getattr(tracer, "origin", None)
    origin = origin() if callable(origin) else origin
    return UnexpectedTracerError(
        f"a traced value of type {shaped(tracer)}, a {type(tracer).__name__}, is used outside of the transformation "
        "that made it: it leaked from the transformed function."
        + (f"\n{origin}" if origin else "")
        + made
        + (f"\n{detail}" if detail else "")
        + "\nReturn the value from the function instead of storing it. To find where it leaks, set "
        "JAX_CHECK_TRACER_LEAKS or use the `jax.checking_leaks` context manager."
    )


class JaxprTypeError(TypeError):
    """A jaxpr breaks the rules of the language: unbound variables, wrong types of results, undeclared effects.

    Examples:

      >>> from jax.extend import core
      >>> program = jax.make_jaxpr(lambda x: 2 * jnp.sin(x))(1.)
      >>> try:
      ...     core.check_jaxpr(program.replace(eqns=program.eqns[1:]))
      ... except jax.errors.JaxprTypeError as error:
      ...     print(str(error).splitlines()[0])
      '...mul...' uses a variable that is not bound before, in
    """


class LeakedTracerError(RuntimeError):
    """``jax.checking_leaks`` found tracers that outlive their trace."""


class InconclusiveDimensionOperation(TypeError):
    """A comparison of a symbolic dimension has no result that holds for all its values.

    For example `b >= 2` for a dimension `b` that is only known to be at least 1. Constraints given when the
    dimension is made, or a formulation without the comparison, help.

    Examples:

      >>> from jax import export
      >>> n, m = export.symbolic_shape("n, m")
      >>> try:
      ...     n >= m
      ... except jax.core.InconclusiveDimensionOperation:
      ...     print("state a constraint: symbolic_shape('n, m', constraints=['n >= m'])")
      ...
      state a constraint: symbolic_shape('n, m', constraints=['n >= m'])

      >>> from jax.extend import core

      >>> (b,) = jax.export.symbolic_shape("b")
      >>> try:
      ...     bool(b >= 5)
      ... except core.InconclusiveDimensionOperation as error:
      ...     print(str(error).splitlines()[0])
      Symbolic dimension comparison 'b' >= '5' is inconclusive.
      >>> bool(b >= 1)
      True
    """


for _error in [x for x in globals().values() if isinstance(x, type) and x.__module__ == __name__]:
    public_error(_error)
