"""Polar decomposition by QR-based dynamically weighted Halley iteration (QDWH).

Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition", SIAM J. Matrix
Anal. Appl. 31 (2010): the iterate's singular values are mapped by ``x (a + b x^2) / (1 + c x^2)``, with weights that send
the interval [l, 1] which contains them as far towards 1 as possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bedrax.core import dtypes
from bedrax.core.avals import aval_of


def _weights(lower: float) -> tuple[float, float, float, float]:
    """(a, b, c, the next lower bound) for singular values in [lower, 1]: equations (3.5) and (3.6) there."""
    l2 = lower * lower
    d = np.cbrt(4 * (1 - l2) / (l2 * l2))
    root = np.sqrt(1 + d)
    a = root + 0.5 * np.sqrt(8 - 4 * d + 8 * (2 - l2) / (l2 * root))
    b = (a - 1) ** 2 / 4
    c = a + b - 1
    return float(a), float(b), float(c), min(float(lower * (a + b * l2) / (1 + c * l2)), 1.0)


def qdwh(
    x, *, max_iterations: int | None = None, eps: float | None = None, dynamic_shape: Any = None
) -> tuple:
    """See `bedrax.lax.primitives.linalg.qdwh`."""
    from bedrax import lax
    from bedrax.lax.primitives import linalg as p

    aval = aval_of(x)
    if aval.ndim != 2 or aval.shape[0] < aval.shape[1]:
        raise ValueError(f"qdwh takes a matrix with at least as many rows as columns, got shape {aval.shape}")
    if not dtypes.is_inexact(aval.dtype):
        x = lax.convert_element_type(x, dtypes.to_inexact_dtype(aval.dtype))
    dtype = aval_of(x).dtype
    real = dtypes.to_real_dtype(dtype)
    m, n = aval.shape
    limit = 10 if max_iterations is None else max_iterations
    eps = float(dtypes.finfo(real).eps) if eps is None else float(eps)
    scalar = lambda value: np.array(value, dtype)

    rows, columns = (m, n) if dynamic_shape is None else dynamic_shape

    def inside(shape, *limits):
        """Where matrices of `shape` are not padding."""
        ok = None
        for d, bound in enumerate(limits):
            bound = lax.convert_element_type(bound, np.int32)
            here = lax.lt(lax.broadcasted_iota(np.int32, shape, d), lax.broadcast(bound, shape))
            ok = here if ok is None else lax.bitwise_and(ok, here)
        return ok

    def cleared(u):
        if dynamic_shape is None:
            return u
        return lax.select(inside(u.shape, rows, columns), u, lax.full_like(u, 0))

    def norm(u):
        return lax.sqrt(lax.reduce_sum(lax.square(lax.abs(u)), (0, 1)))

    eye = np.eye(n, dtype=dtype)
    x = cleared(x)
    # The 2-norm is at most sqrt(norm1 * norm_inf).
    size = lax.abs(x)
    bound = lax.sqrt(lax.mul(*(lax.reduce_max(lax.reduce_sum(size, (d,)), (0,)) for d in (0, 1))))
    bound = lax.select(lax.eq(bound, np.array(0, real)), np.array(1, real), bound)
    u = lax.div(x, lax.broadcast(lax.convert_element_type(bound, dtype), x.shape))

    def by_qr(u, a, b, c):
        """Stable for any c: (2.14) there."""
        q, _ = p.qr(lax.concatenate([lax.mul(u, scalar(np.sqrt(c))), lax.convert_element_type(eye, dtype)], 0),
                    full_matrices=False)  # fmt: skip
        top, bottom = lax.slice_in_dim(q, 0, m), lax.slice_in_dim(q, m, m + n)
        step = lax.mul(p.matmul(top, p.adjoint(bottom)), scalar((a - b / c) / np.sqrt(c)))
        return lax.add(lax.mul(u, scalar(b / c)), step)

    def by_cholesky(u, a, b, c):
        """Cheaper, for c below 100: (2.15) there."""
        l = p.cholesky_p.bind(lax.add(lax.mul(p.matmul(p.adjoint(u), u), scalar(c)), eye))
        solved = p.triangular_solve(l, p.adjoint(u), left_side=True, lower=True)
        solved = p.triangular_solve(l, solved, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
        return lax.add(lax.mul(u, scalar(b / c)), lax.mul(p.adjoint(solved), scalar(a - b / c)))

    # The weights depend on the bound of the smallest singular value only, so they are known beforehand.
    lower, count = float(dtypes.finfo(real).eps), 0
    change = None
    while lower < 1 - 10 * float(dtypes.finfo(real).eps) and count < limit:
        a, b, c, lower = _weights(lower)
        new = cleared(by_qr(u, a, b, c) if c > 100 else by_cholesky(u, a, b, c))
        change, u, count = norm(lax.sub(new, u)), new, count + 1
    tolerance = np.array(np.cbrt(4 * eps), real)

    def going_on(state):
        k, u, change = state
        return lax.bitwise_and(lax.lt(k, np.int32(limit)), lax.gt(change, lax.mul(tolerance, norm(u))))

    def halley(state):
        k, u, _ = state
        new = cleared(by_cholesky(u, 3.0, 1.0, 3.0))
        return lax.add(k, np.int32(1)), new, norm(lax.sub(new, u))

    change = norm(u) if change is None else change
    steps, u, change = lax.while_loop(going_on, halley, (np.int32(count), u, change))
    # One step of Newton-Schulz removes what rounding has added.
    u = cleared(
        lax.sub(lax.mul(u, scalar(1.5)), lax.mul(p.matmul(u, p.matmul(p.adjoint(u), u)), scalar(0.5)))
    )
    h = p.matmul(p.adjoint(u), x)
    h = lax.mul(lax.add(h, p.adjoint(h)), scalar(0.5))
    return u, h, steps, lax.le(change, lax.mul(tolerance, norm(u)))
