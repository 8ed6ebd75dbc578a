"""Derivatives of linear algebra.

Formulas: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008)
for eigenvalues and systems; Murray, "Differentiation of the Cholesky decomposition" (2016), section 3.1; Walter and
Lehmann, "Algorithmic differentiation of linear algebra functions with application in optimum experimental design"
(2010) for QR; Townsend, "Differentiating the singular value decomposition" (2016); LU is derived in the same way.

All follow one pattern: multiply the tangent of ``A = product of factors`` by inverse factors, and split the result
into the part that each factor can take (triangular, skew-Hermitian, diagonal). Matrices that represent Hermitian
ones have tangents that do so, too.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bedrax.autodiff.tables import (
    Zero,
    absent,
    add_tangents,
    instantiate,
    is_undefined,
    jvp,
    jvp_rules,
    not_transposable,
    transpose_rules,
    zero,
)
from bedrax.core import dims, dtypes
from bedrax.core.avals import aval_of
from bedrax.lax import filling
from bedrax.lax.matrices import adjoint, matmul, transposed, triangle
from bedrax.lax.primitives import elementwise, reductions, shaping
from bedrax.lax.primitives import linalg as p
from bedrax.lax.primitives.conversions import convert_element_type

add: Final = elementwise.add
sub: Final = elementwise.sub
mul: Final = elementwise.mul
div: Final = elementwise.div


def _is_complex(x) -> bool:
    return dtypes.is_complex(aval_of(x).dtype)


def _real(x):
    return elementwise.real(x) if _is_complex(x) else x


def _like(value, x):
    """Real numbers in the dtype of `x`."""
    return elementwise.complex(value, filling.zeros_like(value)) if _is_complex(x) else value


def _imaginary(value):
    """``1j * value``"""
    return elementwise.complex(filling.zeros_like(value), value)


def _eye(x):
    """Booleans shaped like the matrices `x`: true on the diagonal."""
    shape = aval_of(x).shape
    rows, columns = (shaping.broadcasted_iota(np.int32, shape, len(shape) - k) for k in (2, 1))
    return elementwise.eq(rows, columns)


def _only_diagonal(x):
    return elementwise.select(_eye(x), x, filling.zeros_like(x))


def _diagonal(x):
    """The diagonals of square matrices, as vectors."""
    return reductions.reduce_sum(_only_diagonal(x), axes=(len(aval_of(x).shape) - 1,))


def _across(v, x):
    """Vectors ``v[..., j]`` as matrices like `x` with elements ``v[j]`` at [i, j]."""
    n = len(aval_of(x).shape)
    return shaping.broadcast_in_dim(v, aval_of(x).shape, (*range(n - 2), n - 1))


def _down(v, x):
    """Vectors ``v[..., i]`` as matrices like `x` with elements ``v[i]`` at [i, j]."""
    n = len(aval_of(x).shape)
    return shaping.broadcast_in_dim(v, aval_of(x).shape, tuple(range(n - 1)))


def _solve(a, b, *, left=True, lower=True, adjoint_of=False, unit=False):
    """``a^-1 b`` or ``b a^-1`` for triangular `a`, or its adjoint."""
    return p.triangular_solve(
        a, b, left_side=left, lower=lower, transpose_a=adjoint_of, conjugate_a=adjoint_of, unit_diagonal=unit
    )


def _block(x, rows, columns):
    """Leading blocks of matrices."""
    shape = aval_of(x).shape
    k = len(shape) - 2
    return shaping.slice(x, (0,) * (k + 2), (*shape[:k], rows, columns))


def _resized(x, rows, columns):
    """Matrices with zeros appended."""
    shape = aval_of(x).shape
    k = len(shape) - 2
    growth = [(0, 0, 0)] * k + [(0, rows - shape[k], 0), (0, columns - shape[k + 1], 0)]
    return shaping.pad(x, np.zeros((), aval_of(x).dtype), growth)


def _sizes(x) -> tuple:
    m, n = aval_of(x).shape[-2:]
    if not (dims.is_constant_dim(m) and dims.is_constant_dim(n)):
        return m, n, m, dims.definitely_equal(m, n)
    return m, n, min(m, n), m == n


# ---- factorizations ----------------------------------------------------------------------------------------


def _half_triangle(x):
    """The lower triangle with half of the diagonal."""
    half = triangle(x, lower=True, offset=-1)
    return add(half, mul(_only_diagonal(x), np.array(0.5, aval_of(x).dtype)))


def _cholesky_tangent(t, l, x):
    inner = _solve(l, _solve(l, t), left=False, adjoint_of=True)  # L^-1 dA L^-H
    return matmul(l, _half_triangle(inner))


jvp(p.cholesky_p, _cholesky_tangent)


@jvp_rules.rule(p.lu_p)
def _lu(primals, tangents):
    """``X = L^-1 P dA U^-1``, with L and U completed to square matrices by ones; its triangles are L^-1 dL and dU U^-1."""
    (a,), (t,) = primals, tangents
    packed, pivots, permutation = p.lu_p.bind(a)
    m, n, k, square = _sizes(a)
    rows = shaping.broadcasted_iota(np.int32, (*aval_of(permutation).shape, m), len(aval_of(a).shape) - 1)
    index = shaping.broadcast_in_dim(permutation, aval_of(rows).shape, tuple(range(len(aval_of(a).shape) - 1)))
    exchange = elementwise.eq(index, rows)
    t = matmul(_converted(exchange, t), t)  # P dA
    l = triangle(packed, lower=True, offset=-1)
    u = triangle(packed, lower=False)
    if not square:
        l = _resized(l, m, m) if m > n else _block(l, m, m)
        u = _block(u, n, n) if m > n else _completed(_resized(u, n, n), k)
    x = _solve(l, t, unit=True)
    x = _solve(u, x, left=False, lower=False)
    dl = matmul(_with_unit_diagonal(l), triangle(x, lower=True, offset=-1))
    du = matmul(triangle(x, lower=False), u)
    # dl is strictly lower and du upper; both have the shape of `a`.
    return ([packed, pivots, permutation], [add(dl, du), Zero.of(pivots), Zero.of(permutation)])


def _converted(mask, like):
    return convert_element_type(mask, aval_of(like).dtype)


def _with_unit_diagonal(l):
    return add(l, _converted(_eye(l), l))


def _completed(u, k: int):
    """Ones on the diagonal from row k on."""
    late = elementwise.ge(shaping.broadcasted_iota(np.int32, aval_of(u).shape, len(aval_of(u).shape) - 1), np.int32(k))
    return add(u, _converted(elementwise.bitwise_and(_eye(u), late), u))


@jvp_rules.rule(p.qr_p)
def _qr(primals, tangents, *, pivoting, full_matrices, use_magma):
    """``A1 = Q1 R1`` for the first columns of A. ``Q1^H dA1 R1^-1`` is a skew-Hermitian part, Q1^H dQ1, plus an upper
    triangular one with real diagonal, dR1 R1^-1. R1 has to be invertible. For further columns of Q, A determines only
    the part of the tangent that keeps Q unitary; that part is returned.
    """
    (a,), (t,) = primals, tangents
    out = p.qr_p.bind(a, pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma)
    q, r = out[:2]
    m, n, k, square = _sizes(a)
    if pivoting:
        t = _take_columns(t, out[2])
    q1 = q if not full_matrices or m <= n else _block(q, m, k)
    r1 = r if aval_of(r).shape[-2:] == (k, k) else _block(r, k, k)
    t1 = t if k == n else _block(t, m, k)
    scaled = _solve(r1, t1, left=False, lower=False)  # dA1 R1^-1
    inner = matmul(adjoint(q1), scaled)
    low = triangle(inner, lower=True, offset=-1)
    skew, upper = sub(low, adjoint(low)), add(triangle(inner, lower=False), adjoint(low))
    if _is_complex(a):
        diagonal = _only_diagonal(_imaginary(elementwise.imag(inner)))
        skew, upper = add(skew, diagonal), sub(upper, diagonal)
    dq = matmul(q1, skew)
    if not square and m > n:
        dq = add(dq, sub(scaled, matmul(q1, inner)))
    if full_matrices and m > n:
        q2 = shaping.slice_in_dim(q, k, m, axis=len(aval_of(q).shape) - 1)
        dq2 = elementwise.neg(matmul(q1, matmul(adjoint(dq), q2)))
        dq = shaping.concatenate([dq, dq2], len(aval_of(q).shape) - 1)
        skew = matmul(adjoint(q), dq)
    # R = R1 needs no other product with Q.
    dr = matmul(upper, r) if r1 is r else triangle(sub(matmul(adjoint(q), t), matmul(skew, r)), lower=False)
    tangents_out = [dq, dr]
    if pivoting:
        tangents_out.append(Zero.of(out[2]))
    return out, tangents_out


def _take_columns(t, order):
    """``t[:, order]`` as a product with a permutation matrix."""
    shape = aval_of(order).shape
    n = shape[-1]
    rows = shaping.broadcasted_iota(np.int32, (*shape[:-1], n, n), len(shape) - 1)
    chosen = elementwise.eq(
        rows, shaping.broadcast_in_dim(order, (*shape[:-1], n, n), (*range(len(shape) - 1), len(shape)))
    )
    return matmul(t, _converted(chosen, t))


# ---- eigenvalues and singular values -----------------------------------------------------------------------


def _inverse_differences(v):
    """``1 / (v[j] - v[i])`` at [i, j], and 0 on the diagonal."""
    n = aval_of(v).shape[-1]
    shape = (*aval_of(v).shape, n)
    k = len(shape)
    difference = sub(
        shaping.broadcast_in_dim(v, shape, (*range(k - 2), k - 1)),
        shaping.broadcast_in_dim(v, shape, tuple(range(k - 1))),
    )
    eye = _eye(difference)
    ones = filling.full_like(difference, 1)
    inverse = div(ones, elementwise.select(eye, ones, difference))
    return elementwise.select(eye, filling.zeros_like(inverse), inverse)


@jvp_rules.rule(p.eigh_p)
def _eigh(primals, tangents, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    """``dw = diag(V^H dA V)``; ``V^H dV`` is the rest of it, divided by differences of eigenvalues."""
    (a,), (t,) = primals, tangents
    params = dict(lower=lower, sort_eigenvalues=sort_eigenvalues, algorithm=algorithm)
    v, w = p.eigh_p.bind(a, subset_by_index=None, **params)
    inner = matmul(adjoint(v), matmul(t, v))
    dw = _real(_diagonal(inner))
    dv = matmul(v, mul(inner, _like(_inverse_differences(w), v)))
    if subset_by_index is None:
        return [v, w], [dv, dw]
    ends = (*subset_by_index, 1, len(aval_of(w).shape) - 1)
    columns = (*subset_by_index, 1, len(aval_of(v).shape) - 1)
    cut = shaping.slice_in_dim
    return [cut(v, *columns), cut(w, *ends)], [cut(dv, *columns), cut(dw, *ends)]


@jvp_rules.rule(p.svd_p)
def _svd(primals, tangents, *, full_matrices, compute_uv, subset_by_index, algorithm):
    """The derivative by Townsend's formulas. The singular vectors of a complex matrix are unique up to a phase: U takes it."""
    (a,), (t,) = primals, tangents
    m, n, _, square = _sizes(a)
    if compute_uv and full_matrices and not square:
        raise NotImplementedError("svd: full_matrices=True has no derivative: some vectors are arbitrary; use False")
    s, u, vh = p.svd_p.bind(a, full_matrices=False, compute_uv=True, subset_by_index=None, algorithm=algorithm)
    v = adjoint(vh)
    tv = matmul(t, v)
    inner = matmul(adjoint(u), tv)  # U^H dA V
    ds = _real(_diagonal(inner))
    cut = shaping.slice_in_dim
    last = len(aval_of(s).shape) - 1
    if not compute_uv:
        if subset_by_index is not None:
            s, ds = cut(s, *subset_by_index, 1, last), cut(ds, *subset_by_index, 1, last)
        return [s], [ds]
    # The differences of squares as products, which do not cancel.
    shape = aval_of(inner).shape
    s_across, s_down = _across(s, inner), _down(s, inner)
    eye = _eye(inner)
    ones, zeros = filling.full(shape, 1, aval_of(s).dtype), filling.full(shape, 0, aval_of(s).dtype)
    difference = elementwise.select(eye, ones, mul(add(s_across, s_down), sub(s_across, s_down)))
    factor = elementwise.select(eye, zeros, div(ones, difference))
    # U^H dU = F * (P S + S P^H) and V^H dV = F * (S P + P^H S), with P = inner and F antisymmetric.
    half_u = mul(inner, _like(mul(factor, s_across), inner))
    half_v = mul(inner, _like(mul(factor, s_down), inner))
    turn_u, turn_v = sub(half_u, adjoint(half_u)), sub(half_v, adjoint(half_v))
    inverse = div(filling.full_like(s, 1), s)
    if _is_complex(a):
        phase = mul(elementwise.imag(_diagonal(inner)), inverse)
        turn_u = add(turn_u, elementwise.select(eye, _imaginary(_down(phase, inner)), filling.zeros_like(inner)))
    du, dv = matmul(u, turn_u), matmul(v, turn_v)
    if m > n or not dims.is_constant_dim(m):
        outside = sub(tv, matmul(u, inner))
        du = add(du, mul(outside, _like(_across(inverse, outside), outside)))
    if n > m:
        tu = matmul(adjoint(t), u)
        outside = sub(tu, matmul(v, adjoint(inner)))
        dv = add(dv, mul(outside, _like(_across(inverse, outside), outside)))
    out, out_tangents = [s, u, vh], [ds, du, adjoint(dv)]
    if subset_by_index is None:
        return out, out_tangents
    axes = (last, last + 1, last)
    return tuple([cut(x, *subset_by_index, 1, d) for x, d in zip(xs, axes, strict=True)] for xs in (out, out_tangents))


