"""Linear algebra as programs: LAPACK's factorizations, column by column.

They replace the kernels on platforms without them. References: Golub and Van Loan, "Matrix Computations" (4th ed.):
3.4 (LU), 4.3.6 (tridiagonal systems), 5.1-5.4 (Householder, QR), 6.5.4 (Cholesky update), 7.4 (Hessenberg form),
8.3 (tridiagonal form). Packed forms and signs are those of LAPACK's users' guide.
"""

import numpy as np

from bedrax import lax
from bedrax.core import dims, dtypes
from bedrax.lax import matrices
from bedrax.lax.decompositions import eigenvalues
from bedrax.lax.decompositions.matrices import (
    as_dtype,
    at,
    column,
    conj,
    diagonal,
    exchanged,
    from_left,
    from_right,
    identity,
    is_complex,
    loop,
    positions,
    put,
    real,
    reflector,
    row,
    unit,
    where,
)
from bedrax.lax.primitives import linalg as p
from bedrax.lax.tables import decompositions


def _taus(a, count, dtype=None):
    return lax.full((*a.shape[:-2], count), 0, dtype or a.dtype)


def _every(x, v):
    """Vectors `v` as vectors of all matrices of `x`."""
    return lax.broadcast_in_dim(v, (*x.shape[:-2], *v.shape), (len(x.shape) - 2,))


# ---- Cholesky ----------------------------------------------------------------------------------------------


@decompositions.rule(p.cholesky_update_p)
def _cholesky_update(r, w):
    r = matrices.triangle(r, lower=False)

    def rotate(k, r, w):  # row k and w, so that w[k] becomes 0
        top = at(r, k, -2)
        x, y = at(top, k, -1), at(w, k, -1)
        size = lax.max(lax.abs(x), lax.abs(y))
        some = size > 0
        x, y = (where(some, v / where(some, size, 1)) for v in (x, y))
        length = where(some, lax.sqrt(x * x + y * y), 1)
        c, s = column(where(some, x / length, 1)), column(y / length)
        return put(r, k, c * top + s * w, -2), c * w - s * top

    return matrices.triangle(loop(r.shape[-1], rotate, r, w)[0], lower=False)


# ---- LU ----------------------------------------------------------------------------------------------------


def _magnitude(x):
    """The size by which LAPACK compares pivots: |Re| + |Im|."""
    return lax.abs(lax.real(x)) + lax.abs(lax.imag(x)) if is_complex(x) else lax.abs(x)


def _largest(size, allowed, i):
    """Index of the largest number at `allowed` positions, not counting NaN; `i` if there is none."""
    size = where(allowed & (size == size), size, -1)
    return lax.max(lax.argmax(size, len(size.shape) - 1, np.int32), lax.broadcast(i, size.shape[:-1]))


@decompositions.rule(p.lu_p)
def _lu(x):
    m, n = x.shape[-2:]
    rows, columns = positions(m), positions(n)
    k = dims.min_dim(m, n)

    def step(i, lu, pivots, order):
        j = _largest(_magnitude(at(lu, i, -1)), lax.broadcast_like(rows >= i, at(lu, i, -1)), i)
        lu, order = exchanged(lu, i, j, -2), exchanged(order, i, j, -1)
        below, top = at(lu, i, -1), at(lu, i, -2)
        pivot = at(below, i, -1)
        below = where(rows > i, below / column(where(pivot != 0, pivot, 1)), below)
        rest = column(rows > i) & row(columns > i)
        return (
            where(rest, put(lu, i, below, -1) - column(below) * row(top), put(lu, i, below, -1)),
            put(pivots, i, j, -1),
            order,
        )

    return list(loop(k, step, x, _taus(x, k, np.int32), _every(x, rows)))


@decompositions.rule(p.lu_pivots_to_permutation_p)
def _permutation(pivots, *, permutation_size):
    lead, k = pivots.shape[:-1], pivots.shape[-1]
    start = lax.broadcasted_iota(np.int32, (*lead, permutation_size), len(lead))
    return loop(k, lambda i, order: [exchanged(order, i, at(pivots, i, -1), -1)], start)[0]


# ---- QR ----------------------------------------------------------------------------------------------------


def _eliminate(a, i, rows, columns):
    """One step of QR: the matrix with column i packed, and tau."""
    old = at(a, i, -1)
    beta, tau, v = reflector(at(old, i, -1), where(rows > i, old))
    new = where(rows > i, v, where(rows != i, old, column(as_dtype(beta, a))))
    return put(where(columns > i, from_left(a, unit(v, i), conj(tau)), a), i, new, -1), tau


@decompositions.rule(p.geqrf_p)
def _geqrf(a):
    m, n = a.shape[-2:]
    rows, columns, k = positions(m), positions(n), dims.min_dim(m, n)

    def step(i, a, taus):
        a, tau = _eliminate(a, i, rows, columns)
        return a, put(taus, i, tau, -1)

    return list(loop(k, step, a, _taus(a, k)))


