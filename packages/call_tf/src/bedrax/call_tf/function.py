"""`TfFunction`: the user's TensorFlow function on flat lists of tensors, and its vector-Jacobian product."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from bedrax import pytree
from bedrax.call_tf import border
from bedrax.core import dims, dtypes
from bedrax.core.avals import ShapedArray
from bedrax.tf import tensorflow as tf

LIMITATIONS = "See 'Limitations of call_tf' in the documentation of jax2tf."


class TfFunction:
    """A TensorFlow function for one structure of arguments. Compares by identity.

    Attributes:
      name: of the user's function.
      out_tree: structure of the results of this thread's last call; a function may have another one for other types.
      declared: the structure and types of its results that the user declared, or None.
    """

    def __init__(
        self, callable_tf: Callable, name: str, in_tree: Any, declared: tuple[Any, Sequence[ShapedArray]] | None
    ):
        self.callable_tf = callable_tf
        self.name = name
        self.in_tree = in_tree
        self.declared = declared
        self._last = threading.local()
        self._staged: Any = None
        self._out_trees: dict[tuple, Any] = {}  # by types of tensors, where TensorFlow has traced the function
        self._vjps: dict[tuple, TfFunction] = {}

    def __repr__(self):
        return self.name

    @property
    def out_tree(self) -> Any:
        return self._last.out_tree

    @out_tree.setter
    def out_tree(self, tree: Any) -> None:
        self._last.out_tree = tree

    def __call__(self, *tensors) -> list:
        """Call the user's function; results are tensors of canonical dtypes, as declared.

        Raises:
          ValueError: a result is no array of numbers, or not what was declared.
        """
        results, self.out_tree = self.run(*tensors)
        return results

    def run(self, *tensors) -> tuple[list, Any]:
        """(results, their structure) of a call, whichever thread it is in."""
        args, kwargs = pytree.tree_unflatten(self.in_tree, tensors)
        leaves, tree = pytree.tree_flatten(self.callable_tf(*args, **kwargs))
        results = [_numeric(leaf) for leaf in leaves]
        return results if self.declared is None else self._checked(results, tree), tree

    def _checked(self, results: list, out_tree: Any) -> list:
        tree, types = self.declared
        if out_tree != tree:
            raise ValueError(
                "The pytree of the TensorFlow function results does not match the pytree of the declared"
                f" output_shape_dtype:\nresults pytree: {out_tree}\noutput_shape_dtype tree: {tree}"
            )
        checked = []
        for i, (x, aval) in enumerate(zip(results, types, strict=True)):
            wanted = border.tensor_spec(aval)
            if x.dtype != wanted.dtype or not x.shape.is_compatible_with(wanted.shape):
                raise ValueError(
                    "The shapes or dtypes returned by the TensorFlow function do not match the declared"
                    f" output_shape_dtype:\nResult[{i}] is {x.dtype.name}{_shape_text(x.shape)} vs. expected"
                    f" {wanted.dtype.name}{_shape_text(wanted.shape)}"
                )
            checked.append(x if x.shape.is_fully_defined() else tf.ensure_shape(x, wanted.shape))
        return checked

    def staged(self) -> Any:
        """The flat function as a `tf.function` that XLA must compile."""
        if self._staged is None:

            def call_tf(*tensors):
                results, self._out_trees[_types_of(tensors)] = self.run(*tensors)
                return tuple(results)

            call_tf.__name__ = _identifier(self.name)
            self._staged = tf.function(call_tf, autograph=False, jit_compile=True)
        return self._staged

    def concrete(self, avals: Sequence[ShapedArray]) -> Any:
        """Trace with TensorFlow at these types (symbolic dimensions unknown); a `tf.ConcreteFunction`."""
        specs = [border.tensor_spec(a) for a in avals]
        made = border.outside_graphs(lambda: self.staged().get_concrete_function(*specs))
        self.out_tree = self._out_trees[_types_of(made.inputs[: len(specs)])]  # may be a trace for more types
        return made

    def result_types(self, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        """Types of the results, found by TensorFlow's shape inference.

        Raises:
          ValueError: a shape depends on values, or on symbolic dimensions.
        """
        found = self.concrete(avals).outputs
        if not all(x.shape.is_fully_defined() for x in found):
            raise ValueError(
                "call_tf cannot call functions whose output has dynamic shape. Found output shapes:"
                f" {[x.shape for x in found]} of '{self.name}' for arguments {[a.str_short() for a in avals]}."
                " Consider using the `output_shape_dtype` argument to call_tf, which tells the shapes that"
                f" TensorFlow cannot infer. {LIMITATIONS}"
            )
        return [ShapedArray(tuple(x.shape), border.numpy_dtype(x)) for x in found]

    def vjp(self, avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]) -> TfFunction:
        """The function ``(*args, *cotangents of inexact results) -> gradients of inexact args``."""
        active = tuple(dtypes.is_inexact(a.dtype) for a in avals)
        out_active = tuple(dtypes.is_inexact(a.dtype) for a in out_avals)
        found = self._vjps.get((active, out_active))
        if found is None:
            count = len(active) + sum(out_active)
            found = self._vjps[active, out_active] = TfFunction(
                _gradient(self, active, out_active), f"vjp_of_{self.name}",
                pytree.tree_structure(((0,) * count, {})), None,
            )  # fmt: skip
        return found


def _types_of(tensors: Sequence[Any]) -> tuple:
    return tuple([(None if x.shape.rank is None else tuple(x.shape), x.dtype) for x in tensors])


def _gradient(fun: TfFunction, active: tuple[bool, ...], out_active: tuple[bool, ...]) -> Callable:
    def vjp_tf(*tensors):
        args, cts = tensors[: len(active)], tensors[len(active) :]
        watched = [x for x, m in zip(args, active, strict=True) if m]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(watched)
            results = [x for x, m in zip(fun.run(*args)[0], out_active, strict=True) if m]
        if not results:
            return [tf.zeros_like(x) for x in watched]
        found = tape.gradient(
            results, watched, output_gradients=list(cts), unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        return [tf.convert_to_tensor(x) for x in found]

    return vjp_tf


def _numeric(leaf: Any) -> Any:
    """A result as a tensor of a dtype that arrays have."""
    try:
        tensor = tf.convert_to_tensor(leaf)
        dtype = border.numpy_dtype(tensor)
    except (TypeError, ValueError):
        dtype = None
    if dtype is None:
        raise ValueError(f"The called TF function returns a result that is not convertible to JAX: {leaf}.")
    wanted = tf.dtypes.as_dtype(dtype)
    return tensor if tensor.dtype == wanted else tf.cast(tensor, wanted)


def _shape_text(shape: Any) -> str:
    return "[...]" if shape.rank is None else "[" + ",".join("?" if d is None else str(d) for d in shape) + "]"


def _identifier(name: str) -> str:
    found = "".join(c if c.isalnum() else "_" for c in name)
    return found if found[:1].isalpha() else f"f_{found}"


def declared_types(output_shape_dtype: Any) -> tuple[Any, tuple[ShapedArray, ...]]:
    """Structure and types of declared results: a pytree of objects with a shape and a dtype."""
    leaves, tree = pytree.tree_flatten(output_shape_dtype)
    types = []
    for leaf in leaves:
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            raise TypeError(
                "output_shape_dtype of call_tf must be a pytree of objects with a shape and a dtype, such as"
                f" jax.ShapeDtypeStruct; got {leaf!r}"
            )
        types.append(ShapedArray(tuple(leaf.shape), dtypes.canonicalize_dtype(leaf.dtype)))
    return tree, tuple(types)


def has_symbolic(avals: Sequence[ShapedArray]) -> bool:
    """Whether a type has a symbolic dimension."""
    return not all(dims.is_constant_shape(a.shape) for a in avals)
