"""Functions of tensors from others: vector-Jacobian and Jacobian-vector products, functions of stacks.

Each takes a `TfFunction` and returns a function of flat tensors, which runs it by ``fun.run(*tensors)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bedrax.tf import tensorflow as tf

_ZERO = "zero"  # tf.UnconnectedGradients.ZERO, before TensorFlow is loaded


def pulled_back(fun: Any, active: Sequence[bool], out_active: Sequence[bool]) -> Callable[..., Any]:
    """``(*args, *cotangents of inexact results) -> gradients of active args``."""

    def vjp_tf(*tensors):
        args, cts = tensors[: len(active)], tensors[len(active) :]
        watched = [x for x, m in zip(args, active, strict=True) if m]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(watched)
            results = [x for x, m in zip(fun.run(*args), out_active, strict=True) if m]
        if not results:
            return [tf.zeros_like(x) for x in watched]
        found = tape.gradient(results, watched, output_gradients=list(cts), unconnected_gradients=_ZERO)
        return [tf.convert_to_tensor(x) for x in found]

    return vjp_tf


def summed(fun: Any, stacked: Sequence[bool], _: None) -> Callable[..., Any]:
    """The function with sums, along axis 0, of the results for arguments that were not stacked."""

    def summed_tf(*tensors):
        return [x if m else tf.reduce_sum(x, axis=0) for x, m in zip(fun.run(*tensors), stacked, strict=True)]

    return summed_tf


def pushed_forward(fun: Any, active: Sequence[bool], out_active: Sequence[bool]) -> Callable[..., Any]:
    """``(*args, *tangents of active args) -> tangents of inexact results``, the transpose of the transpose.

    Unlike TensorFlow's accumulators this supports loops and custom gradients.
    """
    pull_back = pulled_back(fun, active, out_active)

    def jvp_tf(*tensors):
        args, tangents = tensors[: len(active)], tensors[len(active) :]
        results = [x for x, m in zip(fun.run(*args), out_active, strict=True) if m]
        cts = [tf.zeros_like(x) for x in results]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(cts)
            gradients = pull_back(*args, *cts)
        found = tape.gradient(gradients, cts, output_gradients=list(tangents), unconnected_gradients=_ZERO)
        return [tf.convert_to_tensor(x) for x in found]

    return jvp_tf


def batched(fun: Any, mapped: Sequence[bool], effects: bool) -> Callable[..., Any]:
    """The function on stacks (along axis 0) of mapped arguments.

    TensorFlow vectorizes it if possible; otherwise it loops. With effects there is one call for each element, in
    order, unless the graph of the function shows that there are none.
    """

    def one(row: Sequence[Any], others: Sequence[Any]) -> list:
        own, rest = iter(row), iter(others)
        return fun.run(*[next(own) if m else next(rest) for m in mapped])

    def vectorized(rows, others):
        counted = lambda row: [*one(row, others), tf.constant(0)]  # because a result is necessary
        return tf.vectorized_map(counted, rows, warn=False)[:-1]

    def looped(rows, others, types):
        if not types:
            types = [tf.TensorSpec([], tf.int32)]
            call = lambda row: [*one(row, others), tf.constant(0)]
        else:
            call = lambda row: one(row, others)
        return tf.map_fn(call, rows, fn_output_signature=types, parallel_iterations=1)

    in_graph: list[Any] = []

    def vmap_tf(*tensors):
        rows = [x for x, m in zip(tensors, mapped, strict=True) if m]
        others = [x for x, m in zip(tensors, mapped, strict=True) if not m]
        size = rows[0].shape[0]
        if effects and tf.executing_eagerly() and size:
            found = [one([x[i] for x in rows], others) for i in range(size)]
            return [tf.stack(xs) for xs in zip(*found, strict=True)]
        concrete = _traced(fun, mapped, tensors)
        types = [tf.TensorSpec(x.shape, x.dtype) for x in concrete.outputs]
        if size == 0:
            return [tf.zeros([0, *[d or 0 for d in t.shape]], t.dtype) for t in types]
        operations = _operations(concrete)
        if operations & _CONTROL_FLOW or (effects and _is_stateful(operations)):
            return looped(rows, others, types)[: len(types)]
        try:
            if not tf.executing_eagerly():
                return vectorized(rows, others)
            if not in_graph:  # TensorFlow would trace its vectorization again at each call
                in_graph.append(tf.function(vectorized, autograph=False))
            return in_graph[0](rows, others)
        except (
            ValueError,
            TypeError,
            NotImplementedError,
            tf.errors.OpError,
        ):  # it cannot, with several types of errors
            return looped(rows, others, types)[: len(types)]

    return vmap_tf


def _traced(fun: Any, mapped: Sequence[bool], tensors: Sequence[Any]) -> Any:
    """The function at the types of one element."""
    specs = [tf.TensorSpec(x.shape[1:] if m else x.shape, x.dtype) for x, m in zip(tensors, mapped, strict=True)]
    return fun.traced(specs)


def _operations(concrete: Any) -> set[str]:
    """The operations of a function's graph, and of the functions in it."""
    graph = concrete.graph.as_graph_def()
    return {n.op for n in graph.node} | {n.op for f in graph.library.function for n in f.node_def}


def _is_stateful(operations: set[str]) -> bool:
    """Whether some operations have effects: they write, print, draw random numbers, call Python..."""
    from tensorflow.python.framework import op_def_registry

    found = [op_def_registry.get(op) for op in operations - _READING]
    return any(d is not None and d.is_stateful for d in found)


# TensorFlow's vectorization of these has a wrong derivative without an error (2.21): all elements get that of one.
_CONTROL_FLOW = frozenset(["Case", "If", "StatelessCase", "StatelessIf", "StatelessWhile", "While"])

# Stateful because of their contents, which are checked separately, or because of writes by others.
_READING = frozenset(["PartitionedCall", "Placeholder", "ReadVariableOp", "StatefulPartitionedCall", "VarHandleOp"])
