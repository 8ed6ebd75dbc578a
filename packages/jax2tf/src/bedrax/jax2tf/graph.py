"""Graph serialization: a program as TensorFlow operations, one (or a few) per equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bedrax.core import config, dims, element_types
from bedrax.core.exact import exact_items
from bedrax.core.ir import Jaxpr, Literal
from bedrax.core.staging import program_of
from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives import elementwise
from bedrax.lax.primitives.shaping import broadcast_in_dim_p
from bedrax.tf import tensorflow as tf
from bedrax.tf import types


class Size:
    """A size that is not known before the program runs: a scalar int32 tensor with the arithmetic of dimensions."""

    __slots__ = ("tensor",)

    def __init__(self, tensor):
        self.tensor = tensor

    def __neg__(self):
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
    """What a rule can ask while one program is converted.

    Attributes:
      enable_xla: whether TensorFlow's XLA operations may be used.
      primitive: that of the current equation.
      avals_in, avals_out: types of its operands and results.
      dim_env: values of the dimension variables: name -> int or `Size`.
      implicit_broadcast: every use of the current equation's result broadcasts it, so its axes need only be in place.
    """

    __slots__ = (
        "avals_in", "avals_out", "dim_env", "dim_values", "enable_xla", "implicit_broadcast", "primitive",
    )  # fmt: skip

    def __init__(self, enable_xla: bool, dim_env: dict[str, Any]):
        self.enable_xla = enable_xla
        self.dim_env = dim_env
        self.dim_values: dict[Any, Any] = {}
        self.avals_in: list = []
        self.avals_out: list = []
        self.primitive: Any = None
        self.implicit_broadcast = False

    @property
    def aval_out(self):
        """Type of the only result."""
        return self.avals_out[0]

    def dim(self, d) -> Any:
        """A dimension as an int, or as a scalar int32 tensor if it is symbolic."""
        if dims.is_constant_dim(d):
            return int(d)
        found = self.dim_values.get(d)
        if found is None:
            found = d.evaluate(self.dim_env)
            found = self.dim_values[d] = found.tensor if type(found) is Size else found
        return found

    def shape(self, shape: Sequence) -> Any:
        """A shape as TensorFlow wants it: a list of ints, or an int32 vector if it is symbolic."""
        if dims.is_constant_shape(shape):
            return [int(d) for d in shape]
        return tf.stack([self.dim(d) for d in shape])

    def run(self, jaxpr: Jaxpr, *tensors) -> list:
        """Convert a program applied to tensors, in place."""
        return run_program(self, jaxpr, tensors)

    def constant(self, value, dtype=None) -> Any:
        """A NumPy value as a constant tensor."""
        return types.constant(value, dtype)

    def inner(self) -> Context:
        """A context for a program that becomes a TensorFlow function of its own (loop bodies, branches)."""
        made = Context(self.enable_xla, self.dim_env)
        made.dim_values = dict(self.dim_values)
        return made

    def composed(self, function: Callable, tensors: Sequence[Any], params: dict) -> Any:
        """Convert ``function(*arrays, **params)``, written with lax functions, applied to the operands (or their bases).

        All conversions share one TensorFlow function per function, types and parameters; a short program is converted
        in place.
        """
        known = tuple([(name, d) for name, d in self.dim_env.items() if type(d) is not Size])
        unknown = tuple([name for name, d in self.dim_env.items() if type(d) is Size])
        shapes = tuple([(tuple(t.shape) if t.shape.rank is not None else None, t.dtype) for t in tensors])
        key = (function, tuple(self.avals_in), shapes, exact_items(params), self.enable_xla, known, unknown,
               config.trace_context())  # fmt: skip
        try:
            found = _functions.get(key)
        except TypeError:  # a parameter that is no key
            return self.in_place(function, tensors, params)
        if found is None:
            if len(_functions) >= _MOST_FUNCTIONS:
                _functions.clear()
            found = _functions[key] = self._function(self._program(function, params), tensors, known, unknown)
        if isinstance(found, Jaxpr):
            return self._results(run_program(self.inner(), found, tensors))
        return self._results(found(*tensors, *[self.dim_env[name].tensor for name in unknown]))

    def in_place(self, function: Callable, tensors: Sequence[Any], params: dict) -> Any:
        """The same, without a TensorFlow function of its own."""
        return self._results(run_program(self.inner(), self._program(function, params), tensors))

    def _program(self, function: Callable, params: dict) -> Jaxpr:
        return program_of(lambda *xs: _as_list(function(*xs, **params)), types.physical(self.avals_in))

    def _results(self, out) -> Any:
        return list(out) if self.primitive.multiple_results else out[0]

    def _function(self, program: Jaxpr, tensors, known, unknown):
        if len(program.eqns) < _SHORT:
            return program
        enable_xla = self.enable_xla

        def function(*args):
            values, sizes = args[: len(tensors)], map(Size, args[len(tensors) :])
            ctx = Context(enable_xla, {**dict(known), **dict(zip(unknown, sizes, strict=True))})
            return tuple([tf.identity(x) for x in run_program(ctx, program, values)])

        function.__name__ = self.primitive.name.replace("-", "_")
        specs = [tf.TensorSpec(t.shape, t.dtype) for t in tensors] + [tf.TensorSpec([], tf.int32)] * len(unknown)
        with tf.init_scope():  # out of the graph that is being made, as other graphs will call it
            return tf.function(function, autograph=False).get_concrete_function(*specs)


# What `Context.composed` has made: a concrete TensorFlow function, or a program too short for one.
_functions: dict[Any, Any] = {}
_MOST_FUNCTIONS = 1024
_SHORT = 8  # equations


def rule_for(ctx: Context, prim):
    """The rule (or decomposition) that converts `prim`."""
    if element_types.moves_elements(prim, ctx.avals_in, ctx.avals_out):
        return _on_bases(prim)
    return tf_rules[prim]


def _on_bases(prim):
    """The rule for an operation that moves elements of an extended dtype (keys) about, on their bases."""

    def rule(ctx, *tensors, **params):
        on_bases = element_types.function_on_bases(prim, ctx.avals_in, params)
        return ctx.in_place(on_bases, tensors, {})

    return rule


def _as_list(x) -> list:
    return list(x) if isinstance(x, list | tuple) else [x]


def convert_eqn(ctx: Context, eqn, tensors: Sequence[Any]) -> list:
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


def run_program(ctx: Context, jaxpr: Jaxpr, tensors: Sequence[Any]) -> list:
    """Convert a program applied to tensors.

    Args:
      jaxpr: the program.
      tensors: one per argument.

    Returns:
      One tensor per result.
    """
    env: dict = {}
    for var, value in zip(jaxpr.constvars, jaxpr.consts, strict=True):
        env[var] = value if isinstance(value, tf.Tensor | tf.Variable) else types.constant_of(value, var.aval)
    env.update(zip(jaxpr.invars, tensors, strict=True))

    def read(atom):
        return types.constant(atom.val, atom.aval.dtype) if type(atom) is Literal else env[atom]

    last_use = _last_uses(jaxpr)
    implicit = _implicit_broadcasts(jaxpr)
    for i, eqn in enumerate(jaxpr.eqns):
        ctx.implicit_broadcast = bool(implicit) and eqn.outvars[0] in implicit if eqn.outvars else False
        with tf.name_scope(eqn.primitive.name.replace("-", "_").strip("_") or "op"):
            out = convert_eqn(ctx, eqn, [read(v) for v in eqn.invars])
        for var, tensor in zip(eqn.outvars, out, strict=True):
            env[var] = tensor if var in implicit else _with_shape(tensor, var.aval)
        for var in last_use[i]:
            del env[var]
    return [read(v) for v in jaxpr.outvars]


def _with_shape(tensor, aval):
    """Tell TensorFlow what is known of the shape, which dynamic operations lose."""
    if not aval.is_array or not hasattr(tensor, "shape"):
        return tensor
    known = types.static_shape(aval)
    # A combiner of scalars may have been run on whole tensors: then the ranks differ.
    if tensor.shape.rank in (None, len(known)) and not tensor.shape.is_fully_defined() and hasattr(tensor, "set_shape"):
        tensor.set_shape(known)
    return tensor


# Operations of two operands that TensorFlow broadcasts by itself.
_BROADCASTING = frozenset(
    [elementwise.add_p, elementwise.sub_p, elementwise.mul_p, elementwise.div_p, elementwise.max_p, elementwise.min_p,
     elementwise.eq_p, elementwise.ne_p, elementwise.lt_p, elementwise.le_p, elementwise.gt_p, elementwise.ge_p]
)  # fmt: skip


def _implicit_broadcasts(jaxpr: Jaxpr) -> frozenset:
    """Results of `broadcast_in_dim` that need not be made, as every use of them broadcasts.

    So a bias stays a bias, which TFLite fuses into the convolution before it.
    """
    candidates = {e.outvars[0]: e for e in jaxpr.eqns if e.primitive is broadcast_in_dim_p}
    for v in jaxpr.outvars:
        if type(v) is not Literal:
            candidates.pop(v, None)
    if not candidates:
        return frozenset()
    for eqn in jaxpr.eqns:
        here = [v for v in eqn.invars if type(v) is not Literal and v in candidates]
        if not here:
            continue
        fine = eqn.primitive in _BROADCASTING and len(here) == 1
        if fine:
            (other,) = [v for v in eqn.invars if v is not here[0]] or [here[0]]
            fine = other is not here[0] and dims.definitely_equal_shape(other.aval.shape, here[0].aval.shape)
        if not fine:
            for v in here:
                candidates.pop(v, None)
    return frozenset(candidates)


def _last_uses(jaxpr: Jaxpr) -> list[list]:
    """Per equation, the variables that nothing reads afterwards (eager tensors can be freed)."""
    kept = {v for v in jaxpr.outvars if type(v) is not Literal}
    out: list[list] = [[] for _ in jaxpr.eqns]
    for i in range(len(jaxpr.eqns) - 1, -1, -1):
        eqn = jaxpr.eqns[i]
        for v in (*eqn.outvars, *eqn.invars):
            if type(v) is not Literal and v not in kept:
                kept.add(v)
                out[i].append(v)
    return out
