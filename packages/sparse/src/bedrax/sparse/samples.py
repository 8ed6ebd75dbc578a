"""Helpers for tests of sparse arrays: layouts, random arrays, comparisons (`jax.experimental.sparse.test_util`)."""

from __future__ import annotations

import itertools
import unittest
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bedrax import pytree
from bedrax.sparse.bcoo import BCOO
from bedrax.sparse.bcsr import BCSR
from bedrax.sparse.formats import JAXSparse
from bedrax.sparse.transform import is_sparse

__all__ = [
    "MATMUL_TOL",
    "BatchedDotGeneralProperties",
    "SparseLayout",
    "SparseTestCase",
    "is_sparse",
    "iter_bcsr_layouts",
    "iter_sparse_layouts",
    "iter_subsets",
    "rand_bcoo",
    "rand_bcsr",
    "rand_sparse",
]

# Tolerances of products, compared with those of dense arrays.
MATMUL_TOL = {
    np.dtype(np.float32): 1e-5,
    np.dtype(np.float64): 1e-10,
    np.dtype(np.complex64): 1e-5,
    np.dtype(np.complex128): 1e-10,
}


class BatchedDotGeneralProperties(NamedTuple):
    """A product of a sparse array with a dense one.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import test_util

      >>> p = test_util.BatchedDotGeneralProperties((2, 3), (3, 4), n_batch=0, n_dense=0, dimension_numbers=(([1], [0]), ([], [])))
      >>> lax.dot_general(jnp.ones(p.lhs_shape), jnp.ones(p.rhs_shape), p.dimension_numbers).shape
      (2, 4)
    """

    lhs_shape: tuple[int, ...]
    rhs_shape: tuple[int, ...]
    n_batch: int
    n_dense: int
    dimension_numbers: Any


class SparseLayout(NamedTuple):
    """The numbers of batch, dense and sparse dimensions.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import test_util

      >>> layout = test_util.SparseLayout(n_batch=1, n_dense=0, n_sparse=1)
      >>> mat = sparse.BCOO.fromdense(jnp.eye(2), n_batch=layout.n_batch, n_dense=layout.n_dense)
      >>> mat.n_sparse == layout.n_sparse
      True
    """

    n_batch: int
    n_dense: int
    n_sparse: int


