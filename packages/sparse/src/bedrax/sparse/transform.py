"""`sparsify`: the transformation of a program to sparse arrays.

A `SparseTracer` represents a sparse array while a function runs; the column `sparse_rules` has the operations on
such arrays. A primitive without a rule would give a dense result, and raises an error.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax, pytree
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_functions
from bedrax.core.columns import Column
from bedrax.core.ir import Jaxpr, run
from bedrax.core.tracing import Primitive, Trace, Tracer, current, entered, set_trace
from bedrax.core.typing import ArrayLike
from bedrax.sparse.bcoo import BCOO
from bedrax.sparse.bcsr import BCSR
from bedrax.sparse.formats import JAXSparse, composed

__all__ = [
    "Array",
    "ArrayOrSparse",
    "SparseTrace",
    "SparseTracer",
    "is_sparse",
    "sparse_rules",
    "sparse_rules_bcoo",
    "sparse_rules_bcsr",
    "sparsify",
    "sparsify_fun",
    "todense",
    "todense_p",
]

sparse_rules: Final = Column("sparse arrays", signature="rule(*arrays and BCOO arrays, **params) -> the same (or list)")


sparse_rules_bcoo: Final = sparse_rules
sparse_rules_bcsr: Final = sparse_rules  # rows are converted to coordinates
ArrayOrSparse = Array | JAXSparse


class SparseTracer(Tracer):
    """Represents the sparse array `spvalue`.

    Examples:

      >>> from jax.experimental import sparse

      >>> seen = []
      >>> mat = sparse.BCOO.fromdense(jnp.eye(2))
      >>> _ = sparse.sparsify(lambda m: (seen.append(m), 2 * m)[1], use_tracer=True)(mat)
      >>> isinstance(seen[0], sparse.SparseTracer), seen[0].shape
      (True, (2, 2))
    """

    __slots__ = ("spvalue",)

    def __init__(self, trace: SparseTrace, *, spvalue: BCOO) -> None:
        self._trace = trace
        self.spvalue: BCOO = spvalue

    @property
    def aval(self) -> ShapedArray:
        return ShapedArray(self.spvalue.shape, np.dtype(self.spvalue.dtype))

    def __repr__(self) -> str:
        return f"SparseTracer({self.spvalue})"


aval_functions[SparseTracer] = operator.attrgetter("aval")


class SparseTrace(Trace):
    """Applies the rules for sparse arrays in the parent trace.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import transform
      >>> mat = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))

      >>> seen = []
      >>> _ = sparse.sparsify(lambda m: (seen.append(m), 2 * m)[1], use_tracer=True)(mat)
      >>> isinstance(seen[0]._trace, transform.SparseTrace)
      True
    """

    __slots__ = ()
    sees_constants = False

    def process(self, prim: Primitive, args: tuple[ArrayLike, ...], params: dict[str, Any]) -> Array:
        """Run the primitive's rule if an operand is sparse; else pass the operation on."""
        values = [x.spvalue if type(x) is SparseTracer and x._trace is self else x for x in args]
        saved = current.trace
        current.trace = self.parent
        try:
            if not any(isinstance(x, JAXSparse) for x in values):
                return self.parent.process(prim, args, params)
            rule = sparse_rules.find(prim)
            if rule is None:
                raise NotImplementedError(
                    f"sparse rule for {prim} is not implemented because it would result in dense output. If this is your"
                    " intent, use sparse.todense() to convert your arguments to dense matrices."
                )
            out = rule(*values, **params)
        finally:
            current.trace = saved
        return [self.wrap(x) for x in out] if prim.multiple_results else self.wrap(out)

    def call(self, prim: Primitive, rule: Any, args: Any) -> Any:
        """A function of dense arrays is called in the parent trace; the program of one with sparse arrays is
        processed."""
        if any(type(x) is SparseTracer and x._trace is self for x in args):
            return super().call(prim, rule, args)
        with set_trace(self.parent):
            return self.parent.call(prim, rule, args)

    def wrap(self, x: Any) -> Any:
        """A tracer for a sparse array; other values unchanged."""
        return SparseTracer(self, spvalue=as_bcoo(x)) if isinstance(x, JAXSparse) else x


def is_sparse(x: Any) -> bool:
    """Whether an object is a sparse array.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import ad

      >>> ad.is_sparse(sparse.eye(2)), ad.is_sparse(jnp.eye(2))
      (True, False)

      >>> from jax.experimental.sparse import test_util

      >>> test_util.is_sparse(sparse.eye(2)), test_util.is_sparse(jnp.eye(2))
      (True, False)
    """
    return isinstance(x, JAXSparse)


def as_bcoo(x: Any) -> Any:
    """A sparse array in coordinates; other values unchanged."""
    if not isinstance(x, JAXSparse) or isinstance(x, BCOO):
        return x
    return x.to_bcoo() if hasattr(x, "to_bcoo") else x._bcoo()


def run_sparse(fun: Callable[..., Any], args: Any) -> Any:
    """``fun(*args)`` with tracers for the sparse arrays in `args`, and sparse arrays for them in the result."""
    trace = SparseTrace(current.trace)
    with entered(trace):
        out = fun(*pytree.tree_map(trace.wrap, args, is_leaf=is_sparse))
    return pytree.tree_map(lambda x: x.spvalue if type(x) is SparseTracer and x._trace is trace else x, out)