@jvp_rules.rule(p.eig_p)
def _eig(
    primals,
    tangents,
    *,
    compute_left_eigenvectors,
    compute_right_eigenvectors,
    enable_eigvec_derivs=False,
    implementation=None,
):
    """``dw = diag(V^-1 dA V)``. Vectors: see `_eigenvector_tangent`."""
    (a,), (t,) = primals, tangents
    wanted = compute_left_eigenvectors or compute_right_eigenvectors
    if wanted and not enable_eigvec_derivs:
        raise NotImplementedError(
            "Derivatives of the eigenvectors of general matrices exist only under assumptions that cannot be checked: "
            "distinct eigenvalues, and one component of each vector larger than the others. Pass "
            "enable_eigvec_derivs=True to lax.linalg.eig if they hold, or compute eigenvalues only."
        )
    # Derivatives of dw do not depend on the normalization of V: it may be differentiated again in any case.
    w, *left, right = p.eig_p.bind(
        a,
        compute_left_eigenvectors=compute_left_eigenvectors,
        compute_right_eigenvectors=True,
        enable_eigvec_derivs=True,
        implementation=implementation,
    )
    if not _is_complex(t):
        t = elementwise.complex(t, filling.zeros_like(t))
    inner = _general_solve(right, matmul(t, right))
    out, tangents_out = [w], [_diagonal(inner)]
    if left:
        of_adjoint = _general_solve(left[0], matmul(adjoint(t), left[0]))
        out.append(left[0])
        tangents_out.append(_eigenvector_tangent(left[0], elementwise.conj(w), of_adjoint))
    if compute_right_eigenvectors:
        out.append(right)
        tangents_out.append(_eigenvector_tangent(right, w, inner))
    return out, tangents_out


