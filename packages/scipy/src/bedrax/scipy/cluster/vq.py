"""`jax.scipy.cluster.vq`: assignment of observations to codes."""

from __future__ import annotations

import numpy as np

import bedrax.numpy as jnp
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import inexact

__all__ = ["vq"]


@one_program(static=("check_finite",), everywhere=True)
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The nearest code of each observation.

    Args:
      obs: observations in rows, ``[m, d]``, or numbers, ``[m]``.
      code_book: codes in rows, ``[k, d]``, or numbers, ``[k]``.
      check_finite: has no effect.

    Returns:
      ``(index of the code, Euclidean distance to it)``, both of shape ``[m]``.

    Raises:
      ValueError: the shapes do not fit.

    Examples:

      >>> centers = jnp.array([[0., 0.], [4., 4.]])
      >>> codes, distances = jax.scipy.cluster.vq.vq(jnp.array([[1., 0.], [4., 3.]]), centers)
      >>> codes
      Array([0, 1], dtype=int32)
      >>> distances
      Array([1., 1.], dtype=float32)
    """
    obs, codes = inexact("vq", obs, code_book)
    if obs.ndim != codes.ndim or obs.ndim not in (1, 2):
        raise ValueError(f"vq: obs and code_book must both have rank 1 or 2, got shapes {obs.shape} and {codes.shape}")
    if obs.ndim == 1:
        obs, codes = obs[:, None], codes[:, None]
    if obs.shape[1] != codes.shape[1]:
        raise ValueError(f"vq: observations and codes must have one length, got {obs.shape[1]} and {codes.shape[1]}")
    dtype = dtypes.to_real_dtype(obs.dtype)
    if dtypes.finfo(dtype).bits < 32:  # squares of float16 overflow, and those of bfloat16 differ little
        obs, codes = obs.astype(np.float32), codes.astype(np.float32)
    gaps = abs(obs[:, None, :] - codes[None, :, :])
    squares = jnp.sum(gaps * gaps, axis=-1)
    return jnp.argmin(squares, axis=1), jnp.sqrt(jnp.min(squares, axis=1)).astype(dtype)
