"""Graph serialization: a program as TensorFlow operations, one (or a few) per equation."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import re
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax.core import dims, dtypes, source
from bedrax.core.context import trace_context
from bedrax.core.exact import exact_items
from bedrax.core.ir import Eqn, Jaxpr, Literal
from bedrax.core.passes import all_equations
from bedrax.core.staging import program_of
from bedrax.core.typing import DTypeLike
from bedrax.jax2tf import fusions
from bedrax.jax2tf.composites import without_other_calls
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import as_list
from bedrax.lax import element_types
from bedrax.tf import tensorflow as tf
from bedrax.tf import types

if TYPE_CHECKING:
    from bedrax.core.avals import AbstractValue
    from bedrax.core.tracing import Primitive


class Size:
    """An unknown size: a scalar int32 tensor with the arithmetic of dimensions."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor: Any = tensor

    def __neg__(self) -> Any:
        return Size(-self.tensor)


def _arithmetic(name: str, compute):
    def method(self, other):
        return Size(compute(self.tensor, other.tensor if type(other) is Size else other))

    setattr(Size, name, method)


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "mod"):
    _arithmetic(f"__{_name}__", lambda x, y, name=f"__{_name}__": getattr(x, name)(y))
_arithmetic("max", lambda x, y: tf.maximum(x, y))
_arithmetic("min", lambda x, y: tf.minimum(x, y))


