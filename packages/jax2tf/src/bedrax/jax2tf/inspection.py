"""Inspection of conversions, and the checks that a conversion can omit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from bedrax import pytree, shape_poly
from bedrax.core import dtypes, staging
from bedrax.core.avals import ShapeDtypeStruct, aval_of
from bedrax.jax2tf import checks
from bedrax.jax2tf.arguments import to_tensor
from bedrax.jax2tf.call import PolyShape, argument_names, specifications
from bedrax.jax2tf.convert import convert
from bedrax.tf import tensorflow as tf
from bedrax.tf.tables import in_tf_call, tf_functions
from bedrax.tf.types import numpy_dtype, tf_dtype
from bedrax.xla_backend import export


class DisabledSafetyCheck(export.DisabledSafetyCheck):
    """A check that a converted program omits. The class methods make it.

    Examples:

      >>> from jax.experimental import jax2tf

      >>> check = jax2tf.DisabledSafetyCheck.custom_call("library_function")
      >>> check.is_custom_call()
      'library_function'
    """

    __slots__ = ()

    @classmethod
    def shape_assertions(cls) -> DisabledSafetyCheck:
        """Run graphs without a check that the arguments' sizes fit `polymorphic_shapes`."""
        return cls(checks.SHAPE_ASSERTIONS)


