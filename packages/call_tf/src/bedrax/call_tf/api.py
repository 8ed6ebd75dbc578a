"""`call_tf`: a TensorFlow function as a function of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.call_tf import border
from bedrax.call_tf.function import TfFunction, declared_types
from bedrax.call_tf.primitive import call_tf_p
from bedrax.core.avals import aval_of
from bedrax.core.source import api_boundary
from bedrax.core.staging import function_name


class UnspecifiedOutputShapeDtype:
    """The default of `output_shape_dtype`: TensorFlow's shape inference finds the types of the results.

    Examples:

      >>> import importlib
      >>> from jax.experimental import jax2tf
      >>> call_tf = importlib.import_module("jax.experimental.jax2tf.call_tf")  # its name in the package is the function

      >>> import inspect
      >>> default = inspect.signature(jax2tf.call_tf).parameters["output_shape_dtype"].default
      >>> isinstance(default, call_tf.UnspecifiedOutputShapeDtype)
      True
    """


def call_tf(
    callable_tf: Callable[..., Any],
    has_side_effects: bool = True,
    ordered: bool = False,
    output_shape_dtype: Any = UnspecifiedOutputShapeDtype(),  # noqa: B008
    call_tf_graph: bool = False,
) -> Callable[..., Any]:
    """Call a TensorFlow function from a program of arrays.

    Outside `jit` (and `scan`, ...), TensorFlow runs the function eagerly. Inside, TensorFlow compiles
    it for XLA and the result becomes part of the program, so it must be compilable and have results of
    static shapes. Captured variables and tensors are then constants: their values at the time
    of compilation. Differentiation, forward and reverse, calls TensorFlow's gradient, with custom gradients.
    There are no gradients with respect to captured variables. A complex gradient is passed
    unchanged: TensorFlow's is the conjugate of ours, unless the function is itself a converted one.

    Args:
      callable_tf: takes and returns pytrees of tensors.
      has_side_effects: whether it has effects. If not, calls with unused results may be removed, and
        TensorFlow vectorizes it for `vmap`; otherwise `vmap` calls it for one element after the other.
      ordered: keep the program order of all ordered calls. Inside `jit` it needs `call_tf_graph`.
      output_shape_dtype: a pytree like the result, of objects with ``shape`` and ``dtype``, for functions whose result
        shapes TensorFlow cannot infer; None stands for no result. It is checked, except for shapes that are unknown
        before the program runs. Sizes may be expressions of the symbolic dimensions of the arguments. Without it, sizes
        are found if they are sums of those and of products of two, or quotients by 2, 3, 4 or 8.
      call_tf_graph: keep the TensorFlow function as such, for a program that `jax2tf.convert`
        converts natively; then XLA need not compile it alone. Only possible there.

    Returns:
      The function of arrays; tensors among its arguments are accepted, too.

    Raises (when called):
      ValueError: the function cannot be compiled, or its results differ from the declared ones, are no
        numbers, or have unknown shapes; the message has the remedy.

    Examples:

      >>> import tensorflow as tf
      >>> from jax.experimental import jax2tf

      >>> f = jax2tf.call_tf(lambda x: tf.math.cumsum(x))
      >>> f(jnp.array([1., 2., 3.])), jax.grad(lambda x: f(x)[-1])(jnp.ones(3))
      (Array([1., 3., 6.], dtype=float32), Array([1., 1., 1.], dtype=float32))
    """
    if not callable(callable_tf):
        raise TypeError(f"call_tf expects a TensorFlow function, got {callable_tf!r} of type {type(callable_tf)}")
    declared = None
    if not isinstance(output_shape_dtype, UnspecifiedOutputShapeDtype):
        declared = declared_types(output_shape_dtype)
    name = function_name(callable_tf)
    functions: dict[Any, TfFunction] = {}  # by structure of the arguments

    @api_boundary
    def call_tf_fun(*args, **kwargs):
        leaves, in_tree = pytree.tree_flatten((args, kwargs))
        fun = functions.get(in_tree)
        if fun is None:
            fun = functions[in_tree] = TfFunction(callable_tf, name, in_tree, declared)
        if border.only_eager(leaves):
            return border.call_eagerly(fun, leaves)
        args = [_argument(x) for x in leaves]
        call = lambda: call_tf_p.bind(
            *args,
            fun=fun,
            output_avals=declared and declared[1],
            has_side_effects=has_side_effects,
            ordered=ordered,
            call_tf_graph=call_tf_graph,
        )
        return fun.structured(call, args)

    call_tf_fun.__name__ = f"call_tf({name})"
    return call_tf_fun


def _argument(x: Any) -> Any:
    """A leaf of the arguments as an array."""
    try:
        aval_of(x)
        return x
    except TypeError:
        if not type(x).__module__.startswith("tensorflow") or not hasattr(x, "numpy"):
            raise TypeError(
                f"call_tf got the argument {x!r} of type {type(x)}, which is not an array. Bind what is not an array to the"
                " TensorFlow function, for example with functools.partial"
            ) from None
    return np.array(x.numpy())