class Context:
    """The interface of rules during the conversion of one program.

    Attributes:
      enable_xla: whether TensorFlow's XLA operations are permitted.
      primitive: the primitive of the current equation.
      avals_in, avals_out: types of its operands and results.
      dim_env: values of the dimension variables: name -> int or `Size`.
      implicit_broadcast: every use of the current equation's result broadcasts it, so its rank is sufficient.
      for_xla: whether TensorFlow's XLA compiles the graph.
    """

    __slots__ = (
        "_constants",
        "_home",
        "avals_in",
        "avals_out",
        "dim_env",
        "dim_values",
        "enable_xla",
        "for_xla",
        "implicit_broadcast",
        "primitive",
    )

    def __init__(self, enable_xla: bool, dim_env: dict[str, Any], for_xla: bool | None = None) -> None:
        self.enable_xla: bool = enable_xla
        self.dim_env: dict[str, Any] = dim_env
        self.dim_values: dict[Any, Any] = {}
        self.avals_in: list[Any] = []
        self.avals_out: list[Any] = []
        self.primitive: Any = None
        self.implicit_broadcast: bool = False
        self._home = _current_graph()
        self.for_xla: bool = _is_for_xla(self._home) if for_xla is None else for_xla
        self._constants: dict[Any, Any] = {}

    @property
    def aval_out(self) -> Any:
        """Type of the only result."""
        return self.avals_out[0]

    def dim(self, d: Any) -> Any:
        """A dimension as an int, or as a scalar int32 tensor if it is symbolic."""
        if dims.is_constant_dim(d):
            return int(d)
        found = self.dim_values.get(d)
        if found is None:
            found = d.evaluate(self.dim_env)
            found = found.tensor if type(found) is Size else found
            if _current_graph() is self._home:
                self.dim_values[d] = found
        return found

    def shape(self, shape: Sequence[Any]) -> Any:
        """A shape as an int32 vector: a constant, or computed if it is symbolic."""
        if dims.is_constant_shape(shape):
            return self.integers(shape)
        return tf.stack([self.dim(d) for d in shape])

    def integers(self, values: Sequence[int]) -> Any:
        """An int32 vector."""
        return self.constant(np.asarray(values, np.int32).reshape(-1))

    def run(self, jaxpr: Jaxpr, *tensors: Any) -> list[Any]:
        """Convert a program applied to tensors, in place."""
        return run_program(self, jaxpr, tensors)

    def constant(self, value: Any, dtype: DTypeLike | None = None) -> Any:
        """A NumPy value as a constant tensor; equal small ones are one tensor."""
        value = np.asarray(value, None if dtype == dtypes.float0 else dtype)
        if value.size > _SMALL or dtype == dtypes.float0 or _current_graph() is not self._home:
            return types.constant(value, dtype)
        key = (value.dtype, value.shape, value.tobytes())
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = types.constant(value, dtype)
        return found

    def closed_over(self, value: Any, aval: AbstractValue) -> Any:
        """A constant that a program closes over. A large one is one tensor for all graphs, including those of
        gradients."""
        value = types.constant_value(value, aval)
        return self.constant(value) if value.nbytes <= _LARGE else _shared_constant(value)

    def inner(self) -> Context:
        """A context for a program that becomes a separate TensorFlow function (loop bodies, branches)."""
        made = Context(self.enable_xla, self.dim_env, self.for_xla)
        made.dim_values = dict(self.dim_values)
        return made

    def composed(self, function: Callable[..., Any], tensors: Sequence[Any], params: dict[str, Any]) -> Any:
        """Convert ``function(*arrays, **params)``, written with lax functions, applied to the operands (or their
        bases).

        All conversions share one TensorFlow function per function, types and parameters; a short program is converted
        in place.
        """
        key = (function, tuple(self.avals_in), exact_items(params), trace_context())
        try:
            found = _programs.get(key)
        except TypeError:  # a parameter that cannot be a key
            return self.in_place(function, tensors, params)
        if found is None:
            if len(_programs) >= _MOST_PROGRAMS:
                _programs.clear()
            found = _programs[key] = self._program(function, params)
        return self._results(self.called(found, tensors, self.primitive.name))

    def called(self, program: Jaxpr, tensors: Sequence[Any], name: str) -> list[Any]:
        """Apply a program to tensors. A short program is written in place; all calls of another one share a TensorFlow function."""
        if self._is_short(program):
            return run_program(self.inner(), program, tensors)
        known = tuple([(name, d) for name, d in self.dim_env.items() if type(d) is not Size])
        unknown = tuple([name for name, d in self.dim_env.items() if type(d) is Size])
        shapes = tuple([(tuple(t.shape) if t.shape.rank is not None else None, t.dtype) for t in tensors])
        functions = program.cache.setdefault(Context.called, {})
        key = (name, shapes, self.enable_xla, self.for_xla, known, unknown)
        found = functions.get(key)
        if found is None:
            found = functions[key] = self._function(program, tensors, name, known, unknown)
        out = found(*tensors, *[self.dim_env[name].tensor for name in unknown])
        return list(out)

    @staticmethod
    def _is_short(program: Jaxpr) -> bool:
        types_of = [v.aval for v in (*program.invars, *program.outvars)]
        if not program.outvars or not all(a.is_array for a in types_of) or program.effects:
            return True
        return next(itertools.islice(all_equations(program), _SHORT - 1, None), None) is None

    def in_place(self, function: Callable[..., Any], tensors: Sequence[Any], params: dict[str, Any]) -> Any:
        """The same, without a separate TensorFlow function."""
        return self._results(run_program(self.inner(), self._program(function, params), tensors))

    def _program(self, function: Callable, params: dict) -> Jaxpr:
        return program_of(lambda *xs: as_list(function(*xs, **params)), types.physical(self.avals_in))

    def _results(self, out) -> Any:
        return list(out) if self.primitive.multiple_results else out[0]

    def _function(self, program: Jaxpr, tensors, name: str, known, unknown):
        enable_xla, for_xla = self.enable_xla, self.for_xla

        def function(*args):
            values, sizes = args[: len(tensors)], map(Size, args[len(tensors) :])
            ctx = Context(enable_xla, {**dict(known), **dict(zip(unknown, sizes, strict=True))}, for_xla)
            return tuple([tf.identity(x) for x in run_program(ctx, program, values)])

        function.__name__ = re.sub(r"\W", "_", name)
        specs = [tf.TensorSpec(t.shape, t.dtype) for t in tensors] + [tf.TensorSpec([], tf.int32)] * len(unknown)
        with tf.init_scope():  # outside of the current graph, because other graphs will call it
            return tf.function(function, autograph=False).get_concrete_function(*specs)


_SMALL = 16  # elements
_LARGE = 4096  # bytes


def _current_graph():
    """The current graph; None if operations run eagerly."""
    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def _is_for_xla(graph) -> bool:
    """Whether a graph is traced for a compilation by TensorFlow's XLA."""
    from tensorflow.python.ops import control_flow_util

    return graph is not None and control_flow_util.GraphOrParentsInXlaContext(graph)