@decompositions.rule(p.geqp3_p)
def _geqp3(a, jpvt):
    m, n = a.shape[-2:]
    rows, columns, k = positions(m), positions(n), dims.min_dim(m, n)
    last = len(jpvt.shape) - 1
    # Columns marked in jpvt come first and keep their order.
    free = as_dtype(jpvt == 0, jpvt)
    marked = lax.reduce_sum(np.int32(1) - free, (last,))
    _, order = lax.sort((free, _every(a, columns)), dimension=last, num_keys=1)
    _, a = lax.sort((lax.broadcast_like(row(free), a), a), dimension=last + 1, num_keys=1)

    def step(i, a, order, taus):
        rest = where(column(rows >= i) & row(columns >= i), a)
        size = lax.reduce_max(lax.abs(rest), (last, last + 1))  # squares neither overflow nor vanish
        rest = rest / as_dtype(column(column(where((size > 0) & lax.is_finite(size), size, 1))), a)
        norms = lax.reduce_sum(real(rest * conj(rest)), (last,))
        j = where(
            i < marked, lax.broadcast(i, marked.shape), _largest(norms, lax.broadcast_like(columns >= i, norms), i)
        )
        a, tau = _eliminate(exchanged(a, i, j, -1), i, rows, columns)
        return a, exchanged(order, i, j, -1), put(taus, i, tau, -1)

    a, order, taus = loop(k, step, a, order, _taus(a, k))
    return [a, order + np.int32(1), taus]


def _vector(a, i):
    """The vector of reflector i of a packed matrix."""
    return unit(where(positions(a.shape[-2]) > i, at(a, i, -1)), i)


@decompositions.rule(p.householder_product_p)
def _householder_product(a, taus):
    step = lambda i, q: [from_left(q, _vector(a, i), at(taus, i, -1))]
    return loop(taus.shape[-1], step, identity(a, *a.shape[-2:]), reverse=True)[0]


@decompositions.rule(p.ormqr_p)
def _ormqr(a, taus, c, *, left, transpose):
    taus = conj(taus) if transpose else taus
    apply = from_left if left else from_right
    step = lambda i, c: [apply(c, _vector(a, i), at(taus, i, -1))]
    return loop(taus.shape[-1], step, c, reverse=left != transpose)[0]


@decompositions.rule(p.qr_p)
def _qr(x, *, pivoting, full_matrices, use_magma):
    """From the packed form: R is its upper triangle, Q the product of its reflectors."""
    m, n = x.shape[-2:]
    rank, least = len(x.shape), dims.min_dim(m, n)
    k = m if full_matrices else least
    if pivoting:
        start = lax.full((*x.shape[:-2], n), 0, np.int32)
        packed, order, taus = p.geqp3_p.bind(x, start)
        permutation = [order - np.int32(1)]
    else:
        (packed, taus), permutation = p.geqrf_p.bind(x), []
    r = matrices.triangle(lax.slice_in_dim(packed, 0, k, axis=rank - 2), lower=False)
    vectors = lax.slice_in_dim(packed, 0, least, axis=rank - 1)
    if not dims.definitely_equal(k, least):
        vectors = lax.pad(vectors, np.zeros((), x.dtype), [(0, 0, 0)] * (rank - 1) + [(0, k - least, 0)])
    return [p.householder_product_p.bind(vectors, taus), r, *permutation]


# ---- similar matrices of simpler form ----------------------------------------------------------------------


@decompositions.rule(p.hessenberg_p)
def _hessenberg(a):
    rows = columns = positions(a.shape[-1])
    count = dims.max_dim(a.shape[-1] - 1, 0)

    def step(i, a, taus):
        old = at(a, i, -1)
        beta, tau, v = reflector(at(old, i + 1, -1), where(rows > i + 1, old))
        u = unit(v, i + 1)
        new = from_right(a, u, tau)
        new = where(columns > i, from_left(new, u, conj(tau)), a)
        packed = where(rows > i + 1, v, where(rows != i + 1, old, column(as_dtype(beta, a))))
        return put(new, i, packed, -1), put(taus, i, tau, -1)

    packed, taus = loop(count, step, a, _taus(a, dims.max_dim(count, 1)))
    return [packed, _first(taus, count)]


def _first(v, count):
    """The first `count` elements of a vector, which is longer than `count` if `count` may be 0."""
    return v if dims.definitely_equal(v.shape[-1], count) else lax.slice_in_dim(v, 0, count, axis=len(v.shape) - 1)


