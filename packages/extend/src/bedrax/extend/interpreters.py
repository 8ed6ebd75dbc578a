"""The rule tables as dictionaries, to which libraries write.

Libraries assign rules with ``table[prim] = rule``. Their rules have these forms. jvp and transpose: the same as in our
columns. Batching: ``rule(args, dims, **params)`` without the axis; in `axis_primitive_batchers`,
``rule(size, name, None, args, dims, **params)``; in `fancy_primitive_batchers`,
``rule(axis_data, args, dims, **params)``. Lowering: ``rule(ctx, *values, **params)``.

Needed by Equinox (every table, `UndefinedPrimal`, `instantiate_zeros`), Lineax (`primitive_transposes`), and libraries
with their own primitives, which the user documentation describes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bedrax import pytree
from bedrax.autodiff import tables as ad_tables
from bedrax.autodiff.forward import jvp_flat_with_aux
from bedrax.autodiff.forward import jvp_jaxpr as _jvp_jaxpr
from bedrax.autodiff.linearization import backward_pass as _backward_pass
from bedrax.autodiff.linearization import backward_pass_with_logs
from bedrax.autodiff.tables import Zero, instantiate
from bedrax.batching.api import Vmappable, vmappable
from bedrax.batching.tables import batch_rules, elementwise
from bedrax.batching.tables import to_front as _to_front
from bedrax.batching.trace import BatchTrace, batch_jaxpr, batched, place_all
from bedrax.core import dtypes, executors, staging
from bedrax.core.array import Array
from bedrax.core.avals import AbstractValue, aval_functions, aval_of
from bedrax.core.columns import Column
from bedrax.core.ir import Jaxpr, run
from bedrax.core.names import JVP
from bedrax.core.typing import ArrayLike
from bedrax.lax.axes import broadcast_axis, move_axis
from bedrax.lax.choices import refuse_options
from bedrax.lax.filling import zeros_of
from bedrax.lax.primitives.shaping import iota

if TYPE_CHECKING:
    from bedrax.core.tracing import Primitive


class TableView(MutableMapping[Any, Any]):
    """A rule table as a writable dictionary. `adapt` converts a library's rule into the form of the column."""

    def __init__(self, table: Column, adapt: Callable[..., Any] = lambda rule: rule) -> None:
        self.table = table
        self.adapt = adapt

    def __getitem__(self, prim: Primitive) -> Any:
        return self.table[prim]

    def __setitem__(self, prim: Primitive, rule: Callable[..., Any]) -> None:
        self.table.replace(prim, self.adapt(rule))

    def __delitem__(self, prim: Primitive) -> None:
        dict.__delitem__(self.table, prim)
        self.table.kinds.pop(prim, None)

    def __contains__(self, prim: object) -> bool:
        return prim in self.table

    def __iter__(self) -> Iterator[Any]:
        return dict.__iter__(self.table)

    def __len__(self) -> int:
        return dict.__len__(self.table)


def _of_tuples(rule):
    return lambda primals, tangents, **params: rule(tuple(primals), tuple(tangents), **params)


def _without_axis(rule):
    return lambda axis, args, dims, **params: rule(tuple(args), tuple(dims), **params)


def _with_parts_of_axis(rule):
    return lambda axis, args, dims, **params: rule(axis.size, axis.name, None, tuple(args), tuple(dims), **params)


primitive_jvps: Final = TableView(ad_tables.jvp_rules, _of_tuples)
primitive_transposes: Final = TableView(ad_tables.transpose_rules)
primitive_batchers: Final = TableView(batch_rules, _without_axis)
axis_primitive_batchers: Final = TableView(batch_rules, _with_parts_of_axis)
fancy_primitive_batchers: Final = TableView(batch_rules)


