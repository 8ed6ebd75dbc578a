"""`TfFunction`: the user's TensorFlow function on flat lists of tensors, and its vector-Jacobian product."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from bedrax import pytree
from bedrax.call_tf import border, derived
from bedrax.call_tf.inference import inferred_shapes
from bedrax.core import dims, dtypes
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.tf import tensorflow as tf
from bedrax.tf import types
from bedrax.tf.tables import in_tf_call

LIMITATIONS = "See 'Limitations of call_tf' in the documentation of jax2tf."


class TfFunction:
    """A TensorFlow function for one structure of arguments. Compares by identity.

    Attributes:
      name: the name of the user's function.
      declared: the declared structure and types of its results, or None.
    """

    def __init__(
        self,
        callable_tf: Callable[..., Any],
        name: str,
        in_tree: Any,
        declared: tuple[Any, Sequence[ShapedArray]] | None,
    ) -> None:
        self.callable_tf = callable_tf
        self.name = name
        self.in_tree = in_tree
        self.declared = declared
        self._last = threading.local()
        self._staged: Any = None
        self._out_trees: dict[tuple[Any, ...], Any] = {}  # by types of tensors
        self._traces: dict[tuple[Any, ...], Any] = {}  # of a `tf.function`, by types of arrays
        self._has_traces: bool | None = None  # unknown
        self._derived: dict[tuple[Any, ...], TfFunction] = {}
        # For a function on stacks: the function on elements, ... Its derivative is that of the elements, on stacks:
        # TensorFlow's derivatives of its loops and of its vectorization are bad.
        self._stacks: tuple[TfFunction, tuple[bool, ...], bool] | None = None

    def __repr__(self) -> str:
        return self.name

    def __call__(self, *tensors: Any) -> list[Any]:
        """Call the user's function; results are tensors of canonical dtypes, as declared.

        Raises:
          ValueError: a result is not an array of numbers, or differs from the declaration.
        """
        return self.run(*tensors)

    def run(self, *tensors: Any) -> list[Any]:
        results, tree = self.results(tensors)
        self._last.out_tree = tree
        if not border.calls_here():  # the caller that needs the structure is in another thread, or comes later
            self._out_trees[_types_of(tensors)] = tree
        return results

    def results(self, tensors: Sequence[Any], arrays: Sequence[Any] | None = None) -> tuple[list[Any], Any]:
        """The results of `run`, and their structure.

        Args:
          arrays: the arrays of the tensors, if TensorFlow runs eagerly and all are arrays.
        """
        args, kwargs = pytree.tree_unflatten(self.in_tree, tensors)
        outer = in_tf_call.set(True)
        try:
            found = self._called(args, kwargs, arrays)
        finally:
            in_tf_call.reset(outer)
        leaves, tree = pytree.tree_flatten(found)
        found = [_numeric(leaf) for leaf in leaves]
        return found if self.declared is None else self._checked(found, tree), tree

    def _called(self, args: Any, kwargs: Any, arrays: Sequence[Any] | None) -> Any:
        if arrays is None or self._has_traces is False or not _traces_are_kept():
            return self.callable_tf(*args, **kwargs)
        key = tuple([(x.shape, x.dtype) for x in arrays])
        trace = self._traces.get(key)
        if trace is not None:
            return trace(*args, **kwargs)
        found = self.callable_tf(*args, **kwargs)  # first, because it may make variables
        self._keep_trace(key, args, kwargs)
        return found

    def _keep_trace(self, key: tuple, args: Any, kwargs: Any) -> None:
        if self._has_traces is None:
            # A Python object is a part of the trace: another object needs another trace.
            self._has_traces = isinstance(self.callable_tf, tf.types.experimental.PolymorphicFunction) and _is_plain(
                self.in_tree
            )
        if self._has_traces:
            self._traces[key] = self.callable_tf.get_concrete_function(*args, **kwargs)

    def structured(self, call: Callable[..., Any], args: Sequence[Any]) -> Any:
        """The results of ``call()``, which calls this function with `args`, in their structure.

        This is the structure of a call in this thread during ``call()``, or else of a call at these types.
        """
        last = self._last
        last.out_tree = None
        outs = call()
        tree = last.out_tree
        if tree is None or tree.num_leaves != len(outs):
            tree = self._out_trees[_types_of([border.tensor_spec(aval_of(x)) for x in args])]
        return pytree.tree_unflatten(tree, outs)

    def _checked(self, results: list, out_tree: Any) -> list:
        tree, declared = self.declared
        if out_tree != tree:
            raise ValueError(
                "The pytree of the TensorFlow function results does not match the pytree of the declared"
                f" output_shape_dtype:\nresults pytree: {out_tree}\noutput_shape_dtype tree: {tree}"
            )
        checked = []
        for i, (x, aval) in enumerate(zip(results, declared, strict=True)):
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
                return tuple(self.run(*tensors))

            call_tf.__name__ = _identifier(self.name)
            self._staged = tf.function(call_tf, autograph=False, jit_compile=True)
        return self._staged

    def concrete(self, avals: Sequence[ShapedArray]) -> Any:
        """Trace with TensorFlow at these types (symbolic dimensions unknown); a `tf.ConcreteFunction`."""
        specs = [border.tensor_spec(a) for a in avals]
        return border.outside_graphs(lambda: self.traced(specs))

    def traced(self, specs: Sequence[Any]) -> Any:
        """The same for `tf.TensorSpec`s, in the graph that TensorFlow may be tracing."""
        made = self.staged().get_concrete_function(*specs)
        tree = self._out_trees[_types_of(made.inputs[: len(specs)])]  # may be a trace for several types
        self._out_trees[_types_of(specs)] = self._last.out_tree = tree
        return made

    def result_types(self, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        """Types of the results, found by TensorFlow's shape inference.

        Raises:
          ValueError: a shape depends on values, or on symbolic dimensions in an unsupported way.
        """
        found = self.concrete(avals).outputs
        shapes = [x.shape if x.shape.is_fully_defined() else None for x in found]
        if None in shapes and has_symbolic(avals) and all(x.shape.rank is not None for x in found):
            shapes = self._inferred(tuple(avals)) or shapes
        if None in shapes:
            raise ValueError(
                "call_tf cannot call functions whose output has dynamic shape. Found output shapes:"
                f" {[x.shape for x in found]} of '{self.name}' for arguments {[a.str_short() for a in avals]}."
                " Consider using the `output_shape_dtype` argument to call_tf, which declares the shapes that"
                f" TensorFlow cannot infer. {LIMITATIONS}"
            )
        return [ShapedArray(tuple(s), border.numpy_dtype(x)) for s, x in zip(shapes, found, strict=True)]

    def _inferred(self, avals: tuple[ShapedArray, ...]) -> list[tuple] | None:
        """The shapes of results in terms of symbolic dimensions; the most recent ones of each thread are cached."""
        known = getattr(self._last, "inferred", None)
        if known is None or known[0] != avals:
            known = self._last.inferred = avals, inferred_shapes(avals, self._shapes_at)
        return known[1]

    def _shapes_at(self, avals: Sequence[ShapedArray]) -> list[tuple] | None:
        """The shapes of results for static types, with None for unknown sizes; None if the function raises for them."""
        specs = [border.tensor_spec(a) for a in avals]
        flat = tf.function(lambda *tensors: tuple(self.results(tensors)[0]), autograph=False)
        try:
            made = border.outside_graphs(lambda: flat.get_concrete_function(*specs))
            return [tuple(x.shape) for x in made.outputs]
        except (ValueError, TypeError, tf.errors.OpError):
            return None

    def vjp(self, active: tuple[bool, ...], out_active: tuple[bool, ...]) -> TfFunction:
        """The function ``(*args, *cotangents of active results) -> gradients of active args``."""
        if self._stacks is not None:
            one, mapped, effects = self._stacks
            found = one.vjp(active, out_active).batched(mapped + (True,) * sum(out_active), effects)
            whole = tuple([m for m, a in zip(mapped, active, strict=True) if a])
            return found if all(whole) else found._from_this("vjp", derived.summed, whole, None, len(found._stacks[1]))
        return self._from_this("vjp", derived.pulled_back, active, out_active, len(active) + sum(out_active))

    def jvp(self, active: tuple[bool, ...], out_active: tuple[bool, ...]) -> TfFunction:
        """The function ``(*args, *tangents of active args) -> tangents of active results``."""
        if self._stacks is not None:
            one, mapped, effects = self._stacks
            tangents = tuple([m for m, a in zip(mapped, active, strict=True) if a])
            return one.jvp(active, out_active).batched(mapped + tangents, effects)
        return self._from_this("jvp", derived.pushed_forward, active, out_active, len(active) + sum(active))

    def batched(self, mapped: tuple[bool, ...], effects: bool) -> TfFunction:
        """The function on stacks, along axis 0, of those arguments that are mapped; it returns stacks.

        Args:
          effects: whether calls may have effects: then there is one for each element, in order.
        """
        found = self._from_this("vmap", derived.batched, mapped, effects, len(mapped))
        found._stacks = self, mapped, effects
        return found

    def _from_this(self, kind: str, make: Callable, first: Any, second: Any, num_args: int) -> TfFunction:
        key = kind, first, second
        found = self._derived.get(key)
        if found is None:
            tree = pytree.tree_structure(((0,) * num_args, {}))
            made = TfFunction(make(self, first, second), f"{kind}_of_{self.name}", tree, None)
            found = self._derived.setdefault(key, made)
        return found


def _traces_are_kept() -> bool:
    """Whether the trace of a `tf.function` depends on types only."""
    return not (tf.config.functions_run_eagerly() or tf.distribute.has_strategy())


def _is_plain(tree: Any) -> bool:
    """Whether a structure consists of tuples, lists and dictionaries."""
    node = tree.node_data()
    return node is None or (node[0] in (tuple, list, dict, type(None)) and all(map(_is_plain, tree.children())))


def _types_of(tensors: Sequence[Any]) -> tuple:
    return tuple([(None if x.shape.rank is None else tuple(x.shape), x.dtype) for x in tensors])


def _numeric(leaf: Any) -> Any:
    """A result as a tensor of a dtype of arrays."""
    try:
        tensor = leaf if isinstance(leaf, tf.Tensor) else tf.convert_to_tensor(leaf)
        if tensor.dtype is tf.float32:
            return tensor
        given = types.numpy_dtype(tensor.dtype)
    except (TypeError, ValueError):
        raise ValueError(f"The called TF function returns a result that is not convertible to JAX: {leaf}.") from None
    dtype = dtypes.canonicalize_dtype(given)
    return tensor if given == dtype else tf.cast(tensor, types.tf_dtype(dtype))


def _shape_text(shape: Any) -> str:
    return "[...]" if shape.rank is None else "[" + ",".join("?" if d is None else str(d) for d in shape) + "]"


def _identifier(name: str) -> str:
    found = "".join(c if c.isalnum() else "_" for c in name)
    return found if found[:1].isalpha() else f"f_{found}"


def declared_types(output_shape_dtype: Any) -> tuple[Any, tuple[ShapedArray, ...]]:
    """Structure and types of declared results: a pytree of objects with a shape and a dtype."""
    leaves, tree = pytree.tree_flatten(output_shape_dtype)
    declared = []
    for leaf in leaves:
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            raise TypeError(
                "output_shape_dtype of call_tf must be a pytree of objects with a shape and a dtype, such as"
                f" jax.ShapeDtypeStruct; got {leaf!r}"
            )
        declared.append(ShapedArray(tuple(leaf.shape), dtypes.canonicalize_dtype(leaf.dtype)))
    return tree, tuple(declared)


def has_symbolic(avals: Sequence[ShapedArray]) -> bool:
    """Whether a type has a symbolic dimension."""
    return not all(dims.is_constant_shape(a.shape) for a in avals)
