"""Schur form, eigenvalues of general matrices, and singular values as programs.

Golub and Van Loan, "Matrix Computations" (4th ed.): 7.5 (QR iteration with Francis's double shifts for real matrices,
with Wilkinson's for complex ones), 7.6.4 (eigenvectors of triangular matrices), 8.6.3 (one-sided Jacobi; each round
rotates disjoint pairs of columns together: 8.5.5). Matrices that are not finite, or do not converge, give NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.core.array import Array
from bedrax.core.typing import ArrayLike
from bedrax.lax import matrices
from bedrax.lax.decompositions.matrices import (
    as_dtype,
    at,
    column,
    conj,
    diagonal,
    identity,
    is_complex,
    loop,
    pick,
    positions,
    put,
    real,
    row,
    where,
)
from bedrax.lax.primitives import linalg as p

_MOST_STEPS = 40  # of QR iteration, per eigenvalue
_MOST_SWEEPS = 20  # of Jacobi's method


def _eps(x) -> float:
    return float(dtypes.finfo(dtypes.to_real_dtype(x.dtype)).eps)


def _nan(x):
    return complex(np.nan, np.nan) if is_complex(x) else np.nan


def _finite(x):
    """Booleans, true for finite matrices, as matrices of one element."""
    parts = [lax.real(x), lax.imag(x)] if is_complex(x) else [x]
    whole = lax.is_finite(parts[0]) if len(parts) == 1 else lax.is_finite(parts[0]) & lax.is_finite(parts[1])
    rank = len(x.shape)
    return column(column(lax.reduce_and(whole, (rank - 2, rank - 1))))


def _norm(x, axis: int = -1):
    return lax.sqrt(lax.reduce_sum(real(x * conj(x)), (len(x.shape) + axis,)))


# ---- the Schur form of one matrix --------------------------------------------------------------------------
#
# Matrices have two more rows and columns of zeros, so that blocks of three rows stay inside.


def schur(x: ArrayLike, *, compute_schur_vectors: Any, sort_eig_vals: Any, select_callable: Any) -> Any:
    """See `bedrax.lax.primitives.linalg.schur`."""
    if 0 in x.shape:
        return [x, identity(x, *x.shape[-2:])][: 1 + compute_schur_vectors]
    good = _finite(x)
    x, scale = _scaled(where(good, x))
    packed, taus = p.hessenberg_p.bind(x)
    n, rank = x.shape[-1], len(x.shape)
    below = lax.slice_in_dim(lax.slice_in_dim(packed, 1, n, axis=rank - 2), 0, n - 1, axis=rank - 1)
    q = p.householder_product_p.bind(below, taus)
    edge = [(0, 0, 0)] * (rank - 2)
    zero = np.zeros((), x.dtype)
    q = lax.pad(q, zero, [*edge, (1, 2, 0), (1, 2, 0)])
    first = column(positions(n + 2) == 0) & row(positions(n + 2) == 0)
    q = where(~first, q, 1)
    h = lax.pad(matrices.triangle(packed, lower=False, offset=-1), zero, [*edge, (0, 2, 0), (0, 2, 0)])
    stacked = [lax.reshape(v, (dims.size(x.shape[:-2]), n + 2, n + 2)) for v in (h, q)]
    h, q, converged = lax.map(lambda hq: _iterate(*hq, n), tuple(stacked))
    good = good & lax.reshape(converged, good.shape)
    cut = lambda v: lax.reshape(lax.slice(v, (0, 0, 0), (v.shape[0], n, n)), x.shape)
    out = [where(good, v, _nan(x)) for v in (cut(h) * as_dtype(scale, x), cut(q))]
    return out[: 1 + compute_schur_vectors]


def _scaled(x):
    """Matrices, and their scales as matrices of one element: squares of elements would overflow or vanish if it is not 1."""
    rank = len(x.shape)
    size = lax.reduce_max(lax.abs(x), (rank - 2, rank - 1))
    least = math.sqrt(float(dtypes.finfo(size.dtype).tiny)) / _eps(x)
    scale = column(column(where((size > 0) & ((size < least) | (size > 1 / least)), size, 1)))
    return x / as_dtype(scale, x), scale


def _iterate(h, q, n):
    """QR iteration of a Hessenberg matrix: its Schur form, `q` times the vectors, and whether it converged."""
    width = 2 if is_complex(h) else 3  # rows that one reflection of a sweep combines
    numbers = positions(h.shape[0])
    adjacent = column(numbers) == row(numbers) + 1
    last = np.int32(n - 1) if dims.is_constant_dim(n) else as_dtype(dims.dim_as_value(n - 1), numbers)
    scale = lax.reduce_max(lax.abs(h), (0, 1))

    def step(state):
        hi, steps, h, q = state
        sizes = lax.abs(diagonal(h))
        near = sizes + lax.pad(sizes, np.zeros((), sizes.dtype), [(1, -1, 0)])
        small = pick(lax.abs(h), adjacent, -1) <= _eps(h) * where(near != 0, near, lax.broadcast_like(scale, near))
        h = where(~(adjacent & column(small)), h)
        lo = lax.reduce_max(where(small & (numbers <= hi), numbers), (0,))  # where the block that ends in hi begins
        found = lo >= hi - np.int32(width - 2)
        finish = _standardized if width == 3 else lambda h, q, lo, hi: (h, q)
        sweep = _sweep_real if width == 3 else _sweep_complex
        h, q = lax.cond(found, lambda h, q: finish(h, q, lo, hi), lambda h, q: sweep(h, q, lo, hi, steps + 1), h, q)
        none = np.int32(0)
        return lax.select(found, lo - 1, hi), lax.select(found, none, steps + 1), h, q

    going_on = lambda state: (state[0] > 0) & (state[1] <= _MOST_STEPS)
    hi, _, h, q = lax.while_loop(going_on, step, (last, np.int32(0), h, q))
    return matrices.triangle(h, lower=False, offset=2 - width), q, hi <= 0


def _entry(h, i, j):
    return at(at(h, i, -2), j, -1)


def _swept(h, q, lo, hi, first):
    """A sweep of reflections down the block of rows `lo` to `hi`; the first maps `first` to a unit vector."""
    width = first.shape[0]

    def cut(x, k, axis):
        return lax.dynamic_slice_in_dim(x, k, width, axis, allow_negative_indices=False)

    def replaced(x, new, k, axis):
        return lax.dynamic_update_slice_in_dim(x, new, k, axis, allow_negative_indices=False)

    def reflect(k, h, q):
        i = lo + k
        before = lax.max(i - np.int32(1), np.int32(0))
        x = where(lax.broadcast(k > 0, (width,)), cut(at(h, before, -1), i, 0), first)
        size = lax.reduce_max(lax.abs(x), (0,))
        x = x / as_dtype(where(size > 0, size, 1), x)
        length, head = _norm(x), at(x, np.int32(0), -1)
        phase = where(head != 0, head / as_dtype(where(head != 0, lax.abs(head), 1), x), 1)
        v = where(positions(width) != 0, x, lax.broadcast_like(head + phase * as_dtype(length, x), x))
        tau = as_dtype(where(length > 0, 2 / where(length > 0, lax.square(_norm(v)), 1)), x)
        from_left = lambda b: b - tau * column(v) * row(lax.reduce_sum(column(conj(v)) * b, (0,)))
        from_right = lambda b: b - tau * column(lax.reduce_sum(b * row(v), (1,))) * row(conj(v))
        h = replaced(h, from_left(cut(h, i, 0)), i, 0)
        h = replaced(h, from_right(cut(h, i, 1)), i, 1)
        q = replaced(q, from_right(cut(q, i, 1)), i, 1)
        column_before = at(h, before, -1)
        numbers = positions(h.shape[0])
        gone = (k > 0) & (numbers > i) & (numbers < i + np.int32(width))
        return put(h, before, where(~gone, column_before), -1), q

    return lax.fori_loop(np.int32(0), hi - lo, lambda k, hq: reflect(k, *hq), (h, q))


def _sweep_complex(h, q, lo, hi, steps):
    a, b = _entry(h, hi - 1, hi - 1), _entry(h, hi - 1, hi)
    c, d = _entry(h, hi, hi - 1), _entry(h, hi, hi)
    root = lax.sqrt(lax.square((a - d) / 2) + b * c)
    one, other = (a + d) / 2 + root, (a + d) / 2 - root
    shift = where(lax.abs(one - d) < lax.abs(other - d), one, other)
    shift = where(steps % 10 != 0, shift, d + as_dtype(lax.abs(c), d))  # every tenth breaks a cycle
    first = lax.stack([_entry(h, lo, lo) - shift, _entry(h, lo + 1, lo)])
    return _swept(h, q, lo, hi, first)


def _sweep_real(h, q, lo, hi, steps):
    a, b = _entry(h, hi - 1, hi - 1), _entry(h, hi - 1, hi)
    c, d = _entry(h, hi, hi - 1), _entry(h, hi, hi)
    w = lax.abs(c) + lax.abs(_entry(h, hi - 1, hi - 2))
    regular = steps % 10 != 0  # every tenth step breaks a cycle
    total, product = where(regular, a + d, 1.5 * w), where(regular, a * d - b * c, w * w)
    h00, h01, h10, h11 = (_entry(h, lo + i, lo + j) for i in (0, 1) for j in (0, 1))
    first = [h00 * h00 + h01 * h10 - total * h00 + product, h10 * (h00 + h11 - total), h10 * _entry(h, lo + 2, lo + 1)]
    return _swept(h, q, lo, hi, lax.stack(first))


def _standardized(h, q, lo, hi):
    """A block of two split if its eigenvalues are real, else transformed to a constant diagonal; a block of one is unchanged."""
    i = hi - 1
    a, b, c, d = (_entry(h, i + j, i + k) for j in (0, 1) for k in (0, 1))
    half = (a - d) / 2
    discriminant = half * half + b * c
    split = discriminant >= 0
    # Real: (x, c) is the eigenvector of the eigenvalue farther from d, without cancellation.
    root = lax.sqrt(where(split, discriminant))
    x = half + where(half >= 0, root, -root)
    length = lax.sqrt(x * x + c * c)
    # Else tan(2 t) = (a - d) / (b + c) makes the diagonal elements equal.
    angle = 0.5 * lax.atan2(d - a, b + c)
    quarter = math.pi / 4
    angle = where(lax.abs(angle) <= quarter, angle, angle - lax.sign(angle) * (2 * quarter))
    some = where(length > 0, length, 1)
    cosine = where(split, where(length > 0, x / some, 1), lax.cos(angle))
    sine = where(split, c / some, lax.sin(angle))
    two = (lo == i) & (c != 0)
    cosine, sine = where(two, cosine, 1), where(two, sine)

    def turned(m, axis):
        first, second = at(m, i, axis), at(m, i + 1, axis)
        return put(put(m, i, cosine * first + sine * second, axis), i + 1, cosine * second - sine * first, axis)

    h, q = turned(turned(h, -2), -1), turned(q, -1)
    numbers = positions(h.shape[0])
    corner = (column(numbers) == i + 1) & (row(numbers) == i)
    h = where(~(corner & two & split), h)
    mean = (_entry(h, i, i) + _entry(h, i + 1, i + 1)) / 2
    pair = (column(numbers) == row(numbers)) & ((row(numbers) == i) | (row(numbers) == i + 1))
    return where(~(pair & two & ~split), h, mean), q


# ---- eigenvalues of general matrices -----------------------------------------------------------------------


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: Any,
    compute_right_eigenvectors: Any,
    enable_eigvec_derivs: Any = False,
    implementation: Any = None,
) -> Any:
    """See `bedrax.lax.primitives.linalg.eig`."""
    x = lax.convert_element_type(x, dtypes.to_complex_dtype(x.dtype))
    t, q = lax.schur(x)
    out = [diagonal(t)]
    if compute_left_eigenvectors:
        out.append(_normalized(matrices.matmul(q, _triangular_vectors(matrices.adjoint(t), lower=True))))
    if compute_right_eigenvectors:
        out.append(_normalized(matrices.matmul(q, _triangular_vectors(t, lower=False))))
    return out


def eigh(
    x: Array, *, lower: bool, sort_eigenvalues: bool, subset_by_index: tuple[int, ...], algorithm: Any
) -> list[Array]:
    """See `bedrax.lax.primitives.linalg.eigh`: the Schur form of a Hermitian matrix is diagonal."""
    if algorithm not in (None, p.EighImplementation.QR):
        raise NotImplementedError(
            f"eigh: {algorithm} has no composition of other operations; leave implementation= out"
        )
    half = matrices.triangle(x, lower=lower, offset=-1 if lower else 1)
    size = positions(x.shape[-1])
    middle = where(column(size) == row(size), lax.convert_element_type(lax.real(x), x.dtype) if is_complex(x) else x)
    t, v = p.schur_p.bind(
        half + matrices.adjoint(half) + middle, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None
    )
    w = lax.real(diagonal(t)) if is_complex(x) else diagonal(t)
    if sort_eigenvalues:
        keys = lax.broadcast_in_dim(w, v.shape, (*range(len(w.shape) - 1), len(w.shape)))
        _, v = lax.sort((keys, v), num_keys=1)
        w = lax.sort(w)
    if subset_by_index is not None:
        v, w = (lax.slice_in_dim(y, *subset_by_index, axis=len(y.shape) - 1) for y in (v, w))
    return [v, w]


def _triangular_vectors(t, lower: bool):
    """The eigenvectors of triangular matrices in columns, by substitution for all of them together."""
    n = t.shape[-1]
    if 0 in t.shape:
        return t
    largest = lax.reduce_max(lax.abs(t), (len(t.shape) - 2, len(t.shape) - 1))
    t = t / as_dtype(column(column(where(largest > 0, largest, 1))), t)
    numbers, values, eps = positions(n), diagonal(t), _eps(t)
    strict = matrices.triangle(t, lower=lower, offset=-1 if lower else 1)

    def substitute(i, y):
        gap = column(at(values, i, -1)) - values
        gap = where(lax.abs(gap) > eps, gap, eps)
        known = matrices.matmul(row(at(strict, i, -2)), y)
        new = -lax.squeeze(known, (len(t.shape) - 2,)) / gap
        later = numbers < i if lower else numbers > i
        y = put(y, i, where(numbers != i, where(later, new), 1), -2)
        # Vectors of nearly equal eigenvalues grow by 1 / eps in each step.
        size = lax.reduce_max(lax.abs(y), (len(t.shape) - 2,))
        return [y / as_dtype(row(where(size > 1 / eps, size, 1)), y)]

    return loop(n, substitute, lax.full_like(t, 0), reverse=not lower)[0]


def _normalized(v):
    """Columns of unit length with a real largest component."""
    if 0 in v.shape:
        return v
    size = lax.abs(v)
    top = lax.argmax(size, len(v.shape) - 2, np.int32)
    chosen = lax.broadcast_like(row(top), v) == column(positions(v.shape[-2]))
    head = pick(v, chosen, -2)
    v = v * row(conj(head) / as_dtype(lax.abs(head), v))
    v = v / as_dtype(row(_norm(v, -2)), v)
    return where(chosen, as_dtype(real(v), v), v)


# ---- singular values ---------------------------------------------------------------------------------------


def svd(x: Array, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any, algorithm: Any) -> list[Array]:
    """See `bedrax.lax.primitives.linalg.svd`: one-sided Jacobi on the triangular factor.

    Raises:
      NotImplementedError: another algorithm is wanted, or the sizes are symbolic.
    """
    if algorithm not in (None, p.SvdAlgorithm.DEFAULT, p.SvdAlgorithm.JACOBI):
        raise NotImplementedError(
            f"svd: {algorithm} is not available here, because it needs a kernel that this platform lacks; use DEFAULT or"
            " JACOBI"
        )
    m, n = x.shape[-2:]
    if not dims.is_constant_shape((m, n)):
        raise NotImplementedError(f"svd of matrices of symbolic size {(m, n)} is implemented for CPU only")
    options = dict(full_matrices=full_matrices, compute_uv=compute_uv, algorithm=algorithm)
    if m < n:
        out = svd(matrices.adjoint(x), subset_by_index=subset_by_index, **options)
        return [out[0], matrices.adjoint(out[2]), matrices.adjoint(out[1])] if compute_uv else out
    s, u, vh = _tall_svd(x, full_matrices)
    if subset_by_index is not None:
        start, end = subset_by_index
        cut = lambda v, axis: lax.slice_in_dim(v, start, end, axis=len(v.shape) + axis)
        s, u, vh = cut(s, -1), cut(u, -1), cut(vh, -2)
    return [s, u, vh] if compute_uv else [s]


def _tall_svd(x, full_matrices: bool):
    m, n = x.shape[-2:]
    rank = len(x.shape)
    real_dtype = dtypes.to_real_dtype(x.dtype)
    if 0 in x.shape:
        empty = lax.full((*x.shape[:-2], n), 0, real_dtype)
        return empty, identity(x, m, m if full_matrices else n), identity(x, n, n)
    good = _finite(x)
    x = where(good, x)
    scale = lax.reduce_max(lax.abs(x), (rank - 2, rank - 1))
    scale = column(column(where(scale > 0, scale, 1)))
    q, r = p.qr(x / as_dtype(scale, x), full_matrices=full_matrices)
    r = lax.slice_in_dim(r, 0, n, axis=rank - 2)
    g, v = _orthogonalized(r)
    s = _norm(g, -2)
    # In descending order; a column of padding comes after those of the matrix.
    padding = lax.abs(at(v, np.int32(n), -2)) == 1 if n % 2 else lax.full_like(s, False, np.bool_)
    keys = -where(~padding, s, -1)
    g, v = (lax.sort((lax.broadcast_like(row(keys), y), y), dimension=rank - 1, num_keys=1)[1] for y in (g, v))
    g, v = (lax.slice_in_dim(lax.slice_in_dim(y, 0, n, axis=rank - 1), 0, n, axis=rank - 2) for y in (g, v))
    s = _norm(g, -2) * lax.squeeze(scale, (rank - 1,))
    # Columns of `g` are orthogonal; a QR decomposition makes them unit vectors, and replaces zero columns.
    unitary, lengths = p.qr(g, full_matrices=False)
    head = diagonal(lengths)
    phase = where(head != 0, head / as_dtype(where(head != 0, lax.abs(head), 1), head), 1)
    u = matrices.matmul(lax.slice_in_dim(q, 0, n, axis=rank - 1), unitary * row(phase))
    u = lax.concatenate([u, lax.slice_in_dim(q, n, q.shape[-1], axis=rank - 1)], rank - 1)
    return (
        where(lax.squeeze(good, (rank - 1,)), s, np.nan),
        where(good, u, _nan(x)),
        where(good, matrices.adjoint(v), _nan(x)),
    )


def _orthogonalized(a):
    """(a V, V) with orthogonal columns, for square matrices; both padded by a column if their size is odd."""
    n, rank = a.shape[-1], len(a.shape)
    even = n + n % 2
    pad = [(0, 0, 0)] * (rank - 2) + [(0, even - n, 0)]
    a = lax.pad(a, np.zeros((), a.dtype), [*pad, (0, even - n, 0)])
    both = lax.concatenate([a, identity(a, even, even)], rank - 2)  # every rotation moves both
    half = even // 2
    cut = lambda y, start, stop, axis=-1: lax.slice_in_dim(y, start, stop, axis=rank + axis)
    eps = _eps(a)

    def rotate(_, both, off):
        """Rotate column i with the i-th from the end, then move all but the first by one (a round robin)."""
        x, y = cut(both, 0, half), lax.rev(cut(both, half, even), (rank - 1,))
        xa, ya = cut(x, 0, even, -2), cut(y, 0, even, -2)
        inner = lax.reduce_sum(conj(xa) * ya, (rank - 2,))
        xx, yy = (lax.square(_norm(z, -2)) for z in (xa, ya))
        size = lax.abs(inner)
        limit = eps * lax.sqrt(xx) * lax.sqrt(yy)
        some = size > limit
        safe = where(some, size, 1)
        zeta = (yy - xx) / (2 * safe)
        t = where(zeta >= 0, lax.full_like(zeta, 1), -1) / (lax.abs(zeta) + lax.sqrt(1 + zeta * zeta))
        t = where(some, t)
        c = lax.rsqrt(1 + t * t)
        phase = where(some, conj(inner) / as_dtype(safe, a), 1)
        c, s = (as_dtype(row(w), a) for w in (c, c * t))
        y = y * row(phase)
        x, y = c * x - s * y, s * x + c * y
        y = lax.rev(y, (rank - 1,))
        moved = [cut(x, 0, 1), cut(y, half - 1, half), cut(x, 1, half), cut(y, 0, half - 1)]
        return lax.concatenate(moved, rank - 1), off | lax.reduce_or(some, tuple(range(rank - 1)))

    def sweep(state):
        count, _, both = state
        both, off = loop(even - 1, rotate, both, np.zeros((), np.bool_))
        return count + np.int32(1), off, both

    going_on = lambda state: state[1] & (state[0] < _MOST_SWEEPS)
    _, _, both = lax.while_loop(going_on, sweep, (np.int32(0), np.ones((), np.bool_), both))
    return cut(both, 0, even, -2), cut(both, even, 2 * even, -2)