def defjvp(primitive: Primitive, *jvprules: Callable[..., Any]) -> None:
    """Register the derivative of a primitive with one result: the sum of a term for each operand.

    Args:
      jvprules: one formula per operand, ``(t, *primals, **params) -> tangent`` of the result, for the operand's
        tangent `t`; None for an operand on which the result does not depend smoothly.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import ad

      >>> mix_p = Primitive("square_and_add")
      >>> _ = mix_p.def_impl(lambda x, y: x * x + y)
      >>> _ = mix_p.def_abstract_eval(lambda x, y: x)
      >>> ad.defjvp(mix_p, lambda t, x, y: 2 * x * t, lambda t, x, y: t)
      >>> jax.grad(mix_p.bind, argnums=(0, 1))(3., 5.)
      (Array(6., dtype=float32, ...), Array(1., dtype=float32, ...))
    """

    def drop_answer(rule):
        return None if rule is None else lambda t, ans, *primals, **params: rule(t, *primals, **params)

    ad_tables.jvp(primitive, *map(drop_answer, jvprules))


def defjvp2(primitive: Any, *jvprules: Any) -> None:
    """Register the derivative of a primitive, as `defjvp`, by formulas that also take the result.

    Args:
      primitive: a primitive with one result.
      jvprules: one formula per operand, ``(t, ans, *primals, **params) -> tangent`` of the result, for the tangent `t`
        of the operand and the result `ans`; None for an operand on which the result does not depend smoothly.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import ad

      >>> grow_p = Primitive("grow")
      >>> _ = grow_p.def_impl(jnp.exp)
      >>> _ = grow_p.def_abstract_eval(lambda x: x)
      >>> ad.defjvp2(grow_p, lambda t, ans, x: t * ans)
      >>> jax.jvp(grow_p.bind, (0.,), (5.,))
      (Array(1., dtype=float32, ...), Array(5., dtype=float32, ...))
    """
    ad_tables.jvp(primitive, *jvprules)


def deflinear2(primitive: Any, transpose_rule: Any) -> None:
    """Register a primitive as linear in all of its operands together: its derivative is itself.

    Args:
      transpose_rule: ``(ct, *args, **params) -> [cotangent or None per operand]``; a linear operand is an
        `UndefinedPrimal`.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import ad

      >>> total_p = Primitive("total")
      >>> _ = total_p.def_impl(jnp.sum)
      >>> _ = total_p.def_abstract_eval(lambda x: x.update(shape=()))
      >>> ad.deflinear2(total_p, lambda ct, x: [jnp.broadcast_to(ct, x.aval.shape)])
      >>> jax.grad(total_p.bind)(jnp.arange(3.))
      Array([1., 1., 1.], dtype=float32)
    """
    ad_tables.linear(primitive, transpose_rule)


def deflinear(primitive: Any, transpose_rule: Any) -> None:
    """Register a primitive as linear, as `deflinear2`, by a rule that does not take the operands.

    Args:
      primitive: a primitive that is linear in all its operands together.
      transpose_rule: ``(ct, **params) -> [cotangent per operand]``.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import ad

      >>> flip_p = Primitive("flip_all")
      >>> _ = flip_p.def_impl(lambda x: x[::-1])
      >>> _ = flip_p.def_abstract_eval(lambda x: x)
      >>> ad.deflinear(flip_p, lambda ct: [flip_p.bind(ct)])
      >>> weights = jnp.array([1., 2., 3.])
      >>> jax.grad(lambda x: (flip_p.bind(x) * weights).sum())(jnp.zeros(3))
      Array([3., 2., 1.], dtype=float32)
    """
    ad_tables.linear(primitive, lambda ct, *args, **params: transpose_rule(ct, **params))


def defbilinear(prim: Primitive, lhs_rule: Any, rhs_rule: Any) -> None:
    """Register a primitive as linear in each of its two operands, like a product.

    Args:
      prim: the primitive.
      lhs_rule: ``(ct, x, y, **params) -> cotangent`` of `x`, which is an `UndefinedPrimal`.
      rhs_rule: ``(ct, x, y, **params) -> cotangent`` of `y`, which is an `UndefinedPrimal`.

    Examples:

      >>> from jax.extend.core import Primitive
      >>> from jax.interpreters import ad

      >>> area_p = Primitive("area")
      >>> _ = area_p.def_impl(jnp.multiply)
      >>> _ = area_p.def_abstract_eval(lambda x, y: x)
      >>> ad.defbilinear(area_p, lambda ct, x, y: area_p.bind(ct, y), lambda ct, x, y: area_p.bind(x, ct))
      >>> jax.jvp(area_p.bind, (3., 4.), (1., 10.))
      (Array(12., dtype=float32, ...), Array(34., dtype=float32, ...))
      >>> jax.grad(area_p.bind, argnums=(0, 1))(3., 4.)
      (Array(4., dtype=float32, ...), Array(3., dtype=float32, ...))
    """
    ad_tables.bilinear(prim, lhs_rule, rhs_rule)