def _shared_constant(value: np.ndarray) -> Any:
    """A tensor outside of the current graph: graphs capture it, and saved models hold it once."""
    key = (value.dtype, value.shape, hashlib.blake2b(value.tobytes(), digest_size=20).digest())
    found = _shared.get(key)
    if found is None:
        with tf.init_scope():
            found = types.constant(value)
            if tf.executing_eagerly():  # else it belongs to one graph, and not to others
                _shared[key] = found
    return found


_shared: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()

# The programs of compositions. Each keeps the TensorFlow functions made from it.
_programs: dict[Any, Jaxpr] = {}
_MOST_PROGRAMS = 1024
_SHORT = 8  # equations


def rule_for(ctx: Context, prim: Primitive) -> Any:
    """The rule (or decomposition) that converts `prim`."""
    if element_types.moves_elements(prim, ctx.avals_in, ctx.avals_out):
        return _on_bases(prim)
    return tf_rules[prim]


def _on_bases(prim):
    """The rule for an operation that moves elements of an extended dtype (keys), on their base arrays."""

    def rule(ctx, *tensors, **params):
        on_bases = element_types.function_on_bases(prim, ctx.avals_in, params)
        return ctx.in_place(on_bases, tensors, {})

    return rule


def convert_eqn(ctx: Context, eqn: Eqn, tensors: Sequence[Any]) -> list[Any]:
    """Convert one equation applied to tensors."""
    prim = eqn.primitive
    saved = ctx.avals_in, ctx.avals_out, ctx.primitive
    ctx.avals_in = [v.aval for v in eqn.invars]
    ctx.avals_out = [v.aval for v in eqn.outvars]
    ctx.primitive = prim
    try:
        out = rule_for(ctx, prim)(ctx, *tensors, **eqn.params)
    finally:
        ctx.avals_in, ctx.avals_out, ctx.primitive = saved
    return list(out) if prim.multiple_results else [out]


def run_program(ctx: Context, jaxpr: Jaxpr, tensors: Sequence[Any]) -> list[Any]:
    """Convert a program applied to tensors.

    Args:
      jaxpr: the program.
      tensors: one per argument.

    Returns:
      One tensor per result.
    """
    jaxpr = without_other_calls(jaxpr)
    env: dict[Any, Any] = {}
    for var, value in zip(jaxpr.constvars, jaxpr.consts, strict=True):
        env[var] = value if isinstance(value, tf.Tensor | tf.Variable) else ctx.closed_over(value, var.aval)
    env.update(zip(jaxpr.invars, tensors, strict=True))

    def read(atom):
        return ctx.constant(atom.val, atom.aval.dtype) if type(atom) is Literal else env[atom]

    for eqn, operands, build, implicit, last in fusions.plan(jaxpr):
        ctx.implicit_broadcast = implicit
        with tf.name_scope(_operation_name(eqn)):
            tensors = [read(v) for v in operands]
            out = convert_eqn(ctx, eqn, tensors) if build is None else [build(ctx, *tensors)]
        for var, tensor in zip(eqn.outvars, out, strict=True):
            env[var] = tensor if implicit else _with_shape(tensor, var.aval)
        for var in last:
            del env[var]
    return [read(v) for v in jaxpr.outvars]


def _operation_name(eqn) -> str:
    """The name scopes around an equation, its primitive, and the user's line: ``Net/Dense_0/dot_general.model.12``."""
    name = eqn.primitive.name.replace("-", "_").strip("_") or "op"
    place = eqn.source_info
    if not place:
        return name
    file = os.path.splitext(os.path.basename(place[0].co_filename))[0]
    name = f"{name}.{file}.{_line(place[0], place[1])}"
    if len(place) > 2:
        name = f"{place[2]}/{name}"
    name = _ILLEGAL.sub("_", name)
    return name if name[0].isalnum() else "_" + name[1:] if name[0] == "." else "op" + name


_ILLEGAL = re.compile(r"[^A-Za-z0-9_./-]")


@functools.lru_cache(4096)
def _line(code, lasti: int) -> int:
    return source.line_of((code, lasti))


def _with_shape(tensor, aval):
    """Set the known part of the shape, which dynamic operations lose."""
    if not aval.is_array or not hasattr(tensor, "shape"):
        return tensor
    known = types.static_shape(aval)
    # A combiner of scalars may have been run on whole tensors: then the ranks differ.
    if tensor.shape.rank in (None, len(known)) and not tensor.shape.is_fully_defined() and hasattr(tensor, "set_shape"):
        tensor.set_shape(known)
    return tensor