def operations_of(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> list[tuple[str, str, list[str], int]]:
    """The operations of the graph of ordinary TensorFlow operations that a function becomes.

    Args:
      fun: a function.
      args, kwargs: its arguments: arrays, or other objects with a shape and a dtype.

    Returns:
      (name, kind, names of the inputs, depth) of each operation. Those of functions in the graph follow it, one deeper.
      A name has the primitive, the user's file and line: ``dot_general.model.12/MatMul``.
    """

    def spec(x):
        aval = aval_of(x) if not isinstance(x, ShapeDtypeStruct) else x
        return tf.TensorSpec(aval.shape, tf_dtype(aval.dtype))

    function = tf.function(convert(fun, native_serialization=False), autograph=False)
    specs = pytree.tree_map(spec, (tuple(args), kwargs))
    graph = function.get_concrete_function(*specs[0], **specs[1]).graph.as_graph_def()
    found = [(n.name, n.op, list(n.input), 0) for n in graph.node]
    for inner in graph.library.function:
        found.append((inner.signature.name, "function", [a.name for a in inner.signature.input_arg], 0))
        found += [(n.name, n.op, list(n.input), 1) for n in inner.node_def]
    return found


def dtype_of_val(val: Any) -> Any:
    """The TensorFlow dtype of an argument of a converted function.

    Args:
      val: an array, a Python scalar, or a tensor, variable or `tf.TensorSpec`.

    Raises:
      TypeError: it is not such an object, or TensorFlow has no such dtype.

    Examples:

      >>> import tensorflow as tf
      >>> from jax.experimental import jax2tf

      >>> jax2tf.dtype_of_val(3), jax2tf.dtype_of_val(jnp.ones(2, jnp.bfloat16)), jax2tf.dtype_of_val(tf.constant(2.))
      (tf.int32, tf.bfloat16, tf.float32)
    """
    if isinstance(val, tf.TensorSpec):
        return tf_dtype(dtypes.canonicalize_dtype(numpy_dtype(val.dtype)))
    return to_tensor(val).tensor.dtype


def preprocess_arg_tf(arg_idx: int, arg_tf: Any) -> Any:
    """Return the tensor (or variable) for one argument of a converted function.

    Args:
      arg_idx: the position of the argument, for the message of an error.
      arg_tf: a tensor, a variable, a NumPy array or a Python number. A Python number gets the default dtype of its
        kind, and a 64-bit value is narrowed unless ``jax_enable_x64`` is set.

    Raises:
      TypeError, ValueError: it cannot be converted; the message names the argument.

    Examples:

      >>> from jax.experimental import jax2tf
      >>> from jax.experimental.jax2tf import jax2tf as inside

      >>> inside.preprocess_arg_tf(0, np.float32(2)).dtype
      tf.float32
      >>> try:
      ...     inside.preprocess_arg_tf(1, object())
      ... except TypeError as error:
      ...     print("argument 1" in str(error))
      ...
      True
    """
    try:
        return to_tensor(arg_tf).tensor
    except (TypeError, ValueError) as error:
        # The error keeps its class and its attributes: a class may need other arguments than a message.
        error.args = (f"argument {arg_idx} of a converted function: {error}", *error.args[1:])
        raise


def inside_call_tf() -> bool:
    """Whether the current code belongs to a TensorFlow function that a program calls (`call_tf`).

    Examples:

      >>> from jax.experimental import jax2tf
      >>> from jax.experimental.jax2tf import jax2tf as inside

      >>> seen = []
      >>> _ = jax2tf.call_tf(lambda x: (seen.append(inside.inside_call_tf()), x)[1])(1.)
      >>> inside.inside_call_tf(), seen[-1]
      (False, True)
    """
    return in_tf_call.get()


def get_thread_local_state_call_tf_concrete_function_list() -> list[Any] | None:
    """The list of concrete functions of the native program that this thread makes now; None if there is none.

    Examples:

      >>> from jax.experimental import jax2tf
      >>> from jax.experimental.jax2tf import jax2tf as inside

      >>> print(inside.get_thread_local_state_call_tf_concrete_function_list())
      None
    """
    return tf_functions.get()


PartitionsOrReplicated = tuple[int, ...] | None  # the type of `split_to_logical_devices`'s argument


def eval_polymorphic_shape(fun_jax: Callable[..., Any], *, polymorphic_shapes: Any = None) -> Callable[..., Any]:
    """The types of a function's results for unknown sizes of its arguments.

    Args:
      fun_jax: a function of arrays.
      polymorphic_shapes: as for `convert`.

    Returns:
      A function of the arguments, or of objects with their ``shape`` and ``dtype``. It returns the types of the results
      (`ShapeDtypeStruct`), and their shape specifications, which can be the `polymorphic_shapes` of another function.

    Raises:
      TypeError: `fun_jax` is not a function.

    Examples:

      >>> from jax.experimental import jax2tf

      >>> x = jax.ShapeDtypeStruct((5, 3), jnp.float32)
      >>> jax2tf.eval_polymorphic_shape(lambda x: jnp.concatenate([x, x]), polymorphic_shapes=["(b, _)"])(x)[1]
      '(2*b, 3)'
    """
    if not callable(fun_jax):
        raise TypeError(f"jax2tf.eval_polymorphic_shape expects a function of arrays, got {fun_jax!r}")

    def types_of_results(*args, **kwargs):
        leaves, in_tree = pytree.tree_flatten((args, kwargs))
        given = [
            (tuple(x.shape), _dtype(x)) if hasattr(x, "shape") else (aval_of(x).shape, aval_of(x).dtype) for x in leaves
        ]
        specs = specifications(in_tree, args, kwargs, polymorphic_shapes)
        shapes = shape_poly.symbolic_shapes([shape for shape, _ in given], specs, (), argument_names(in_tree))
        avals = [ShapeDtypeStruct(s, dtype) for s, (_, dtype) in zip(shapes, given, strict=True)]
        jaxpr, out_tree = staging.trace_to_jaxpr(staging.flat_fun(fun_jax, in_tree), [aval_of(a) for a in avals])
        found = [ShapeDtypeStruct(a.shape, a.dtype) for a in jaxpr.out_avals]
        written = [str(PolyShape(*a.shape)) for a in jaxpr.out_avals]
        return pytree.tree_unflatten(out_tree, found), pytree.tree_unflatten(out_tree, written)

    return types_of_results


def _dtype(x: Any) -> Any:
    return x.dtype if dtypes.is_extended(x.dtype) else dtypes.canonicalize_dtype(numpy_dtype(x.dtype))


def split_to_logical_devices(tensor: Any, partition_dimensions: Sequence[int] | None) -> Any:
    """Set the partition of a tensor over devices, in a graph that XLA compiles for several devices.

    Args:
      tensor: a tensor of a graph.
      partition_dimensions: the number of parts of each axis, or None: every device has the whole tensor.

    Returns:
      The tensor with its partition.

    Raises:
      ValueError: the number of entries differs from the rank.

    Examples:

      >>> import tensorflow as tf
      >>> from jax.experimental import jax2tf

      >>> @tf.function(autograph=False)
      ... def f(x):
      ...     return jax2tf.split_to_logical_devices(2 * x, [2, 1])
      ...
      >>> graph = f.get_concrete_function(tf.TensorSpec([4, 3])).graph
      >>> [op.type for op in graph.get_operations() if "Sharding" in op.type]
      ['XlaSharding']
    """
    from tensorflow.python.compiler.xla.experimental import xla_sharding

    if partition_dimensions is None:
        return xla_sharding.replicate(tensor, use_sharding_op=True)
    parts = list(partition_dimensions)
    if len(parts) != tensor.shape.rank or any(n < 1 for n in parts):
        raise ValueError(
            "jax2tf.split_to_logical_devices needs the number of parts of each axis, each at least 1: got"
            f" {partition_dimensions} for a tensor of shape {tensor.shape}"
        )
    devices = numpy.arange(math.prod(parts)).reshape(parts)
    return xla_sharding.tile(tensor, devices, use_sharding_op=True)