def _eigenvector_tangent(v, w, inner):
    """``V (F * inner)`` with F the inverse differences of eigenvalues, plus the multiples of the vectors that keep their
    length and the phase of their largest component."""
    dv = matmul(v, mul(inner, _inverse_differences(w)))
    rows = len(aval_of(v).shape) - 2
    length = reductions.reduce_sum(mul(elementwise.conj(v), dv), axes=(rows,))
    position = reductions.argmax(elementwise.abs(v), rows, np.int32)
    index = shaping.broadcasted_iota(np.int32, aval_of(v).shape, rows)
    largest = elementwise.eq(index, _across(position, v))
    none = filling.zeros_like(v)
    component, its_tangent = (
        reductions.reduce_sum(elementwise.select(largest, x, none), axes=(rows,)) for x in (v, dv)
    )
    phase = elementwise.imag(div(its_tangent, component))
    return sub(dv, mul(v, _across(elementwise.complex(elementwise.real(length), phase), v)))


def _general_solve(a, b):
    """``a^-1 b`` for square matrices."""
    packed, _, permutation = p.lu_p.bind(a)
    n = len(aval_of(b).shape)
    shape = aval_of(b).shape
    size = shape[-2]
    square = (*shape[:-2], size, size)
    columns = shaping.broadcasted_iota(np.int32, square, n - 1)
    exchange = elementwise.eq(shaping.broadcast_in_dim(permutation, square, tuple(range(n - 1))), columns)
    y = _solve(packed, matmul(_converted(exchange, b), b), unit=True)
    return _solve(packed, y, lower=False)


