"""Matrices as arguments: inexact, of rank 2 or more, square where necessary."""

from __future__ import annotations

import warnings

import bedrax.numpy as jnp
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.typing import ArrayLike
from bedrax.numpy.arguments import inexact


def matrices(name: str, *xs: ArrayLike, square: bool = False) -> list[Array]:
    """Arguments as floats of one dtype; the first of shape [..., m, n], with m = n if `square`.

    Raises:
      ValueError: the first has another shape.
    """
    out = inexact(f"linalg.{name}", *xs)
    shape = out[0].shape
    if len(shape) < 2 or (square and not dims.definitely_equal(shape[-1], shape[-2])):
        kind = "a (batched) square matrix" if square else "a (batched) matrix"
        raise ValueError(f"{name}: expected {kind}, got shape {shape}.")
    return out


def columns(name: str, a: Array, b: Array) -> tuple[Array, Array, bool]:
    """Return `a`, `b` as matrices, both with the joint batch axes, and whether `b` consists of vectors.

    A `b` with one axis fewer than `a` and a last axis of the same length is a vector for each matrix, as in NumPy
    before 2. `solve` is the exception.
    """
    n = a.shape[-2]
    vectors = b.ndim == a.ndim - 1 > 1 and name != "solve" and dims.definitely_equal(b.shape[-1], n)
    vector = b.ndim == 1 or vectors
    if vectors:
        words = f"{name}: b of shape {b.shape} is taken for a vector for each matrix of shape {a.shape}, and will be taken for"
        warnings.warn(f"{words} matrices one day; say which with b[..., None]", FutureWarning, stacklevel=2)
    if vector:
        b = b[..., None]
    if b.ndim < 2 or not dims.definitely_equal(b.shape[-2], n):
        raise ValueError(f"{name}: the right-hand side has {n} rows, as a of shape {a.shape}; got shape {b.shape}")
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (jnp.broadcast_to(a, (*batch, *a.shape[-2:])), jnp.broadcast_to(b, (*batch, *b.shape[-2:])), vector)


def complexified(x: Array) -> Array:
    """The matrices as complex ones; the arguments may be real."""
    return x if dtypes.is_complex(x.dtype) else x.astype(dtypes.to_complex_dtype(x.dtype))