@decompositions.rule(p.tridiagonal_p)
def _tridiagonal(a, *, lower):
    n = a.shape[-1]
    rows = positions(n)
    count = dims.max_dim(n - 1, 0)
    above, same = column(rows) < row(rows), column(rows) == row(rows)
    read, written = (column(rows) > row(rows), above) if lower else (above, column(rows) > row(rows))
    half = where(read, a)
    full = where(same, as_dtype(real(a), a), half + matrices.adjoint(half))
    taus = _taus(a, dims.max_dim(count, 1))

    def step(i, full, vectors, e, taus):
        to, source = (i + 1, i) if lower else (i, i + 1)
        old = at(full, source, -1)
        beta, tau, v = reflector(at(old, to, -1), where(rows > to if lower else rows < to, old))
        u = unit(v, to)
        full = from_right(from_left(full, u, conj(tau)), u, tau)
        return full, put(vectors, source, v, -1), put(e, i, beta, -1), put(taus, i, tau, -1)

    zeros = lax.full_like(a, 0)
    full, vectors, e, taus = loop(count, step, full, zeros, real(taus), taus, reverse=not lower)
    e, taus, d = _first(e, count), _first(taus, count), real(diagonal(full))
    # The diagonal and the adjacent one hold d and e. The triangle that is not read is returned unchanged.
    wide = lax.pad(e, np.zeros((), e.dtype), [(0, 0, 0)] * (len(e.shape) - 1) + [(0, n - count, 0)])
    adjacent = column(rows) == row(rows) + 1 if lower else column(rows) + 1 == row(rows)
    packed = where(written, a, where(~same, vectors, as_dtype(column(d), a)))
    return [where(~adjacent, packed, as_dtype((row if lower else column)(wide), a)), d, e, taus]


# ---- systems of equations and products ---------------------------------------------------------------------


@decompositions.rule(p.tridiagonal_solve_p)
def _tridiagonal_solve(dl, d, du, b, *, perturb_singular):
    """LAPACK's gttrf and gtts2: each step exchanges row i with the next one if the next has the larger pivot."""
    m = d.shape[-1]

    def eliminate(i, d, above, above2, b):
        low, pivot, right = at(dl, i + 1, -1), at(d, i, -1), at(b, i, -2)
        swap = _magnitude(low) > _magnitude(pivot)
        first = [pivot, at(above, i, -1), at(above2, i, -1)]
        second = [low, at(d, i + 1, -1), at(above, i + 1, -1)]
        pivot, top, top2 = (lax.select(swap, y, x) for x, y in zip(first, second))
        other, bottom, bottom2 = (lax.select(swap, x, y) for x, y in zip(first, second))
        factor = other / pivot
        if perturb_singular:
            factor = where(pivot != 0, factor)
        right, below = (where(column(swap), y, x) for x, y in ((right, at(b, i + 1, -2)), (at(b, i + 1, -2), right)))
        d = put(put(d, i, pivot, -1), i + 1, bottom - factor * top, -1)
        above = put(put(above, i, top, -1), i + 1, bottom2 - factor * top2, -1)
        b = put(put(b, i, right, -2), i + 1, below - column(factor) * right, -2)
        return d, above, put(above2, i, top2, -1), b

    above = where(positions(m) < m - 1, du)
    d, above, above2, b = loop(m - 1, eliminate, d, above, lax.full_like(d, 0), b)
    if perturb_singular:
        limits = dtypes.finfo(dtypes.to_real_dtype(d.dtype))
        largest = [lax.reduce_max(lax.abs(v), (len(d.shape) - 1,)) for v in (d, above, above2)]
        bound = column(lax.max(lax.max(*largest[:2]), largest[2]))
        bound = lax.broadcast_like(where(bound > limits.tiny / limits.eps, bound * limits.eps, limits.tiny), d)
        signed = as_dtype(where(real(d) < 0, -bound, bound), d)
        d = lax.select(lax.abs(d) < bound, signed, d)

    def substitute(i, b, next1, next2):
        here = at(b, i, -2) - column(at(above, i, -1)) * next1 - column(at(above2, i, -1)) * next2
        here = here / column(at(d, i, -1))
        return put(b, i, here, -2), here, next1

    zero = lax.full_like(b, 0, shape=(*b.shape[:-2], b.shape[-1]))
    out = loop(m, substitute, b, zero, zero, reverse=True)[0]
    singular = lax.reduce_or(d == 0, (len(d.shape) - 1,))
    return where(~column(column(singular)), out, complex(np.nan, np.nan) if is_complex(b) else np.nan)


@decompositions.rule(p.symmetric_product_p)
def _symmetric_product(a, c, *, alpha, beta):
    out = matrices.matmul(a, matrices.transposed(a))
    out = out if alpha == 1 else out * np.array(alpha, a.dtype)
    return out + c * np.array(beta, c.dtype) if beta else out


for _prim in (p.eig_p, p.eigh_p, p.schur_p, p.svd_p):
    decompositions.add(_prim, getattr(eigenvalues, _prim.name))