def defvectorized(prim: Primitive) -> None:
    """Register the batching rule of an elementwise primitive with one operand: it is applied to the batch.

    Examples:

      >>> from jax.interpreters import batching

      >>> shift_p = jax.extend.core.Primitive("shift_by_one")
      >>> _ = shift_p.def_impl(lambda x: x + 1)
      >>> batching.defvectorized(shift_p)
      >>> jax.vmap(shift_p.bind, in_axes=1, out_axes=1)(jnp.zeros((2, 3)))
      Array([[1., 1., 1.],
             [1., 1., 1.]], dtype=float32)
    """
    elementwise(prim)


def defbroadcasting(prim: Primitive) -> None:
    """Register the batching rule of an elementwise primitive with several operands: the axes of their batches are
    aligned.

    Examples:

      >>> from jax.interpreters import batching

      >>> apart_p = jax.extend.core.Primitive("how_far_apart")
      >>> _ = apart_p.def_impl(lambda x, y: abs(x - y))
      >>> batching.defbroadcasting(apart_p)
      >>> jax.vmap(apart_p.bind, in_axes=(0, None))(jnp.array([1., 5.]), 3.)
      Array([2., 2.], dtype=float32)
    """
    elementwise(prim)


def defreducer(prim: Primitive) -> None:
    """Register the batching rule of a primitive with one operand, which reduces it over the axes in the parameter
    `axes`.

    The axes, a tuple of int, may be counted from the end; the results have the other ones, in order.

    Examples:

      >>> from jax.interpreters import batching

      >>> most_p = jax.extend.core.Primitive("most")
      >>> _ = most_p.def_impl(lambda x, axes: x.max(axes))
      >>> batching.defreducer(most_p)
      >>> jax.vmap(lambda row: most_p.bind(row, axes=(0,)))(jnp.array([[1, 9], [8, 2]]))
      Array([9, 8], dtype=int32)
    """

    def rule(axis, args, dims, *, axes, **params):
        (x,), (dim,) = args, dims
        axes = [a % (aval_of(x).ndim - 1) for a in axes]
        moved = tuple(a + (a >= dim) for a in axes)
        kept = dim - sum(a < dim for a in axes)
        out = prim.bind(x, axes=moved, **params)
        return out, [kept] * len(out) if prim.multiple_results else kept

    batch_rules.add(prim, rule, "reducer")


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Compile one operation, and run it on arrays. It evaluates primitives without `impl`.

    Args:
      prim: the primitive.
      args: the operands, arrays.
      params: the parameters of the operation.

    Returns:
      The result; a list of results if the primitive has several.

    Examples:

      >>> from jax.interpreters import xla
      >>> xla.apply_primitive(lax.mul_p, jnp.array([1., 2.]), jnp.array([3., 4.]))
      Array([3., 8.], dtype=float32)
    """
    return executors.get().apply(prim, args, params)


def bdim_at_front(x: ArrayLike, bdim: int, size: int, mesh_axis: str | None = None) -> Array:
    """A batch with the mapped axis first.

    Args:
      x: an array.
      bdim: the mapped axis of `x`; None (`not_mapped`) if it has none: then `x` is repeated.
      size: the number of repetitions of `x`.
      mesh_axis: only None.

    Examples:

      >>> from jax.interpreters import batching

      >>> x = jnp.arange(6).reshape(2, 3)
      >>> batching.bdim_at_front(x, 1, 3).shape
      (3, 2)
      >>> batching.bdim_at_front(jnp.array([7, 8]), batching.not_mapped, 3)
      Array([[7, 8],
             [7, 8],
             [7, 8]], dtype=int32)
    """
    refuse_options("bdim_at_front", mesh_axis=mesh_axis)
    return _to_front(x, bdim, size)


def broadcast(x: ArrayLike, sz: int, axis: int, mesh_axis: str | None = None) -> Array:
    """Return `x` repeated along a new axis.

    Args:
      x: an array.
      sz: the size of the new axis.
      axis: the position of the new axis in the result.
      mesh_axis: only None.

    Raises:
      NotImplementedError: `mesh_axis` is not None.

    Examples:

      >>> from jax.interpreters import batching

      >>> batching.broadcast(jnp.array([7, 8]), 3, 1)
      Array([[7, 7, 7],
             [8, 8, 8]], dtype=int32)
    """
    refuse_options("broadcast", mesh_axis=mesh_axis)
    return broadcast_axis(x, sz, axis)


def moveaxis(x: ArrayLike, src: Any, dst: Any) -> Any:
    """Return `x` with one axis moved. The other axes keep their order.

    Args:
      x: an array.
      src: the position of the axis in `x`.
      dst: its position in the result.

    Examples:

      >>> from jax.interpreters import batching

      >>> batching.moveaxis(jnp.arange(6).reshape(2, 3), 0, 1)
      Array([[0, 3],
             [1, 4],
             [2, 5]], dtype=int32)
    """
    return move_axis(x, src, dst)


not_mapped: Any = None


def instantiate_zeros(tangent: Zero | ArrayLike) -> Array:
    """A tangent as a value: an array of zeros for `Zero`; other tangents unchanged.

    Examples:

      >>> from jax.interpreters import ad

      >>> ad.instantiate_zeros(ad.Zero(jax.typeof(jnp.ones(2)))), ad.instantiate_zeros(5.)
      (Array([0., 0.], dtype=float32), 5.0)
    """
    return instantiate(tangent)


def zeros_like_aval(aval: AbstractValue) -> Any:
    """An array of zeros of the shape and the dtype of a type.

    Examples:

      >>> from jax.interpreters import ad

      >>> ad.zeros_like_aval(jax.core.ShapedArray((2,), jnp.dtype("int32")))
      Array([0, 0], dtype=int32)
    """
    return zeros_of(aval)


def add_jaxvals(x: ArrayLike, y: ArrayLike) -> Any:
    """Return the sum of two values of one type, such as two cotangents.

    Args:
      x, y: arrays of one shape and dtype, or `Zero`. The sum of `Zero` and a value is the value.

    Examples:

      >>> from jax.interpreters import ad

      >>> ad.add_jaxvals(jnp.array([1., 2.]), jnp.array([10., 20.]))
      Array([11., 22.], dtype=float32)
    """
    return ad_tables.add_tangents(x, y)


def get_primitive_transpose(p: Any) -> Any:
    """The transpose rule of a primitive: ``(ct, *args, **params) -> [cotangent or None per operand]``.

    Raises:
      NotImplementedError: there is none.

    Examples:

      >>> from jax.interpreters import ad

      >>> unknown = ad.UndefinedPrimal(jax.typeof(jnp.ones(2)))
      >>> ad.get_primitive_transpose(lax.neg_p)(jnp.array([1., 2.]), unknown)
      [Array([-1., -2.], dtype=float32)]
    """
    return ad_tables.transpose_rules[p]


is_undefined_primal: Final = ad_tables.is_undefined
add_tangents: Final = ad_tables.add_tangents
UndefinedPrimal = ad_tables.UndefinedPrimal


def _canonical(x: Any) -> np.ndarray:
    """A NumPy array of a dtype that the options permit."""
    x = np.asarray(x)
    return x.astype(dtypes.canonicalize_dtype(x.dtype), copy=False)


class _Handlers(dict):
    """The conversion of values of a class to arrays: only NumPy's conversion can be registered for a class.

    Needed by TensorFlow Probability (its variables).
    """

    def __setitem__(self, cls: type, handler: Callable[..., Any]) -> None:
        if handler is not _canonical:
            raise NotImplementedError(
                f"canonicalize_dtype_handlers: values of {cls.__name__} can be read as numpy.ndarray is, whose handler may be"
                f" registered for them, got {handler!r}; or give the class a method __jax_array__"
            )
        pytype_aval_mappings.setdefault(cls, pytype_aval_mappings[np.ndarray])
        super().__setitem__(cls, handler)


pytype_aval_mappings = aval_functions
canonicalize_dtype_handlers: dict[type, Callable[..., Any]] = _Handlers({np.ndarray: _canonical})


def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    instantiate: bool = True,
    transform_stack: bool = True,
) -> tuple[Any, ...]:
    """Push tangents through a function of flat values.

    Args:
      fun: a `WrappedFun` or a function, from values to a list of values; with `has_aux`, to a pair of such a list and
        of other results.
      primals: its arguments.
      tangents: a tangent per argument: a value of the same shape, or `Zero`.
      has_aux: whether `fun` returns a pair.
      instantiate: whether tangents of results that are zero are values; otherwise they are `Zero`.
      transform_stack: no effect: operations keep the current named scopes.

    Returns:
      (results, their tangents), and with `has_aux` the rest of the result of `fun`.

    Examples:

      >>> from jax.interpreters import ad

      >>> def f(x, y):
      ...     return [x * y, jnp.floor(y)]
      ...
      >>> ad.jvp(f, [2., 3.], [1., 0.5])
      ([Array(6., ...), Array(3., ...)], [Array(4., ...), Array(0., ...)])
    """
    call = getattr(fun, "call_wrapped", fun)
    flat = call if has_aux else lambda *xs: (call(*xs), None)
    outs, moved, aux = jvp_flat_with_aux(flat, primals, tangents, JVP)
    moved = [instantiate_zeros(t) for t in moved] if instantiate else moved
    return (outs, moved, aux) if has_aux else (outs, moved)


def backward_pass(
    jaxpr: Jaxpr,
    transform_stack: bool,
    consts: Sequence[Any],
    primals_in: Sequence[Any],
    cts_in: Sequence[Any],
    *,
    return_logs: bool = False,
) -> Any:
    """Transpose a program that is linear in some of its arguments.

    Args:
      jaxpr: the program.
      transform_stack: names of scopes; the current scopes are used.
      consts: the values of its constants.
      primals_in: values, and `UndefinedPrimal` for the linear arguments.
      cts_in: a cotangent or `Zero` for each result.
      return_logs: also return the logs of backward rules.

    Returns:
      A cotangent or `Zero` for each argument (`Zero` for those that are values); with `return_logs` a pair of these
      and the dict of logs.

    Examples:

      >>> from jax.interpreters import ad

      >>> program = jax.make_jaxpr(lambda x: 3 * x)(1.)
      >>> linear_in = ad.UndefinedPrimal(program.in_avals[0])
      >>> ad.backward_pass(program, False, program.consts, [linear_in], [jnp.float32(2)])
      [Array(6., dtype=float32)]
    """
    program = jaxpr.replace(consts=list(consts))
    run_back = backward_pass_with_logs if return_logs else lambda *given: (_backward_pass(*given), {})
    back, logs = run_back(program, primals_in, cts_in)
    found = iter(back)
    cts = [next(found) if is_undefined_primal(x) else Zero.of(x) for x in primals_in]
    return (cts, logs) if return_logs else cts


def jvp_jaxpr(jaxpr: Jaxpr, nonzeros: Sequence[bool], instantiate: bool | Sequence[bool]) -> tuple[Jaxpr, list[bool]]:
    """The program of values and tangents (forward mode).

    Args:
      jaxpr: the program.
      nonzeros: a boolean per argument: whether it has a tangent.
      instantiate: a boolean per result: whether it gets a tangent even if it is zero.

    Returns:
      (program: arguments, tangents of those that have one -> results, tangents of those that have one; a boolean per
      result: whether it has a tangent).

    Examples:

      >>> from jax.interpreters import ad

      >>> program, has_tangent = ad.jvp_jaxpr(jax.make_jaxpr(lambda x: x * x)(1.), [True], False)
      >>> has_tangent, jax.core.eval_jaxpr(program, program.consts, 3., 1.)
      ([True], [Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True)])
    """
    wanted = (instantiate,) * len(jaxpr.outvars) if isinstance(instantiate, bool) else tuple(instantiate)
    pushed, active = _jvp_jaxpr(jaxpr, tuple(nonzeros), wanted)
    return pushed, list(active)


class _ZeroIfMapped:
    """For `batch_jaxpr_axes`: a result is mapped at axis 0 if it is mapped."""

    def __repr__(self) -> str:
        return "zero_if_mapped"


zero_if_mapped: Final = _ZeroIfMapped()


def batch_jaxpr_axes(
    closed_jaxpr: Jaxpr, axis_data: Any, in_axes: Sequence[int | None], out_axes_dest: Sequence[Any]
) -> tuple[Jaxpr, list[bool]]:
    """The program on batches.

    Args:
      closed_jaxpr: the program on elements.
      axis_data: the mapped axis, as the argument of a rule in `fancy_primitive_batchers`.
      in_axes: the mapped axis of each argument, or None.
      out_axes_dest: per result: an axis; None: not mapped; `zero_if_mapped`: axis 0 if it is mapped.

    Returns:
      (program, a boolean per result: whether it is mapped).

    Raises:
      ValueError: a mapped result has None in `out_axes_dest`.

    Examples:

      >>> from jax.interpreters import batching

      >>> doubling_p = jax.extend.core.Primitive("doubling")
      >>> doubling = jax.make_jaxpr(lambda x: 2 * x)(1.)
      >>> def rule(axis, args, dims):
      ...     program, (mapped,) = batching.batch_jaxpr_axes(doubling, axis, dims, [0])
      ...     return jax.core.eval_jaxpr(program, program.consts, *args)[0], 0 if mapped else None
      >>> batching.fancy_primitive_batchers[doubling_p] = rule
      >>> jax.vmap(doubling_p.bind)(jnp.arange(3.))
      Array([0., 2., 4.], dtype=float32)
    """
    batched, dims = batch_jaxpr(closed_jaxpr, axis_data, tuple(in_axes))
    wanted = [(d if d is None else 0) if w is zero_if_mapped else w for d, w in zip(dims, out_axes_dest, strict=True)]
    if list(dims) != wanted:
        placed = lambda *xs: place_all(run(batched, *xs), dims, wanted, axis_data.size)
        batched = staging.program_of(placed, batched.in_avals)
    return batched, [w is not None for w in wanted]


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None,
) -> None:
    """Register the `vmap` of a class of pytrees whose static data depend on their shapes.

    Args:
      data_type: the class.
      spec_type, axis_size_type: only `int`: an axis, and its size.
      to_elt: ``(function of an array, get_index, batch, axis) -> element``; the function maps an array and its axis.
      from_elt: ``(function of an array, size, element, axis) -> batch``.
      make_iota: only None.

    Examples:

      >>> from jax.interpreters import batching

      >>> class Signal:
      ...     def __init__(self, samples, length):
      ...         self.samples, self.length = samples, length
      ...
      >>> jax.tree_util.register_pytree_node(
      ...     Signal, lambda s: ((s.samples,), s.length), lambda length, parts: Signal(*parts, length))
      >>> def element(of_array, index, batch, axis):
      ...     return Signal(of_array(batch.samples, axis), batch.length // 2)
      ...
      >>> def batch(of_array, size, element, axis):
      ...     return Signal(of_array(size, element.samples, axis), element.length * size)
      ...
      >>> batching.register_vmappable(Signal, int, int, element, batch, None)
      >>> def louder(signal):
      ...     print(signal.samples.shape, signal.length)
      ...     return Signal(signal.samples * 2, signal.length)
      ...
      >>> out = jax.vmap(louder)(Signal(jnp.ones((2, 3)), 6))
      (3,) 3
      >>> out.samples.shape, out.length
      ((2, 3), 6)
      >>> batching.unregister_vmappable(Signal)
    """
    if spec_type is not int or axis_size_type is not int or make_iota is not None:
        raise NotImplementedError(
            f"register_vmappable of {data_type.__name__}: values are mapped along axes, so the types of specifications and"
            f" sizes are int, and there is no make_iota; got {spec_type}, {axis_size_type}, {make_iota}"
        )
    as_it_is = lambda x, axis: x  # the arrays are mapped already
    vmappable[data_type] = Vmappable(
        lambda x, axes: to_elt(as_it_is, None, x, axes[0]),
        lambda x, axes, size: from_elt(lambda size, x, axis: x, size, x, axes[0]),
    )


def make_iota(axis_size: int) -> Array:
    """Return the positions along a mapped axis, from 0.

    Examples:

      >>> from jax._src.interpreters import batching

      >>> batching.make_iota(3)
      Array([0, 1, 2], dtype=int32)
    """
    return iota(np.int32, axis_size)


def to_elt(trace: BatchTrace, get_idx: Callable[[], Any], x: Any, spec: int | None) -> Any:
    """Return the element of a batch, as the function that is mapped sees it.

    Args:
      trace: the trace of the mapped function.
      get_idx: returns the position of the element. It is not called: an array and an axis determine the elements.
      x: the batch: an array, or a value of a class of `register_vmappable`.
      spec: the axis along which it is mapped; None: `x` is the same for all elements.

    Examples:

      >>> from jax._src.interpreters import batching

      >>> table = jnp.array([[1., 2.], [3., 4.]])
      >>> def plus_first_of_row(x):
      ...     row = batching.to_elt(x._trace, None, table, 0)
      ...     return x + row[0]
      ...
      >>> jax.vmap(plus_first_of_row)(jnp.array([10., 20.]))
      Array([11., 23.], dtype=float32)
    """
    if spec is None:
        return x
    known = vmappable.get(type(x))
    if known is not None:
        leaves, tree = pytree.tree_flatten(x)
        elements = [to_elt(trace, get_idx, leaf, spec) for leaf in leaves]
        return known.element(pytree.tree_unflatten(tree, elements), [spec] * len(leaves))
    rank = aval_of(x).ndim
    if not -rank <= spec < rank:
        raise ValueError(f"to_elt: the mapped axis is {spec}, but the array has rank {rank}")
    return batched(trace, x, spec % rank)


def unregister_vmappable(data_type: type) -> None:
    """Undo `register_vmappable`.

    Examples:

      >>> from jax.interpreters import batching

      >>> class Reading:
      ...     def __init__(self, value, unit):
      ...         self.value, self.unit = value, unit
      ...
      >>> jax.tree_util.register_pytree_node(
      ...     Reading, lambda r: ((r.value,), r.unit), lambda unit, parts: Reading(*parts, unit))
      >>> one = lambda of_array, index, batch, axis: Reading(of_array(batch.value, axis), "one of many")
      >>> many = lambda of_array, size, element, axis: Reading(of_array(size, element.value, axis), "many")
      >>> batching.register_vmappable(Reading, int, int, one, many, None)
      >>> readings = Reading(jnp.ones(3), "volt")
      >>> jax.vmap(lambda x: x)(readings).unit
      'many'
      >>> batching.unregister_vmappable(Reading)
      >>> jax.vmap(lambda x: x)(readings).unit
      'volt'
    """
    del vmappable[data_type]


__all__ = [
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_tangents",
    "apply_primitive",
    "axis_primitive_batchers",
    "backward_pass",
    "batch_jaxpr_axes",
    "bdim_at_front",
    "broadcast",
    "defbilinear",
    "defbroadcasting",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "defreducer",
    "defvectorized",
    "canonicalize_dtype_handlers",
    "fancy_primitive_batchers",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "jvp",
    "jvp_jaxpr",
    "make_iota",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
    "primitive_jvps",
    "primitive_transposes",
    "pytype_aval_mappings",
    "register_vmappable",
    "to_elt",
    "unregister_vmappable",
    "zero_if_mapped",
    "zeros_like_aval",
]