def sparsify_fun(wrapped_fun: Any, args: list[ArrayOrSparse]) -> list[ArrayOrSparse]:
    """Apply a function of dense arrays to dense and sparse arrays.

    Args:
      wrapped_fun: a `WrappedFun`, or a function, from arrays to a list of arrays.
      args: dense and sparse arrays, one per argument.

    Returns:
      A list of dense and sparse arrays.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import transform
      >>> mat = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))

      >>> transform.sparsify_fun(lambda m, v: [m @ v], [mat, jnp.array([1., 10.])])
      [Array([20.,  3.], dtype=float32)]
    """
    return list(run_sparse(getattr(wrapped_fun, "call_wrapped", wrapped_fun), args))


def sparse_program(program: Jaxpr) -> Callable[..., list[Any]]:
    """A program as a function of dense and `BCOO` arrays."""
    return lambda *values: run_sparse(lambda *xs: run(program, *xs), values)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A function of dense arrays as a function of sparse and dense ones.

    Args:
      f: a function of pytrees of arrays, written with `jax.numpy` and `jax.lax`.
      use_tracer: upstream's choice between a tracer and a program that is made first. Here both use the tracer.

    Returns:
      A function of pytrees of dense and sparse arrays, which may return `BCOO` arrays.

    Raises:
      NotImplementedError: the function applies an operation to sparse arrays that would give a dense result.

    Examples:

      >>> from jax.experimental import sparse

      >>> f = sparse.sparsify(lambda m, x: (2 * m) @ x)
      >>> f(sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]])), jnp.array([1., 10.]))
      Array([40.,  6.], dtype=float32)
    """

    @functools.wraps(f)
    def wrapped(*args, **params):
        return run_sparse(lambda xs, ps: f(*xs, **ps), (args, params))

    return wrapped


todense_p: Final = composed("todense", lambda *arrays, tree: pytree.tree_unflatten(tree, arrays).todense())


def todense(arr: Any) -> Any:
    """The dense array of a sparse one, also in sparsified functions; a dense one unchanged.

    Examples:

      >>> from jax.experimental import sparse

      >>> sparse.todense(sparse.eye(2))
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    if isinstance(arr, SparseTracer):
        return todense_p.bind(arr, tree=None)
    if isinstance(arr, JAXSparse):
        leaves, tree = pytree.tree_flatten(arr)
        return todense_p.bind(*leaves, tree=tree)
    return jnp.asarray(arr)


def refuse(prim: Primitive, what: str) -> Any:
    """Raise for a case that a rule does not support."""
    raise NotImplementedError(
        f"sparse rule for {prim}: {what}; use sparse.todense() on the arguments if that is intended"
    )


def sparse_method(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays as a method of sparse arrays."""
    return lambda self, *args, **kwargs: sparsify(fun)(self, *args, **kwargs)


def _swapped(fun: Callable) -> Callable:
    return lambda self, other: sparsify(fun)(other, self)


def _sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    out = sparsify(lambda x: jnp.sum(x, axis=axis, keepdims=keepdims))(x)
    return out.todense() if isinstance(out, BCOO) and not out.shape else out


_OPERATORS = {
    "abs": jnp.abs,
    "neg": jnp.negative,
    "matmul": jnp.matmul,
    "mul": jnp.multiply,
    "add": jnp.add,
    "sub": jnp.subtract,
    "pow": jnp.power,
    "truediv": jnp.true_divide,
    "eq": jnp.equal,
    "ne": jnp.not_equal,
    "lt": jnp.less,
    "le": jnp.less_equal,
    "gt": jnp.greater,
    "ge": jnp.greater_equal,
}
for _name, _fun in _OPERATORS.items():
    setattr(BCOO, f"__{_name}__", sparse_method(_fun))
for _name in ("matmul", "mul", "add", "sub", "truediv", "pow"):
    setattr(BCOO, f"__r{_name}__", _swapped(_OPERATORS[_name]))
BCOO.__hash__ = None
BCSR.__matmul__, BCSR.__rmatmul__, BCSR.sum = BCOO.__matmul__, BCOO.__rmatmul__, _sum
BCOO.__getitem__ = lambda self, index: sparsify(lambda x: x[index])(self)
BCOO.sum = _sum
BCOO.astype = lambda self, *args, **kwargs: sparsify(lambda x: x.astype(*args, **kwargs))(self)


def _reshape(self: BCOO, *args: Any, order: str = "C") -> BCOO:
    """The array in another shape; ``-1`` stands for the remaining size."""
    if order != "C":
        raise NotImplementedError(f"reshape with order={order!r}: only 'C'")
    shape = args[0] if len(args) == 1 and isinstance(args[0], Sequence) else args
    return sparsify(lambda x: lax.reshape(x, tuple(_known_sizes(shape, self.size))))(self)


def _known_sizes(shape: Sequence[int], size: int) -> list[int]:
    shape = [operator.index(n) for n in shape]
    if -1 in shape:
        rest = -int(np.prod(shape))
        shape[shape.index(-1)] = size // rest if rest else 0
    return shape


BCOO.reshape = _reshape