def iter_subsets(s: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    """All subsets, as tuples, starting with the empty one.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import test_util

      >>> sorted(test_util.iter_subsets([1, 2]))
      [(), (1,), (1, 2), (2,)]
    """
    return itertools.chain.from_iterable(itertools.combinations(s, n) for n in range(len(s) + 1))


def iter_sparse_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterator[SparseLayout]:
    """Yield all layouts of BCOO arrays of a shape.

    Args:
      shape: the shape; only its length matters.
      min_n_batch: the least number of batch dimensions.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import test_util

      >>> [(x.n_batch, x.n_sparse, x.n_dense) for x in test_util.iter_sparse_layouts((2, 3))]
      [(0, 2, 0), (0, 1, 1), (0, 0, 2), (1, 1, 0), (1, 0, 1), (2, 0, 0)]
    """
    for n_batch in range(min_n_batch, len(shape) + 1):
        for n_dense in range(len(shape) + 1 - n_batch):
            yield SparseLayout(n_batch, n_dense, len(shape) - n_batch - n_dense)


def iter_bcsr_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterator[SparseLayout]:
    """Return an iterator over the layouts of BCSR arrays of a shape: those with two sparse dimensions.

    Args:
      shape: the shape; only its length matters.
      min_n_batch: the least number of batch dimensions.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import test_util

      >>> [(x.n_batch, x.n_sparse, x.n_dense) for x in test_util.iter_bcsr_layouts((2, 3, 4))]
      [(0, 2, 1), (1, 2, 0)]
    """
    return (layout for layout in iter_sparse_layouts(shape, min_n_batch) if layout.n_sparse == 2)


def rand_sparse(
    rng: np.random.RandomState,
    nse: int | float = 0.5,
    post: Callable[..., Any] = lambda x: x,
    rand_method: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Return a function ``(shape, dtype) -> dense array`` that makes random arrays with few nonzero elements.

    Args:
      rng: a NumPy `RandomState`.
      nse: the number of nonzero elements, or, below 1, their share.
      post: applied to the array.
      rand_method: ``rng -> (shape, dtype) -> array``; default: normal numbers.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import test_util

      >>> make = test_util.rand_sparse(np.random.RandomState(0), nse=3)
      >>> int((make((4, 5), "float32") != 0).sum())
      3
    """
    method = rand_method or (lambda rng: lambda shape, dtype: rng.standard_normal(shape).astype(dtype))

    def sample(shape: Sequence[int], dtype: Any) -> Any:
        size = int(np.prod(shape))
        count = min(size, nse if nse >= 1 else int(np.ceil(nse * size)))
        x = np.array(method(rng)(tuple(shape), dtype))
        x.ravel()[rng.permutation(size)[int(count) :]] = 0
        return post(x)

    return sample


def rand_bcoo(
    rng: np.random.RandomState,
    rand_method: Callable[..., Any] | None = None,
    nse: int | float = 0.5,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Callable[..., Any]:
    """Return a function ``(shape, dtype) -> BCOO`` that makes random arrays.

    Args:
      rng, rand_method, nse: as in `rand_sparse`.
      n_batch, n_dense: the numbers of batch and dense dimensions of the layout.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import test_util

      >>> make = test_util.rand_bcoo(np.random.RandomState(0), nse=3)
      >>> make((4, 5), "float32")
      BCOO(float32[4, 5], nse=3)
    """
    return rand_sparse(rng, nse, lambda x: BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense), rand_method)


def rand_bcsr(
    rng: np.random.RandomState,
    rand_method: Callable[..., Any] | None = None,
    nse: int | float = 0.5,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Callable[..., Any]:
    """Return a function ``(shape, dtype) -> BCSR`` that makes random arrays.

    Args:
      rng, rand_method, nse: as in `rand_sparse`.
      n_batch, n_dense: the numbers of batch and dense dimensions of the layout.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import test_util

      >>> make = test_util.rand_bcsr(np.random.RandomState(0), nse=3)
      >>> make((4, 5), "float32")
      BCSR(float32[4, 5], nse=3)
    """
    return rand_sparse(rng, nse, lambda x: BCSR.fromdense(x, n_batch=n_batch, n_dense=n_dense), rand_method)


class SparseTestCase(unittest.TestCase):
    """Comparisons of sparse arrays, and of functions of them with functions of dense ones.

    Examples:

      >>> from jax.experimental import sparse
      >>> from jax.experimental.sparse import test_util

      >>> case = test_util.SparseTestCase()
      >>> mat = sparse.BCOO.fromdense(jnp.eye(2))
      >>> case.assertSparseArraysEquivalent(mat, mat.sort_indices())
      >>> try:
      ...     case.assertSparseArraysEquivalent(mat, 2 * mat)
      ... except AssertionError:
      ...     print("they differ")
      ...
      they differ
    """

    def assertSparseArraysEquivalent(
        self,
        x: JAXSparse,
        y: JAXSparse,
        *,
        check_dtypes: bool = True,
        atol: float = 0,
        rtol: float = 1e-7,
        canonicalize_dtypes: bool = True,
        err_msg: str = "",
    ) -> None:
        """Check that two sparse arrays of one class are equal as dense arrays."""
        self.assertIs(type(x), type(y), err_msg)
        if check_dtypes:
            self.assertEqual(x.dtype, y.dtype, err_msg)
        np.testing.assert_allclose(np.asarray(x.todense()), np.asarray(y.todense()), rtol, atol, err_msg=err_msg)

    def _CheckAgainstDense(self, dense_op: Callable, sparse_op: Callable, args_maker: Callable, **tolerances) -> None:
        """Check that a function of sparse arrays agrees with one of dense arrays."""
        args = args_maker()
        dense = lambda tree: pytree.tree_map(lambda x: x.todense() if is_sparse(x) else x, tree, is_leaf=is_sparse)
        expected, got = dense_op(*dense(args)), dense(sparse_op(*args))
        pytree.tree_map(
            lambda a, b: np.testing.assert_allclose(np.asarray(b), np.asarray(a), **tolerances), expected, got
        )
