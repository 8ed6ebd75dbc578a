"""New sparse arrays: empty ones, identities, random ones."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import bedrax.numpy as jnp
from bedrax import random
from bedrax.core import dims, dtypes
from bedrax.sparse import elements
from bedrax.sparse.bcoo import BCOO
from bedrax.sparse.bcsr import BCSR
from bedrax.sparse.formats import JAXSparse, counting_dtype, nfold_vmap
from bedrax.sparse.matrices import COO, CSC, CSR

__all__ = ["empty", "eye", "random_bcoo"]

FORMATS: dict[str, Any] = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def _format(name: str) -> Any:
    if name not in FORMATS:
        raise ValueError(f"sparse_format={name!r} not recognized; must be one of {list(FORMATS)}")
    return FORMATS[name]


def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32", sparse_format: str = "bcoo", **kwds: Any
) -> JAXSparse:
    """An array of zeros that stores nothing.

    Args:
      shape: the shape.
      dtype: the dtype of the elements; default: the default float dtype.
      index_dtype: the dtype of the indices.
      sparse_format: ``"bcoo"``, ``"bcsr"``, ``"coo"``, ``"csr"`` or ``"csc"``.
      kwds: options of the format: `n_batch`, `n_dense`, `nse` (the number of elements that can be stored).

    Examples:

      >>> from jax.experimental import sparse

      >>> sparse.empty((2, 3)).nse
      0
    """
    return _format(sparse_format)._empty(tuple(shape), dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """Return a sparse matrix with ones on one diagonal, and zeros elsewhere.

    Args:
      N, M: the numbers of rows and columns; `M` is `N` by default.
      k: the diagonal: 0 is the main diagonal, positive numbers are above it.
      dtype: the dtype of the elements; default: the default float dtype.
      index_dtype: the dtype of the indices.
      sparse_format, kwds: as in `empty`.

    Examples:

      >>> from jax.experimental import sparse

      >>> sparse.eye(2).todense()
      Array([[1., 0.],
             [0., 1.]], dtype=float32)
    """
    N, M = dims.integer(N, "N"), dims.integer(N if M is None else M, "M")
    return _format(sparse_format)._eye(N, M, dims.integer(k, "k"), dtype=dtype, index_dtype=index_dtype, **kwds)


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = float,
    indices_dtype: Any = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """A random array.

    Args:
      key: a key of `jax.random`.
      nse: the number of elements to store per element of the batch, or, below 1, their share.
      unique_indices: draw indices without replacement.
      sorted_indices: sort them.
      generator: ``(key, shape, dtype=..., **kwds) -> data``.
      indices_dtype: the dtype of the indices; default: an integer dtype.
      n_batch, n_dense: the numbers of batch and dense dimensions.

    Examples:

      >>> from jax.experimental import sparse

      >>> m = sparse.random_bcoo(jax.random.key(0), (4, 5), nse=6)
      >>> m.nse, m.shape
      (6, (4, 5))
    """
    shape = tuple(operator.index(n) for n in shape)
    batch, sparse, dense = shape[:n_batch], shape[n_batch : len(shape) - n_dense], shape[len(shape) - n_dense :]
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape):
        raise ValueError(f"{n_batch=} and {n_dense=} do not fit the shape {shape}")
    size = math.prod(sparse)
    count = int(nse * size) if isinstance(nse, float) and nse < 1 else operator.index(int(nse))
    if count < 0 or (unique_indices and count > size):
        raise ValueError(f"nse={nse} unique elements of the {size} of shape {sparse}")
    dtype_of_indices = counting_dtype(indices_dtype or np.int32, math.prod(shape))
    key, data_key = random.split(key)

    def draw(key):
        flat = random.choice(key, size, (count,), replace=not unique_indices)
        columns = jnp.unravel_index(flat, sparse) if sparse else ()
        indices = jnp.stack(columns, -1) if sparse else jnp.zeros((count, 0))
        indices = indices.astype(dtype_of_indices)
        return indices[elements.order(indices)] if sorted_indices else indices

    keys = random.split(key, batch) if batch else key
    indices = nfold_vmap(draw, n_batch, broadcasted=False)(keys)
    data = generator(data_key, shape=(*batch, count, *dense), dtype=dtypes.canonicalize_dtype(dtype), **kwds)
    return BCOO((data, indices), shape=shape, indices_sorted=sorted_indices, unique_indices=unique_indices)
