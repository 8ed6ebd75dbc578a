"""Polar decomposition by QR-based dynamically weighted Halley iteration (QDWH).

Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition", SIAM J. Matrix
Anal. Appl. 31 (2010): the iterate's singular values are mapped by ``x (a + b x^2) / (1 + c x^2)``, with weights that map
the interval [l, 1], which contains them, as close to 1 as possible.
"""

from __future__ import annotations

import numpy as np

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax import matrices
from bedrax.lax.primitives import linalg as p

__all__ = ["qdwh"]


def _weights(lower: float) -> tuple[float, float, float, float]:
    """(a, b, c, the next lower bound) for singular values in [lower, 1]: equations (3.5) and (3.6) there."""
    l2 = lower * lower
    d = np.cbrt(4 * (1 - l2) / (l2 * l2))
    root = np.sqrt(1 + d)
    a = root + 0.5 * np.sqrt(8 - 4 * d + 8 * (2 - l2) / (l2 * root))
    b = (a - 1) ** 2 / 4
    c = a + b - 1
    return float(a), float(b), float(c), min(float(lower * (a + b * l2) / (1 + c * l2)), 1.0)


def _scalar(value, like):
    return np.array(value, aval_of(like).dtype)


def _by_qr(u, a: float, b: float, c: float):
    """A step of the iteration, stable for any c: (2.14) there."""
    m, n = u.shape
    eye = np.eye(n, dtype=u.dtype)
    q, _ = p.qr(lax.concatenate([lax.mul(u, _scalar(np.sqrt(c), u)), eye], 0), full_matrices=False)
    top, bottom = lax.slice_in_dim(q, 0, m), lax.slice_in_dim(q, m, m + n)
    step = lax.mul(matrices.matmul(top, matrices.adjoint(bottom)), _scalar((a - b / c) / np.sqrt(c), u))
    return lax.add(lax.mul(u, _scalar(b / c, u)), step)


def _by_cholesky(u, a: float, b: float, c: float):
    """The same, cheaper, for c below 100: (2.15) there."""
    gram = lax.mul(matrices.matmul(matrices.adjoint(u), u), _scalar(c, u))
    l = p.cholesky_p.bind(lax.add(gram, np.eye(u.shape[1], dtype=u.dtype)))
    solved = p.triangular_solve(l, matrices.adjoint(u), left_side=True, lower=True)
    solved = p.triangular_solve(l, solved, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
    return lax.add(lax.mul(u, _scalar(b / c, u)), lax.mul(matrices.adjoint(solved), _scalar(a - b / c, u)))


def _norm(u):
    return lax.sqrt(lax.reduce_sum(lax.square(lax.abs(u)), (0, 1)))


def _cleared(u, dynamic_shape):
    """`u` with zeros in the padding; `dynamic_shape` is the shape of the part that is not padding."""
    for d, bound in enumerate(dynamic_shape or ()):
        bound = lax.broadcast(lax.convert_element_type(bound, np.int32), u.shape)
        inside = lax.lt(lax.broadcasted_iota(np.int32, u.shape, d), bound)
        u = lax.select(inside, u, lax.full_like(u, 0))
    return u


def _scaled(x):
    """`x` divided by a bound of its 2-norm, which is at most sqrt(norm1 * norm_inf)."""
    size = lax.abs(x)
    bound = lax.sqrt(lax.mul(*(lax.reduce_max(lax.reduce_sum(size, (d,)), (0,)) for d in (0, 1))))
    bound = lax.select(lax.eq(bound, _scalar(0, bound)), _scalar(1, bound), bound)
    return lax.div(x, lax.broadcast(lax.convert_element_type(bound, x.dtype), x.shape))


@one_program(static=("is_hermitian", "max_iterations", "eps", "dynamic_shape"))
def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, ...]:
    """Polar decomposition ``x = u @ h`` by dynamically weighted Halley iteration.

    Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition" (2010).

    Args:
      x: a matrix of shape ``[m, n]``, m >= n, of full rank.
      is_hermitian: not used.
      max_iterations: the greatest number of steps; default 10.
      eps: iterate until the change is below ``(4 * eps) ** (1/3)`` of the iterate; default that of the dtype.
      dynamic_shape: the shape of the matrix in the upper left corner of `x`; the rest is padding.

    Returns:
      ``(u, h, number of iterations, whether it converged)``; zero in the padding.

    Examples:

      >>> unitary, positive, steps, converged = lax.linalg.qdwh(jnp.array([[0., -2.], [2., 0.]]))
      >>> positive.round(3)
      Array([[ 2., -0.],
             [-0.,  2.]], dtype=float32)
    """
    aval = aval_of(x)
    if aval.ndim != 2 or aval.shape[0] < aval.shape[1]:
        raise ValueError(f"qdwh takes a matrix with at least as many rows as columns, got shape {aval.shape}")
    x = _cleared(lax.convert_element_type(x, dtypes.to_inexact_dtype(aval.dtype)), dynamic_shape)
    real = dtypes.to_real_dtype(x.dtype)
    limit = 10 if max_iterations is None else max_iterations
    eps = float(dtypes.finfo(real).eps) if eps is None else float(eps)
    u = _scaled(x)

    # The weights depend on the bound of the smallest singular value only, so they are computed before the loop.
    lower, count, change = float(dtypes.finfo(real).eps), 0, None
    while lower < 1 - 10 * float(dtypes.finfo(real).eps) and count < limit:
        a, b, c, lower = _weights(lower)
        new = _cleared((_by_qr if c > 100 else _by_cholesky)(u, a, b, c), dynamic_shape)
        change, u, count = _norm(lax.sub(new, u)), new, count + 1
    tolerance = np.array(np.cbrt(4 * eps), real)

    def going_on(state):
        k, u, change = state
        return lax.bitwise_and(lax.lt(k, np.int32(limit)), lax.gt(change, lax.mul(tolerance, _norm(u))))

    def halley(state):
        k, u, _ = state
        new = _cleared(_by_cholesky(u, 3.0, 1.0, 3.0), dynamic_shape)
        return lax.add(k, np.int32(1)), new, _norm(lax.sub(new, u))

    change = _norm(u) if change is None else change
    steps, u, change = lax.while_loop(going_on, halley, (np.int32(count), u, change))
    # One step of Newton-Schulz removes the rounding errors.
    correction = lax.mul(matrices.matmul(u, matrices.matmul(matrices.adjoint(u), u)), _scalar(0.5, u))
    u = _cleared(lax.sub(lax.mul(u, _scalar(1.5, u)), correction), dynamic_shape)
    h = matrices.matmul(matrices.adjoint(u), x)
    h = lax.mul(lax.add(h, matrices.adjoint(h)), _scalar(0.5, h))
    return u, h, steps, lax.le(change, lax.mul(tolerance, _norm(u)))
