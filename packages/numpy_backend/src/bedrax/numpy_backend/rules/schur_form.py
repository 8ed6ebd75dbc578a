"""The Schur form of one matrix, by QR iteration.

Golub and Van Loan, "Matrix Computations" (4th ed.), 7.5: reduction to Hessenberg form, then implicit double shifts
(real matrices; Francis) or single shifts of Wilkinson (complex ones) until the subdiagonal vanishes. Blocks of two with
real eigenvalues are split. The others get equal diagonal elements (as in LAPACK's lanv2).
"""

from __future__ import annotations

import math

import numpy as np

_MOST_STEPS = 40  # per eigenvalue


def schur(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (U, Q) with ``a = Q @ U @ Q^H``.

    Raises:
      numpy.linalg.LinAlgError: `a` is not finite, or the iteration does not converge.
    """
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError("the matrix is not finite")
    is_complex = np.iscomplexobj(a)
    h = a.astype(np.complex128 if is_complex else np.float64)
    # Products of very large or small elements would overflow or vanish. A power of two as unit rounds nothing.
    unit = 2.0 ** (math.frexp(np.abs(h).max(initial=0))[1] // 2 * 2 - 2)
    h /= unit
    q = np.eye(len(a), dtype=h.dtype)
    _to_hessenberg(h, q)
    (_iterate_complex if is_complex else _iterate_real)(h, q)
    return (h * unit).astype(a.dtype), q.astype(a.dtype)


def _householder(x: np.ndarray):
    """Return (v, tau): ``x - tau v (v^H x)`` is a multiple of the first unit vector; tau is 0 where `x` is zero."""
    length = np.linalg.norm(x)
    if length == 0:
        return x, 0.0
    phase = x[0] / abs(x[0]) if x[0] != 0 else 1.0
    v = x.copy()
    v[0] += phase * length
    return v, 2.0 / np.vdot(v, v).real


def _reflect(h, q, v, tau, rows: slice, first_column: int, last_row: int) -> None:
    """Compute ``h = P h P`` and ``q = q P`` for the reflection P on `rows`."""
    w = v.conj()
    h[rows, first_column:] -= tau * np.outer(v, w @ h[rows, first_column:])
    h[:last_row, rows] -= tau * np.outer(h[:last_row, rows] @ v, w)
    q[:, rows] -= tau * np.outer(q[:, rows] @ v, w)


def _to_hessenberg(h, q) -> None:
    n = len(h)
    for i in range(n - 2):
        v, tau = _householder(h[i + 1 :, i].copy())
        _reflect(h, q, v, tau, slice(i + 1, n), i, n)
        h[i + 2 :, i] = 0


def _start_of_block(h, hi: int) -> int:
    """Return the first row of the unreduced block that ends in row `hi`. Negligible elements become zero."""
    eps = np.finfo(h.dtype).eps
    scale = np.abs(h).max()
    for i in range(hi, 0, -1):
        size = abs(h[i, i]) + abs(h[i - 1, i - 1])
        if abs(h[i, i - 1]) <= eps * (size if size else scale):
            h[i, i - 1] = 0
            return i
    return 0


def _blocks(h, q, size: int):
    """Return the first and last row of the next block, and its step count; blocks of `size` rows are done."""
    hi, steps = len(h) - 1, 0
    while hi > 0:
        lo = _start_of_block(h, hi)
        if hi - lo < size:
            if hi > lo:
                _standardize(h, q, lo)
            hi, steps = lo - 1, 0
            continue
        steps += 1
        if steps > _MOST_STEPS:
            raise np.linalg.LinAlgError("QR iteration does not converge")
        yield lo, hi, steps
    h[np.tril_indices(len(h), -size)] = 0


def _iterate_complex(h, q) -> None:
    for lo, hi, steps in _blocks(h, q, 1):
        a, b, c, d = h[hi - 1, hi - 1], h[hi - 1, hi], h[hi, hi - 1], h[hi, hi]
        root = np.sqrt(((a - d) / 2) ** 2 + b * c)
        shift = min(((a + d) / 2 + root, (a + d) / 2 - root), key=lambda z: abs(z - d))
        if steps % 10 == 0:  # out of a cycle
            shift = h[hi, hi] + abs(h[hi, hi - 1])
        for k in range(lo, hi):
            x = np.array([h[lo, lo] - shift, h[lo + 1, lo]]) if k == lo else h[k : k + 2, k - 1].copy()
            v, tau = _householder(x)
            _reflect(h, q, v, tau, slice(k, k + 2), max(k - 1, lo), min(k + 3, hi + 1))
            # _reflect's rows above lo belong to h as well; the columns left of lo are zero.
            if k > lo:
                h[k + 1, k - 1] = 0


def _iterate_real(h, q) -> None:
    for lo, hi, steps in _blocks(h, q, 2):
        s = h[hi - 1, hi - 1] + h[hi, hi]
        t = h[hi - 1, hi - 1] * h[hi, hi] - h[hi - 1, hi] * h[hi, hi - 1]
        if steps % 10 == 0:  # out of a cycle
            w = abs(h[hi, hi - 1]) + abs(h[hi - 1, hi - 2])
            s, t = 1.5 * w, w * w
        x = np.array(
            [
                h[lo, lo] * h[lo, lo] + h[lo, lo + 1] * h[lo + 1, lo] - s * h[lo, lo] + t,
                h[lo + 1, lo] * (h[lo, lo] + h[lo + 1, lo + 1] - s),
                h[lo + 1, lo] * h[lo + 2, lo + 1],
            ]
        )
        for k in range(lo, hi):
            if k > lo:
                x = h[k : min(k + 3, hi + 1), k - 1].copy()
            v, tau = _householder(x)
            _reflect(h, q, v, tau, slice(k, k + len(x)), max(k - 1, lo), min(k + 4, hi + 1))
            if k > lo:
                h[k + 1 : k + 3, k - 1] = 0


def _rotate(h, q, i: int, c: float, s: float) -> None:
    """Compute ``h = G^T h G`` and ``q = q G`` with ``G = [[c, -s], [s, c]]`` on rows i and i + 1."""
    g = np.array([[c, -s], [s, c]])
    rows = slice(i, i + 2)
    h[rows, i:] = g.T @ h[rows, i:]
    h[: i + 2, rows] = h[: i + 2, rows] @ g
    q[:, rows] = q[:, rows] @ g


def _standardize(h, q, i: int) -> None:
    """Split the block of rows i, i + 1 if its eigenvalues are real; else make its diagonal constant."""
    a, b, c, d = h[i, i], h[i, i + 1], h[i + 1, i], h[i + 1, i + 1]
    if c == 0:
        return
    p = (a - d) / 2
    discriminant = p * p + b * c
    if discriminant >= 0:
        # (x, y) is the eigenvector of the eigenvalue farther from d, without cancellation.
        x = p + math.copysign(math.sqrt(discriminant), p)
        length = math.hypot(x, c)
        if length == 0:
            return
        _rotate(h, q, i, x / length, c / length)
        h[i + 1, i] = 0
        return
    # tan(2 t) = (a - d) / (b + c) with s = sin t, c = cos t makes the diagonal elements equal.
    angle = 0.5 * math.atan2(d - a, b + c)
    if abs(angle) > math.pi / 4:
        angle -= math.copysign(math.pi / 2, angle)
    _rotate(h, q, i, math.cos(angle), math.sin(angle))
    h[i, i] = h[i + 1, i + 1] = (h[i, i] + h[i + 1, i + 1]) / 2