# ---- systems of equations and products --------------------------------------------------------------------


@jvp_rules.rule(p.triangular_solve_p)
def _triangular_solve(primals, tangents, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """``op(A) dX = dB - op(dA) X``."""
    (a, b), (ta, tb) = primals, tangents
    params = dict(
        left_side=left_side, lower=lower, transpose_a=transpose_a, conjugate_a=conjugate_a, unit_diagonal=unit_diagonal
    )
    x = p.triangular_solve_p.bind(a, b, **params)
    right = tb
    if type(ta) is not Zero:
        ta = triangle(ta, lower, offset=(-1 if lower else 1) if unit_diagonal else 0)
        ta = transposed(ta) if transpose_a else ta
        ta = elementwise.conj(ta) if conjugate_a else ta
        change = matmul(ta, x) if left_side else matmul(x, ta)
        right = add_tangents(right, elementwise.neg(change))
    if type(right) is Zero:
        return x, Zero.of(x)
    return x, p.triangular_solve_p.bind(a, right, **params)


@transpose_rules.rule(p.triangular_solve_p)
def _triangular_solve_transpose(ct, a, b, *, transpose_a, **params):
    if is_undefined(a):
        raise ValueError("'triangular_solve' is linear in its right side only")
    return [None, p.triangular_solve_p.bind(a, ct, transpose_a=not transpose_a, **params)]


def _shifted(v, by: int):
    """Vectors moved by one element towards the end (`by` = 1) or the beginning (-1); zero moves in."""
    rank = len(aval_of(v).shape)
    edges = (1, -1, 0) if by == 1 else (-1, 1, 0)
    return shaping.pad(v, np.zeros((), aval_of(v).dtype), [(0, 0, 0)] * (rank - 1) + [edges])


@jvp_rules.rule(p.tridiagonal_solve_p)
def _tridiagonal_solve(primals, tangents, *, perturb_singular):
    """``A dX = dB - dA X``."""
    diagonals = primals[:3]
    *changes, right = tangents
    x = p.tridiagonal_solve_p.bind(*primals, perturb_singular=perturb_singular)
    rank = len(aval_of(x).shape)
    zero_ = np.zeros((), aval_of(x).dtype)
    for change, by in zip(changes, (1, 0, -1), strict=True):
        if type(change) is Zero:
            continue
        edges = {1: (1, -1, 0), 0: (0, 0, 0), -1: (-1, 1, 0)}[by]
        neighbour = shaping.pad(x, zero_, [(0, 0, 0)] * (rank - 2) + [edges, (0, 0, 0)]) if by else x
        right = add_tangents(right, elementwise.neg(mul(_down(change, x), neighbour)))
    if type(right) is Zero:
        return x, Zero.of(x)
    return x, p.tridiagonal_solve_p.bind(*diagonals, right, perturb_singular=perturb_singular)


@transpose_rules.rule(p.tridiagonal_solve_p)
def _tridiagonal_solve_transpose(ct, dl, d, du, b, *, perturb_singular):
    if any(map(is_undefined, (dl, d, du))):
        raise ValueError("'tridiagonal_solve' is linear in its right side only")
    out = p.tridiagonal_solve_p.bind(_shifted(du, 1), d, _shifted(dl, -1), ct, perturb_singular=perturb_singular)
    return [None, None, None, out]


@jvp_rules.rule(p.symmetric_product_p)
def _symmetric_product(primals, tangents, *, alpha, beta):
    (a, c), (ta, tc) = primals, tangents
    out = p.symmetric_product_p.bind(a, c, alpha=alpha, beta=beta)
    tangent = Zero.of(out)
    if type(ta) is not Zero:
        half = matmul(ta, transposed(a))
        tangent = mul(add(half, transposed(half)), np.array(alpha, aval_of(a).dtype))
    if type(tc) is not Zero and beta:
        tangent = add_tangents(tangent, mul(tc, np.array(beta, aval_of(c).dtype)))
    return out, tangent


@jvp_rules.rule(p.ormqr_p)
def _ormqr(primals, tangents, *, left, transpose):
    """Linear in the matrix that is multiplied."""
    a, taus, c = primals
    *reflectors, tc = tangents
    if any(type(t) is not Zero for t in reflectors):
        raise NotImplementedError("ormqr has derivatives with respect to the matrix c only; differentiate qr instead")
    return tuple(p.ormqr_p.bind(a, taus, x, left=left, transpose=transpose) for x in (c, instantiate(tc)))


@transpose_rules.rule(p.ormqr_p)
def _ormqr_transpose(ct, a, taus, c, *, left, transpose):
    ct = elementwise.conj(ct) if _is_complex(ct) else ct
    out = p.ormqr_p.bind(a, taus, ct, left=left, transpose=not transpose)
    return [None, None, elementwise.conj(out) if _is_complex(out) else out]


zero(p.lu_pivots_to_permutation_p)
absent(
    p.geqrf_p,
    p.geqp3_p,
    p.householder_product_p,
    why="packed Householder reflectors have no derivative of their own here; differentiate qr",
)
absent(p.cholesky_update_p, why="differentiate cholesky of the updated matrix")
absent(p.schur_p, p.hessenberg_p, p.tridiagonal_p, why="no derivative is defined for these forms")
not_transposable(p.lu_p, p.qr_p, p.eig_p, p.eigh_p, p.svd_p, p.symmetric_product_p)
