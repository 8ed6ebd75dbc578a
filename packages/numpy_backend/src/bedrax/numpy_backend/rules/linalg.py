"""NumPy evaluation of linear algebra: `numpy.linalg` if it has the operation, else LAPACK's algorithms on batches.

References: Golub and Van Loan, "Matrix Computations" (4th ed.): 3.4 (LU), 4.3.6 (tridiagonal), 5.1-5.4 (Householder,
QR), 6.5.4 (Cholesky update), 7.4 (Hessenberg), 8.3 (tridiagonal); packed forms and signs are those of LAPACK's
users' guide. A matrix for which an algorithm fails gives NaN; others of its batch are not affected.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bedrax.core import dtypes
from bedrax.lax.primitives import linalg as p
from bedrax.numpy_backend.rules import schur_form
from bedrax.numpy_backend.tables import numpy_rules

_DTYPES = frozenset(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))


def _check_dtype(prim, x: np.ndarray) -> None:
    if x.dtype not in _DTYPES:
        raise NotImplementedError(f"{prim} is for float32, float64, complex64, complex128, got {x.dtype}; convert it")


def _rule(prim) -> Callable:
    """Register a rule that checks the dtype of the operand. NaNs and infinities raise no warnings."""

    def register(rule):
        def checked(x, *args, **params):
            _check_dtype(prim, x)
            with np.errstate(all="ignore"):
                return rule(x, *args, **params)

        numpy_rules.add(prim, checked)
        return rule

    return register


def _adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def _nan(dtype):
    return dtype.type(complex(np.nan, np.nan) if dtype.kind == "c" else np.nan)


def _each(fun: Callable, x: np.ndarray, out: list[np.ndarray]) -> list[np.ndarray]:
    """Write the results of ``fun(matrix)`` for each matrix of `x` into `out`; NaN if `numpy.linalg` fails."""
    for index in np.ndindex(x.shape[:-2]):
        try:
            results = fun(x[index])
        except np.linalg.LinAlgError:
            results = [_nan(o.dtype) for o in out]
        for o, r in zip(out, results, strict=True):
            o[index] = r
    return out


def _batched_or_each(fun: Callable, x: np.ndarray, shapes: list[tuple]) -> list[np.ndarray]:
    """Call ``fun(x)`` on the whole stack, or on each matrix if one fails; `shapes`: (shape, dtype) of results."""
    try:
        return [np.asarray(r, dtype=d) for r, (_, d) in zip(fun(x), shapes, strict=True)]
    except np.linalg.LinAlgError:
        return _each(fun, x, [np.empty(s, d) for s, d in shapes])


# ---- Cholesky ----------------------------------------------------------------------------------------------


@_rule(p.cholesky_p)
def _cholesky(x):
    if not x.size:
        return np.zeros_like(x)
    (out,) = _batched_or_each(lambda a: [np.linalg.cholesky(a)], x, [(x.shape, x.dtype)])
    return np.tril(out)


@_rule(p.cholesky_update_p)
def _cholesky_update(r, w):
    r, w = np.triu(r), w.copy()
    for k in range(w.shape[-1]):  # rotate row k and w so that w[k] vanishes
        length = np.hypot(r[..., k, k], w[..., k])
        some = length != 0
        c = np.where(some, r[..., k, k] / np.where(some, length, 1), 1)[..., None]
        s = np.where(some, w[..., k] / np.where(some, length, 1), 0)[..., None]
        row = r[..., k, :].copy()
        r[..., k, :] = c * row + s * w
        w = c * w - s * row
    return np.triu(r)


# ---- LU ----------------------------------------------------------------------------------------------------


def _magnitude(x):
    """Return |Re| + |Im|, which LAPACK compares for pivots."""
    return np.abs(x.real) + np.abs(x.imag) if np.iscomplexobj(x) else np.abs(x)


def _swap(x, i: int, j: np.ndarray, batch: tuple) -> None:
    """Exchange rows i and j, where j differs over the batch."""
    old = x[..., i, :].copy()
    x[..., i, :] = x[(*batch, j)]
    x[(*batch, j)] = old


def _batch_index(shape: tuple) -> tuple:
    return tuple(np.indices(shape, sparse=True))


@_rule(p.lu_p)
def _lu(x):
    lu = x.copy()
    *lead, m, n = x.shape
    k = min(m, n)
    pivots = np.zeros((*lead, k), np.int32)
    batch = _batch_index(tuple(lead))
    for i in range(k):
        size = _magnitude(lu[..., i:, i])
        size = np.where(np.isnan(size), -1, size)
        j = i + np.argmax(size, axis=-1) if size.size else np.full(lead, i)
        pivots[..., i] = j
        _swap(lu, i, j, batch)
        pivot = lu[..., i, i][..., None]
        lu[..., i + 1 :, i] = np.where(pivot == 0, lu[..., i + 1 :, i], lu[..., i + 1 :, i] / pivot)
        lu[..., i + 1 :, i + 1 :] -= lu[..., i + 1 :, i, None] * lu[..., i, None, i + 1 :]
    return [lu, pivots, _permutation(pivots, permutation_size=m)]


@numpy_rules.rule(p.lu_pivots_to_permutation_p)
def _permutation(pivots, *, permutation_size):
    *lead, k = pivots.shape
    out = np.broadcast_to(np.arange(permutation_size, dtype=np.int32), (*lead, permutation_size)).copy()
    batch = _batch_index(tuple(lead))
    for i in range(k):
        _swap(out[..., None], i, pivots[..., i], batch)
    return out


# ---- Householder reflectors --------------------------------------------------------------------------------


def _reflector(alpha, x):
    """Return (beta, tau, v) with ``(1 - tau [1, v] [1, v]^H)^H [alpha, x] = [beta, 0]``, beta real.

    LAPACK's larfg: tau is 0 if `x` is zero and alpha is real.
    """
    # Squares of very large or small elements would overflow or vanish: the largest one is the unit.
    unit = np.maximum(np.abs(alpha), np.max(np.abs(x), axis=-1, initial=0))
    unit = np.where(unit == 0, 1, unit).astype(unit.dtype)
    first, others = np.abs(alpha) / unit, np.abs(x) / unit[..., None]
    nothing = ~np.any(x, axis=-1) & (alpha.imag == 0)
    length = unit * np.sqrt(first**2 + np.sum(others**2, axis=-1))
    beta = np.where(alpha.real < 0, length, -length)
    safe = np.where(nothing, 1, beta)
    tau = np.where(nothing, 0, (beta - alpha) / safe).astype(x.dtype)
    v = x / np.where(nothing, 1, alpha - beta)[..., None]
    return np.where(nothing, alpha.real, beta).astype(beta.dtype), tau, v.astype(x.dtype)


def _full(v, above: int):
    """Return the vector of a reflector with its leading one, after `above` zeros."""
    one = np.ones((*v.shape[:-1], 1), v.dtype)
    return np.concatenate([np.zeros((*v.shape[:-1], above), v.dtype), one, v], axis=-1)


def _apply_left(x, v, tau) -> None:
    """Compute ``x -= tau v (v^H x)`` in place."""
    x -= (tau[..., None] * v)[..., :, None] * (v.conj()[..., None, :] @ x)


def _apply_right(x, v, tau) -> None:
    """Compute ``x -= tau (x v) v^H`` in place."""
    x -= (x @ v[..., :, None]) * (tau[..., None] * v.conj())[..., None, :]


def _eliminate(a, i: int):
    """One step of QR in place; returns tau."""
    beta, tau, v = _reflector(a[..., i, i].copy(), a[..., i + 1 :, i])
    _apply_left(a[..., i:, i + 1 :], _full(v, 0), tau.conj())
    a[..., i, i] = beta
    a[..., i + 1 :, i] = v
    return tau


@_rule(p.geqrf_p)
def _geqrf(a):
    if a.size:
        packed, taus = np.linalg.qr(a, mode="raw")
        return [np.swapaxes(packed, -1, -2).astype(a.dtype), taus.astype(a.dtype)]
    return [a.copy(), np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)]


@_rule(p.geqp3_p)
def _geqp3(a, jpvt):
    *lead, m, n = a.shape
    k = min(m, n)
    # Columns marked in jpvt come first and keep their order.
    order = np.argsort(jpvt == 0, axis=-1, kind="stable")
    marked = np.sum(jpvt != 0, axis=-1)
    a = np.take_along_axis(a, order[..., None, :], axis=-1)
    taus = np.zeros((*lead, k), a.dtype)
    batch = _batch_index(tuple(lead))
    for i in range(k):
        rest = a[..., i:, i:]
        sizes = np.abs(rest)
        unit = np.max(sizes, axis=(-2, -1), keepdims=True)  # squares of very large or small elements need one
        norms = np.sum((sizes / np.where((unit == 0) | ~np.isfinite(unit), 1, unit)) ** 2, axis=-2)
        norms = np.where(np.isnan(norms), -1, norms)
        j = np.where(i < marked, i, i + np.argmax(norms, axis=-1))
        for rows in (np.swapaxes(a, -1, -2), order[..., None]):
            _swap(rows, i, j, batch)
        taus[..., i] = _eliminate(a, i)
    return [a, (order + 1).astype(np.int32), taus]


def _vector(a, i: int):
    return _full(a[..., i + 1 :, i], i)


@_rule(p.householder_product_p)
def _householder_product(a, taus):
    m, n = a.shape[-2:]
    q = np.broadcast_to(np.eye(m, n, dtype=a.dtype), a.shape).copy()
    for i in reversed(range(taus.shape[-1])):
        _apply_left(q, _vector(a, i), taus[..., i])
    return q


@_rule(p.ormqr_p)
def _ormqr(a, taus, c, *, left, transpose):
    c = c.copy()
    indices = range(taus.shape[-1])
    if transpose:
        taus = taus.conj()
    apply = _apply_left if left else _apply_right
    for i in indices if left == transpose else reversed(indices):
        apply(c, _vector(a, i), taus[..., i])
    return c


@_rule(p.qr_p)
def _qr(x, *, pivoting, full_matrices, use_magma):
    *lead, m, n = x.shape
    k = m if full_matrices else min(m, n)
    identity = np.broadcast_to(np.eye(m, k, dtype=x.dtype), (*lead, m, k))
    if pivoting:
        packed, order, taus = _geqp3(x, np.zeros((*lead, n), np.int32))
        q = _ormqr(packed, taus, identity, left=True, transpose=False)
        return [q, np.triu(packed)[..., :k, :], order - np.int32(1)]
    if not x.size:
        return [identity.copy(), np.zeros((*lead, k, n), x.dtype)]
    return [np.asarray(r) for r in np.linalg.qr(x, mode="complete" if full_matrices else "reduced")]


@_rule(p.hessenberg_p)
def _hessenberg(a):
    a = a.copy()
    *lead, n, _ = a.shape
    taus = np.zeros((*lead, max(n - 1, 0)), a.dtype)
    for i in range(n - 1):
        beta, tau, v = _reflector(a[..., i + 1, i].copy(), a[..., i + 2 :, i])
        u = _full(v, 0)
        _apply_right(a[..., :, i + 1 :], u, tau)
        _apply_left(a[..., i + 1 :, i + 1 :], u, tau.conj())
        a[..., i + 1, i] = beta
        a[..., i + 2 :, i] = v
        taus[..., i] = tau
    return [a, taus]


@_rule(p.tridiagonal_p)
def _tridiagonal(a, *, lower):
    *lead, n, _ = a.shape
    real = dtypes.to_real_dtype(a.dtype)
    other = np.triu(a, 1) if lower else np.tril(a, -1)  # returned unchanged
    part = np.tril(a, -1) if lower else np.triu(a, 1)
    full = part + _adjoint(part) + np.zeros_like(a)
    diagonal = np.arange(n)
    full[..., diagonal, diagonal] = a[..., diagonal, diagonal].real
    taus = np.zeros((*lead, max(n - 1, 0)), a.dtype)
    e = np.zeros((*lead, max(n - 1, 0)), real)
    vectors = np.zeros_like(a)
    for i in range(n - 1) if lower else reversed(range(n - 1)):
        one, column, rest = (i + 1, i, slice(i + 2, n)) if lower else (i, i + 1, slice(0, i))
        beta, tau, v = _reflector(full[..., one, column].copy(), full[..., rest, column])
        u = np.zeros((*lead, n), a.dtype)
        u[..., one], u[..., rest] = 1, v
        _apply_left(full, u, tau.conj())
        _apply_right(full, u, tau)
        e[..., i], taus[..., i] = beta, tau
        vectors[..., rest, column] = v
    d = full[..., diagonal, diagonal].real.copy()
    packed = vectors + other
    packed[..., diagonal, diagonal] = d
    rows, columns = (diagonal[1:], diagonal[:-1]) if lower else (diagonal[:-1], diagonal[1:])
    packed[..., rows, columns] = e
    return [packed, d, e, taus]


# ---- eigenvalues and singular values -----------------------------------------------------------------------


@_rule(p.eigh_p)
def _eigh(x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    *lead, n, _ = x.shape
    real = dtypes.to_real_dtype(x.dtype)
    if x.size:
        w, v = _batched_or_each(
            lambda a: tuple(np.linalg.eigh(a, UPLO="L" if lower else "U")), x, [((*lead, n), real), (x.shape, x.dtype)]
        )
        broken = np.isnan(w).any(axis=-1, keepdims=True)
        w, v = np.where(broken, _nan(real), w), np.where(broken[..., None], _nan(x.dtype), v)
    else:
        w, v = np.zeros((*lead, n), real), np.zeros_like(x)
    start, end = subset_by_index or (0, n)
    return [v[..., :, start:end].copy(), w[..., start:end].copy()]


def _svd_of_finite(a, **options):
    if not np.isfinite(a).all():  # LAPACK may not terminate for them
        raise np.linalg.LinAlgError
    return np.linalg.svd(a, **options)


@_rule(p.svd_p)
def _svd(x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    *lead, m, n = x.shape
    k = min(m, n)
    real = dtypes.to_real_dtype(x.dtype)
    start, end = subset_by_index or (0, k)
    if not compute_uv:
        if not x.size:
            return [np.zeros((*lead, end - start), real)]
        (s,) = _batched_or_each(lambda a: [_svd_of_finite(a, compute_uv=False)], x, [((*lead, k), real)])
        return [s[..., start:end].copy()]
    rows, columns = (m, n) if full_matrices else (k, k)
    shapes = [((*lead, m, rows), x.dtype), ((*lead, k), real), ((*lead, columns, n), x.dtype)]
    if x.size:
        u, s, vh = _batched_or_each(lambda a: tuple(_svd_of_finite(a, full_matrices=full_matrices)), x, shapes)
    else:
        u, vh = (np.broadcast_to(np.eye(*shape[-2:], dtype=x.dtype), shape) for shape, _ in shapes[::2])
        s = np.zeros((*lead, k), real)
    if subset_by_index is not None:
        u, s, vh = u[..., :, start:end], s[..., start:end], vh[..., start:end, :]
    return [s.copy(), u.copy(), vh.copy()]


@_rule(p.eig_p)
def _eig(x, *, compute_left_eigenvectors, compute_right_eigenvectors, **_):
    *lead, n = x.shape[:-1]
    dtype = dtypes.to_complex_dtype(x.dtype)
    out = [np.zeros((*lead, n), dtype)] + [
        np.zeros((*lead, n, n), dtype) for _ in range(compute_left_eigenvectors + compute_right_eigenvectors)
    ]

    def one(a):
        if not np.isfinite(a).all():
            raise np.linalg.LinAlgError
        if len(out) == 1:
            return [np.linalg.eigvals(a)]
        w, right = np.linalg.eig(a)
        found = [w]
        if compute_left_eigenvectors:
            found.append(_left_eigenvectors(a, w))
        return [*found, right] if compute_right_eigenvectors else found

    return _each(one, x, out) if x.size else out


def _left_eigenvectors(a, w):
    """Return the eigenvectors of the adjoint, in the order of the eigenvalues `w` of `a`."""
    found, vectors = np.linalg.eig(_adjoint(a))
    distance = np.abs(w[:, None] - found.conj()[None, :])
    order = np.zeros(len(w), int)
    for _ in w:  # the closest pair first
        i, j = np.unravel_index(np.argmin(distance), distance.shape)
        order[i] = j
        distance[i, :], distance[:, j] = np.inf, np.inf
    return vectors[:, order]


@_rule(p.schur_p)
def _schur(x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    out = _each(schur_form.schur, x, [np.empty_like(x), np.empty_like(x)])
    return out[: 1 + compute_schur_vectors]


# ---- systems of equations and products --------------------------------------------------------------------


def _substitute(a, b, lower: bool, unit_diagonal: bool) -> None:
    """Solve ``a x = b`` in place of `b`, by halves, so that products of matrices do most of the work."""
    n = a.shape[-1]
    if n > 16:
        h = n // 2
        first, second = (slice(0, h), slice(h, n)) if lower else (slice(h, n), slice(0, h))
        _substitute(a[..., first, first], b[..., first, :], lower, unit_diagonal)
        b[..., second, :] -= a[..., second, first] @ b[..., first, :]
        _substitute(a[..., second, second], b[..., second, :], lower, unit_diagonal)
        return
    for i in range(n) if lower else reversed(range(n)):
        known = slice(0, i) if lower else slice(i + 1, n)
        b[..., i, :] -= (a[..., i, None, known] @ b[..., known, :])[..., 0, :]
        if not unit_diagonal:
            b[..., i, :] /= a[..., i, i, None]


@_rule(p.triangular_solve_p)
def _triangular_solve(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    if conjugate_a:
        a = a.conj()
    if transpose_a == left_side:  # x a = b is a^T x^T = b^T
        a, lower = np.swapaxes(a, -1, -2), not lower
    x = (b if left_side else np.swapaxes(b, -1, -2)).copy()
    _substitute(a, x, lower, unit_diagonal)
    return x if left_side else np.ascontiguousarray(np.swapaxes(x, -1, -2))


@_rule(p.tridiagonal_solve_p)
def _tridiagonal_solve(dl, d, du, b, *, perturb_singular):
    """LAPACK's gttrf and gtts2: each step exchanges row i with the next one where that has the larger pivot."""
    m = d.shape[-1]
    d, b = d.copy(), b.copy()
    above = np.concatenate([du[..., :-1], np.zeros_like(du[..., -1:])], axis=-1)
    above2 = np.zeros_like(d)
    for i in range(m - 1):
        low = dl[..., i + 1]
        swap = _magnitude(low) > _magnitude(d[..., i])
        pivot, other = np.where(swap, low, d[..., i]), np.where(swap, d[..., i], low)
        top, bottom = (np.where(swap, d[..., i + 1], above[..., i]), np.where(swap, above[..., i], d[..., i + 1]))
        top2 = np.where(swap, above[..., i + 1], above2[..., i])
        bottom2 = np.where(swap, above2[..., i], above[..., i + 1])
        factor = np.where((pivot == 0) & perturb_singular, 0, other / pivot)
        first = np.where(swap[..., None], b[..., i + 1, :], b[..., i, :])
        second = np.where(swap[..., None], b[..., i, :], b[..., i + 1, :])
        d[..., i], above[..., i], above2[..., i], b[..., i, :] = pivot, top, top2, first
        d[..., i + 1], above[..., i + 1] = bottom - factor * top, bottom2 - factor * top2
        b[..., i + 1, :] = second - factor[..., None] * first
    if perturb_singular and m:
        largest = np.max(np.stack([np.abs(v) for v in (d, above, above2)]), axis=(0, -1))
        limits = np.finfo(d.dtype)
        bound = np.maximum(limits.eps * largest, limits.tiny)[..., None]
        d = np.where(np.abs(d) < bound, np.where(d.real < 0, -bound, bound), d).astype(d.dtype)
    for i in reversed(range(m)):
        if i + 1 < m:
            b[..., i, :] -= above[..., i, None] * b[..., i + 1, :]
        if i + 2 < m:
            b[..., i, :] -= above2[..., i, None] * b[..., i + 2, :]
        b[..., i, :] /= d[..., i, None]
    singular = np.any(d == 0, axis=-1)[..., None, None]
    return np.where(singular, _nan(b.dtype), b)


@_rule(p.symmetric_product_p)
def _symmetric_product(a, c, *, alpha, beta):
    out = (a @ np.swapaxes(a, -1, -2)) * a.dtype.type(alpha)
    return out + c * c.dtype.type(beta) if beta else out
