"""Sparse arrays as references to buffers: the arguments and results of `sparsify_raw` and `eval_sparse`.

A `SparsifyValue` names its arrays by their numbers in a `SparsifyEnv`, so several values may share them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import bedrax.numpy as jnp
from bedrax import pytree
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.ir import Jaxpr, eval_jaxpr
from bedrax.sparse.bcoo import BCOO
from bedrax.sparse.bcsr import BCSR
from bedrax.sparse.formats import JAXSparse
from bedrax.sparse.transform import as_bcoo, is_sparse, run_sparse

__all__ = [
    "SparsifyEnv",
    "SparsifyValue",
    "arrays_to_spvalues",
    "eval_sparse",
    "sparsify_raw",
    "spvalues_to_arrays",
    "spvalues_to_avals",
]


class SparsifyValue(NamedTuple):
    """An array: the numbers of its buffers. A dense array has only the first one, and a BCOO array has no
    `indptr_ref`.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import transform
      >>> mat = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))

      >>> env = transform.SparsifyEnv()
      >>> dense, coordinates = env.dense(jnp.ones(3)), env.sparse(mat.shape, mat.data, mat.indices)
      >>> dense.is_sparse(), coordinates.is_sparse(), coordinates.shape
      (False, True, (2, 2))
    """

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool = False
    unique_indices: bool = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def is_sparse(self) -> bool:
        """Whether it has indices."""
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        """Whether it has no indices."""
        return self.indices_ref is None

    def is_bcoo(self) -> bool:
        """Whether it is in coordinates."""
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        """Whether it is in compressed rows."""
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """Buffers by number.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import transform
      >>> mat = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))

      >>> env = transform.SparsifyEnv()
      >>> value = env.sparse(mat.shape, mat.data, mat.indices)
      >>> env.data(value)
      Array([2., 3.], dtype=float32)
    """

    def __init__(self, bufs: Sequence[Any] = ()) -> None:
        self._buffers = list(bufs)

    def _push(self, array: Any) -> int:
        self._buffers.append(jnp.asarray(array))
        return len(self._buffers) - 1

    def _buffer(self, ref: int | None, what: str) -> Any:
        if ref is None:
            raise RuntimeError(f"the value has no {what}")
        return self._buffers[ref]

    def data(self, spvalue: SparsifyValue) -> Any:
        """The stored elements, or the dense array."""
        return self._buffer(spvalue.data_ref, "data")

    def indices(self, spvalue: SparsifyValue) -> Any:
        """The indices of a sparse value."""
        return self._buffer(spvalue.indices_ref, "indices")

    def indptr(self, spvalue: SparsifyValue) -> Any:
        """The starts of the rows of a BCSR value."""
        return self._buffer(spvalue.indptr_ref, "indptr")

    def dense(self, data: Any) -> SparsifyValue:
        """A new value for a dense array."""
        return SparsifyValue(tuple(jnp.shape(data)), self._push(data))

    def sparse(
        self,
        shape: Sequence[int],
        data: Any = None,
        indices: Any = None,
        indptr: Any = None,
        *,
        data_ref: int | None = None,
        indices_ref: int | None = None,
        indptr_ref: int | None = None,
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> SparsifyValue:
        """A new sparse value; each of its arrays is given, or is an existing buffer."""
        refs = []
        for what, array, ref in (
            ("data", data, data_ref),
            ("indices", indices, indices_ref),
            ("indptr", indptr, indptr_ref),
        ):
            if (array is None) == (ref is None) and (what != "indptr" or array is not None):
                raise ValueError(f"a sparse value takes either {what} or {what}_ref")
            refs.append(ref if array is None else self._push(array))
        return SparsifyValue(tuple(shape), *refs, indices_sorted, unique_indices)


def arrays_to_spvalues(spenv: SparsifyEnv, args: Any) -> Any:
    """Add arrays to an environment, and return their values.

    Args:
      spenv: the environment, which gets the buffers of the arrays.
      args: a pytree of dense and sparse arrays.

    Returns:
      The pytree with a `SparsifyValue` in place of each array.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import transform
      >>> mat = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))

      >>> env = transform.SparsifyEnv()
      >>> values = transform.arrays_to_spvalues(env, {"m": mat, "x": jnp.ones(2)})
      >>> {name: value.is_sparse() for name, value in sorted(values.items())}
      {'m': True, 'x': False}
    """

    def value(x: Any) -> SparsifyValue:
        if not isinstance(x, JAXSparse):
            return spenv.dense(x)
        x = x if isinstance(x, BCSR) else as_bcoo(x)
        return spenv.sparse(
            x.shape,
            x.data,
            x.indices,
            getattr(x, "indptr", None),
            indices_sorted=x.indices_sorted,
            unique_indices=x.unique_indices,
        )

    return pytree.tree_map(value, args, is_leaf=is_sparse)


def _is_value(x: Any) -> bool:
    return isinstance(x, SparsifyValue)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """Return the arrays of values: the inverse of `arrays_to_spvalues`.

    Args:
      spenv: the environment with the buffers of the values.
      spvalues: a pytree of `SparsifyValue`.

    Returns:
      The pytree with a dense, BCOO or BCSR array in place of each value.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import transform
      >>> mat = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))

      >>> env = transform.SparsifyEnv()
      >>> (value,) = transform.arrays_to_spvalues(env, [mat])
      >>> (back,) = transform.spvalues_to_arrays(env, [value])
      >>> back.todense()
      Array([[0., 2.],
             [3., 0.]], dtype=float32)
    """

    def array(v: SparsifyValue) -> Any:
        if v.is_dense():
            return spenv.data(v)
        cls, rest = (BCSR, (spenv.indptr(v),)) if v.is_bcsr() else (BCOO, ())
        return cls(
            (spenv.data(v), spenv.indices(v), *rest),
            shape=v.shape,
            indices_sorted=v.indices_sorted,
            unique_indices=v.unique_indices,
        )

    return pytree.tree_map(array, spvalues, is_leaf=_is_value)


def spvalues_to_avals(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """Return the types of the arrays of values.

    Args:
      spenv: the environment with the buffers of the values.
      spvalues: a pytree of `SparsifyValue`.

    Returns:
      The pytree with a `ShapedArray` in place of each value.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import transform
      >>> mat = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))

      >>> env = transform.SparsifyEnv()
      >>> transform.spvalues_to_avals(env, transform.arrays_to_spvalues(env, [mat, jnp.ones(3)]))
      [ShapedArray(float32[2,2]), ShapedArray(float32[3])]
    """
    return pytree.tree_map(lambda v: ShapedArray(v.shape, aval_of(spenv.data(v)).dtype), spvalues, is_leaf=_is_value)


def sparsify_raw(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of dense arrays as a function of values: ``(spenv, *values, **static) -> (values, treedef of the
    result)``.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import transform
      >>> mat = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))

      >>> env = transform.SparsifyEnv()
      >>> values = transform.arrays_to_spvalues(env, [mat, jnp.array([1., 10.])])
      >>> found, tree = transform.sparsify_raw(lambda m, v: m @ v)(env, *values)
      >>> transform.spvalues_to_arrays(env, found), tree
      ([Array([20.,  3.], dtype=float32)], PyTreeDef(*))
    """

    def run(spenv: SparsifyEnv, *spvalues: Any, **params: Any) -> tuple:
        args = spvalues_to_arrays(spenv, spvalues)
        leaves, tree = pytree.tree_flatten(run_sparse(lambda *xs: f(*xs, **params), args), is_leaf=is_sparse)
        return arrays_to_spvalues(spenv, leaves), tree

    return run


def eval_sparse(
    jaxpr: Jaxpr, consts: Sequence[Any], spvalues: Sequence[SparsifyValue], spenv: SparsifyEnv
) -> list[Any]:
    """Evaluate a program on dense and sparse values.

    Args:
      jaxpr: a program of dense arrays.
      consts: the values of its constants, arrays.
      spvalues: a `SparsifyValue` per argument.
      spenv: the environment of these values. It gets the buffers of the results.

    Returns:
      A list with a `SparsifyValue` per result.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import transform
      >>> mat = sparse.BCOO.fromdense(jnp.array([[0., 2.], [3., 0.]]))

      >>> program = jax.make_jaxpr(lambda m, v: 2 * m @ v)(mat.todense(), jnp.ones(2))
      >>> env = transform.SparsifyEnv()
      >>> values = transform.arrays_to_spvalues(env, [mat, jnp.ones(2)])
      >>> found = transform.eval_sparse(program.jaxpr, program.consts, values, env)
      >>> transform.spvalues_to_arrays(env, found)
      [Array([4., 6.], dtype=float32)]
    """
    return sparsify_raw(lambda *xs: eval_jaxpr(jaxpr, consts, *xs))(spenv, *spvalues)[0]
