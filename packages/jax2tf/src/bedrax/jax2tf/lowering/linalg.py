"""TensorFlow for linear algebra: its own decompositions, and LAPACK's algorithms as loops over columns elsewhere.

The loops work on whole matrices with masks, so that one graph serves all sizes. References: Golub and Van Loan, "Matrix
Computations" (4th ed.): 3.4 (LU), 4.3.6 (tridiagonal), 5.1-5.4 (Householder), 6.5.4 (Cholesky update), 7.4 (Hessenberg),
8.3 (tridiagonal form).

Outside of XLA, TensorFlow's triangular solver raises InvalidArgumentError for a matrix that is singular, where we give
infinities. TensorFlow's XLA has no `eig`, and no `svd` of complex matrices: functions with those cannot be compiled by it.
"""

from __future__ import annotations

import functools

import numpy as np

from bedrax.core import dims
from bedrax.jax2tf import types
from bedrax.jax2tf.carriers import np_dtype, scalar, tensorflow
from bedrax.jax2tf.lowering.conversions import convert
from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives import linalg as p


def _rule(prim):
    """Registers a rule for the dtypes in which TensorFlow decomposes; empty operands have results of zeros."""

    def register(rule):
        @functools.wraps(rule)
        def checked(ctx, x, *args, **params):
            tf = tensorflow()
            if x.dtype not in (tf.float32, tf.float64, tf.complex64, tf.complex128):
                raise NotImplementedError(
                    f"{prim} is implemented for float32, float64, complex64 and complex128, got {x.dtype.name}; convert the"
                    " operands"
                )
            if any(dims.is_constant_dim(d) and d == 0 for d in ctx.avals_in[0].shape):
                out = _of_nothing(ctx)
                return out if prim.multiple_results else out[0]
            return rule(ctx, x, *args, **params)

        tf_rules.add(prim, checked)
        return rule

    return register


def _of_nothing(ctx) -> list:
    """Decompositions of empty matrices: permutations and square factors are identities."""
    tf = tensorflow()
    out = []
    for i, aval in enumerate(ctx.avals_out):
        dtype = types.tf_dtype(aval.dtype)
        sizes = ctx.shape(aval.shape)
        unitary = (
            ctx.primitive in (p.qr_p, p.svd_p) and aval.ndim > 1 and (i == 0 or ctx.primitive is p.svd_p)
        )
        if unitary:
            eye = tf.eye(ctx.dim(aval.shape[-2]), ctx.dim(aval.shape[-1]), dtype=dtype)
            out.append(tf.broadcast_to(eye, sizes))
        elif dtype.is_integer:
            out.append(tf.broadcast_to(tf.range(ctx.dim(aval.shape[-1]), dtype=dtype), sizes))
        else:
            out.append(tf.zeros(sizes, dtype))
    return out


def _adjoint(x):
    return tensorflow().linalg.adjoint(x)


def _size(ctx, i: int, axis: int):
    return ctx.dim(ctx.avals_in[i].shape[axis])


def _loop(count, body, state, reverse: bool = False):
    """``state = body(i, *state)`` for all i."""
    tf = tensorflow()
    out = tf.while_loop(
        lambda i, *_: i < count,
        lambda i, *xs: [i + 1, *body(count - 1 - i if reverse else i, *xs)],
        [tf.constant(0), *state],
        maximum_iterations=count,
    )
    return list(out[1:])


def _minimum(a, b):
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else tensorflow().minimum(a, b)


def _mask(condition, x):
    tf = tensorflow()
    return tf.where(condition, x, tf.zeros([], x.dtype))


def _put(x, at, value, axis: int):
    """`x` with `value` at index `at` of an axis counted from the end (-1 or -2)."""
    tf = tensorflow()
    n = tf.shape(x)[axis]
    here = tf.equal(tf.range(n), at)
    return tf.where(here if axis == -1 else here[:, None], tf.expand_dims(value, axis), x)


def _column(x, i):
    return x[..., i]


def _nan_like(x):
    return scalar(complex("nan+nanj") if x.dtype.is_complex else np.nan, x)


def _finite_matrices(x):
    """`x` with zeros for matrices that have something infinite or nan, and which those are (``[...]``)."""
    tf = tensorflow()
    parts = (tf.math.real(x), tf.math.imag(x)) if x.dtype.is_complex else (x,)
    bad = functools.reduce(
        tf.logical_or, [tf.reduce_any(tf.logical_not(tf.math.is_finite(v)), [-2, -1]) for v in parts]
    )
    return _mask(tf.logical_not(bad)[..., None, None], x), bad


def _with_nan(out, bad):
    """Results with nan where `bad`."""
    tf = tensorflow()
    extra = out.shape.rank - bad.shape.rank
    return tf.where(bad[(...,) + (None,) * extra], _nan_like(out), out)


# ---- Cholesky ------------------------------------------------------------------------------------


@_rule(p.cholesky_p)
def _cholesky(ctx, x):
    tf = tensorflow()
    return tf.linalg.band_part(
        tf.linalg.cholesky(x), -1, 0
    )  # where it fails it leaves the upper triangle as it was


@_rule(p.cholesky_update_p)
def _cholesky_update(ctx, r, w):
    tf = tensorflow()
    r = tf.linalg.band_part(r, 0, -1)

    def rotate(k, r, w):  # row k and w so that w[k] vanishes
        row = r[..., k, :]
        a, b = row[..., k], w[..., k]
        length = tf.sqrt(a * a + b * b)
        some = length > 0
        safe = tf.where(some, length, 1)
        c, s = tf.where(some, a / safe, 1)[..., None], tf.where(some, b / safe, 0)[..., None]
        return [_put(r, k, c * row + s * w, -2), c * w - s * row]

    out, _ = _loop(_size(ctx, 0, -1), rotate, [r, w])
    return tf.linalg.band_part(out, 0, -1)


# ---- LU ------------------------------------------------------------------------------------------


def _magnitude(x):
    """What LAPACK compares for pivots: |Re| + |Im|."""
    tf = tensorflow()
    return tf.abs(tf.math.real(x)) + tf.abs(tf.math.imag(x)) if x.dtype.is_complex else tf.abs(x)


def _exchanged(n, i, j):
    """The indices 0..n-1 with i and j exchanged, where j differs over a batch."""
    tf = tensorflow()
    r = tf.range(n)
    j = j[..., None]
    return tf.where(tf.equal(r, i), j, tf.where(tf.equal(r, j), i, r))


def _take_rows(x, order):
    return tensorflow().gather(x, order, axis=order.shape.rank - 1, batch_dims=order.shape.rank - 1)


@_rule(p.lu_p)
def _lu(ctx, x):
    """By columns: TensorFlow's own has no pivots, and refuses singular matrices."""
    tf = tensorflow()
    m, n = _size(ctx, 0, -2), _size(ctx, 0, -1)
    k = _minimum(m, n)
    rows, columns = tf.range(m), tf.range(n)
    lead = tf.shape(x)[:-2]
    pivots = tf.zeros(tf.concat([lead, [k]], 0), tf.int32)
    order = tf.broadcast_to(rows, tf.concat([lead, [m]], 0))

    def step(i, lu, pivots, order):
        size = _magnitude(_column(lu, i))
        size = tf.where(tf.logical_or(rows < i, tf.not_equal(size, size)), scalar(-1, size), size)
        j = tf.maximum(tf.argmax(size, -1, output_type=tf.int32), i)  # all nan: no exchange
        moved = _exchanged(m, i, j)
        lu = _take_rows(lu, moved)
        column, pivot = _column(lu, i), lu[..., i, i][..., None]
        divisor = tf.where(tf.equal(pivot, 0), scalar(1, pivot), pivot)
        column = tf.where(rows > i, column / divisor, column)
        lu = _put(lu, i, column, -1)
        below, right = _mask(rows > i, column), _mask(columns > i, lu[..., i, :])
        return [
            lu - below[..., :, None] * right[..., None, :],
            _put(pivots, i, j, -1),
            _take_rows(order, moved),
        ]

    return _loop(k, step, [x, pivots, order])


@tf_rules.rule(p.lu_pivots_to_permutation_p)
def _permutation(ctx, pivots, *, permutation_size):
    tf = tensorflow()
    n, k = ctx.dim(permutation_size), _size(ctx, 0, -1)
    start = tf.broadcast_to(tf.range(n), ctx.shape(ctx.aval_out.shape))
    return _loop(k, lambda i, order: [_take_rows(order, _exchanged(n, i, pivots[..., i]))], [start])[0]


# ---- Householder reflectors ----------------------------------------------------------------------


def _complexed(x, like):
    """A real tensor in the dtype of `like`."""
    return convert(x, np_dtype(like))


def _reflector(alpha, x):
    """The (beta, tau, v) with ``(1 - tau [1, v] [1, v]^H)^H [alpha, x] = [beta, 0]``, beta real (LAPACK's larfg)."""
    tf = tensorflow()
    real = tf.math.real
    size2 = lambda v: real(v * tf.math.conj(v)) if v.dtype.is_complex else v * v
    norm2 = tf.reduce_sum(size2(x), -1)
    nothing = tf.equal(norm2, 0)
    if x.dtype.is_complex:
        nothing = tf.logical_and(nothing, tf.equal(tf.math.imag(alpha), 0))
    length = tf.sqrt(size2(alpha) + norm2)
    beta = tf.where(real(alpha) < 0, length, -length)
    tau = (_complexed(beta, x) - alpha) / _complexed(tf.where(nothing, scalar(1, beta), beta), x)
    divisor = tf.where(nothing, scalar(1, alpha), alpha - _complexed(beta, x))
    v = x / divisor[..., None]
    beta = tf.where(nothing, real(alpha), beta)
    return beta, _mask(tf.logical_not(nothing), tau), v


def _left(x, v, tau):
    """``x - tau v (v^H x)``."""
    tf = tensorflow()
    inner = tf.linalg.matmul(tf.math.conj(v)[..., None, :], x)
    return x - (tau[..., None] * v)[..., :, None] * inner


def _right(x, v, tau):
    """``x - tau (x v) v^H``."""
    tf = tensorflow()
    return x - tf.linalg.matmul(x, v[..., :, None]) * (tau[..., None] * tf.math.conj(v))[..., None, :]


def _conj(x):
    return tensorflow().math.conj(x)


def _unit(v, at):
    """A vector that is zero up to index `at` with a one there."""
    tf = tensorflow()
    return tf.where(tf.equal(tf.range(tf.shape(v)[-1]), at), scalar(1, v), v)


def _eliminate(a, i, rows, columns):
    """One step of QR: the matrix with column i packed, and tau."""
    tf = tensorflow()
    column = _column(a, i)
    beta, tau, v = _reflector(column[..., i], _mask(rows > i, column))
    changed = _left(a, _unit(v, i), _conj(tau))
    packed = tf.where(rows > i, v, column)
    packed = _put(packed, i, _complexed(beta, a), -1)
    return _put(tf.where(columns > i, changed, a), i, packed, -1), tau


def _geqrf_of(a, m, n):
    tf = tensorflow()
    rows, columns, k = tf.range(m), tf.range(n), _minimum(m, n)
    taus = tf.zeros(tf.concat([tf.shape(a)[:-2], [k]], 0), a.dtype)

    def step(i, a, taus):
        a, tau = _eliminate(a, i, rows, columns)
        return [a, _put(taus, i, tau, -1)]

    return _loop(k, step, [a, taus])


@_rule(p.geqrf_p)
def _geqrf(ctx, a):
    return _geqrf_of(a, _size(ctx, 0, -2), _size(ctx, 0, -1))


def _geqp3_of(a, jpvt, m, n):
    tf = tensorflow()
    rows, columns, k = tf.range(m), tf.range(n), _minimum(m, n)
    # Columns marked in jpvt come first and keep their order.
    order = tf.argsort(tf.cast(tf.equal(jpvt, 0), tf.int32), axis=-1, stable=True)
    marked = tf.reduce_sum(tf.cast(tf.not_equal(jpvt, 0), tf.int32), -1)
    take = lambda a, order: tf.gather(a, order, axis=-1, batch_dims=order.shape.rank - 1)
    swap_columns = lambda a, order: tf.linalg.matrix_transpose(
        _take_rows(tf.linalg.matrix_transpose(a), order)
    )
    a = swap_columns(a, order)
    taus = tf.zeros(tf.concat([tf.shape(a)[:-2], [k]], 0), a.dtype)

    def step(i, a, order, taus):
        rest = _mask(rows[:, None] >= i, a)
        norms = tf.math.real(tf.reduce_sum(rest * _conj(rest), -2))
        norms = tf.where(tf.logical_or(columns < i, tf.not_equal(norms, norms)), scalar(-1, norms), norms)
        j = tf.where(i < marked, i, tf.maximum(tf.argmax(norms, -1, output_type=tf.int32), i))
        moved = _exchanged(n, i, j)
        a, tau = _eliminate(swap_columns(a, moved), i, rows, columns)
        return [a, take(order, moved), _put(taus, i, tau, -1)]

    a, order, taus = _loop(k, step, [a, order, taus])
    return [a, order + 1, taus]


@_rule(p.geqp3_p)
def _geqp3(ctx, a, jpvt):
    return _geqp3_of(a, jpvt, _size(ctx, 0, -2), _size(ctx, 0, -1))


def _vector(a, i):
    tf = tensorflow()
    return _unit(_mask(tf.range(tf.shape(a)[-2]) > i, _column(a, i)), i)


def _product_of_reflectors(a, taus, start, count):
    return _loop(count, lambda i, q: [_left(q, _vector(a, i), taus[..., i])], [start], reverse=True)[0]


def _eye(like, rows, columns):
    tf = tensorflow()
    eye = tf.eye(rows, columns, dtype=like.dtype)
    return tf.broadcast_to(eye, tf.concat([tf.shape(like)[:-2], tf.shape(eye)], 0))


@_rule(p.householder_product_p)
def _householder_product(ctx, a, taus):
    start = _eye(a, _size(ctx, 0, -2), _size(ctx, 0, -1))
    return _product_of_reflectors(a, taus, start, _size(ctx, 1, -1))


@_rule(p.ormqr_p)
def _ormqr(ctx, a, taus, c, *, left, transpose):
    if transpose:
        taus = _conj(taus)
    apply = _left if left else _right
    step = lambda i, c: [apply(c, _vector(a, i), taus[..., i])]
    return _loop(_size(ctx, 1, -1), step, [c], reverse=left != transpose)[0]


@_rule(p.qr_p)
def _qr(ctx, x, *, pivoting, full_matrices, use_magma):
    tf = tensorflow()
    if not pivoting:
        return list(tf.linalg.qr(x, full_matrices=full_matrices))
    m, n = _size(ctx, 0, -2), _size(ctx, 0, -1)
    least = _minimum(m, n)
    packed, order, taus = _geqp3_of(x, tf.zeros_like(x[..., 0, :], tf.int32), m, n)
    k = m if full_matrices else least
    q = _product_of_reflectors(packed, taus, _eye(x, m, k), least)
    return [q, tf.linalg.band_part(packed, 0, -1)[..., :k, :], order - 1]


@_rule(p.hessenberg_p)
def _hessenberg(ctx, a):
    tf = tensorflow()
    n = _size(ctx, 0, -1)
    rows = columns = tf.range(n)
    count = max(n - 1, 0) if isinstance(n, int) else tf.maximum(n - 1, 0)
    taus = tf.zeros(tf.concat([tf.shape(a)[:-2], [count]], 0), a.dtype)

    def step(i, a, taus):
        column = _column(a, i)
        beta, tau, v = _reflector(column[..., i + 1], _mask(rows > i + 1, column))
        u = _unit(v, i + 1)
        changed = _right(a, u, tau)
        changed = tf.where(columns > i, _left(changed, u, _conj(tau)), changed)
        packed = _put(tf.where(rows > i + 1, v, column), i + 1, _complexed(beta, a), -1)
        return [_put(changed, i, packed, -1), _put(taus, i, tau, -1)]

    return _loop(count, step, [a, taus])


@_rule(p.tridiagonal_p)
def _tridiagonal(ctx, a, *, lower):
    tf = tensorflow()
    n = _size(ctx, 0, -1)
    rows = tf.range(n)
    count = max(n - 1, 0) if isinstance(n, int) else tf.maximum(n - 1, 0)
    triangle = tf.linalg.band_part(a, -1, 0) if lower else tf.linalg.band_part(a, 0, -1)
    diagonal = _complexed(tf.math.real(tf.linalg.diag_part(a)), a)
    part = tf.linalg.set_diag(triangle, tf.zeros_like(diagonal))
    other = a - triangle  # handed back as it came
    full = tf.linalg.set_diag(part + _adjoint(part), diagonal)
    lead = tf.shape(a)[:-2]
    taus = tf.zeros(tf.concat([lead, [count]], 0), a.dtype)
    e = tf.math.real(taus)

    def step(i, full, vectors, e, taus):
        at, source = (i + 1, i) if lower else (i, i + 1)
        column = _column(full, source)
        beta, tau, v = _reflector(column[..., at], _mask(rows > at if lower else rows < at, column))
        u = _unit(v, at)
        full = _right(_left(full, u, _conj(tau)), u, tau)
        return [full, _put(vectors, source, v, -1), _put(e, i, beta, -1), _put(taus, i, tau, -1)]

    full, vectors, e, taus = _loop(count, step, [full, tf.zeros_like(a), e, taus], reverse=not lower)
    d = tf.math.real(tf.linalg.diag_part(full))
    packed = tf.linalg.set_diag(vectors + other, _complexed(d, a))
    # The off-diagonal goes beside the diagonal.
    wide = tf.pad(_complexed(e, a), [[0, 0]] * (a.shape.rank - 2) + [[0, 1]])
    beside = tf.equal(rows[:, None], rows + 1) if lower else tf.equal(rows[:, None] + 1, rows)
    packed = tf.where(beside, wide[..., None, :] if lower else wide[..., :, None], packed)
    return [packed, d, e, taus]


# ---- eigenvalues and singular values -------------------------------------------------------------


@_rule(p.eigh_p)
def _eigh(ctx, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    tf = tensorflow()
    x, bad = _finite_matrices(x)
    w, v = tf.linalg.eigh(x if lower else _adjoint(x))  # which reads the lower triangle
    w, v = _with_nan(tf.math.real(w), bad), _with_nan(v, bad)
    if subset_by_index is not None:
        start, end = subset_by_index
        w, v = w[..., start:end], v[..., start:end]
    return [v, w]


@_rule(p.svd_p)
def _svd(ctx, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    tf = tensorflow()
    x, bad = _finite_matrices(x)
    span = slice(None) if subset_by_index is None else slice(*subset_by_index)
    if not compute_uv:
        return [_with_nan(tf.linalg.svd(x, compute_uv=False), bad)[..., span]]
    s, u, v = tf.linalg.svd(x, full_matrices=full_matrices)
    u, v = (_with_nan(y, bad) for y in (u, v))
    if subset_by_index is not None:
        u, v = u[..., span], v[..., span]
    return [_with_nan(s, bad)[..., span], u, _adjoint(v)]


@_rule(p.eig_p)
def _eig(
    ctx,
    x,
    *,
    compute_left_eigenvectors,
    compute_right_eigenvectors,
    enable_eigvec_derivs=False,
    implementation=None,
):
    tf = tensorflow()
    x, bad = _finite_matrices(x)
    if not (compute_left_eigenvectors or compute_right_eigenvectors):
        return [_with_nan(tf.linalg.eigvals(x), bad)]
    w, right = tf.linalg.eig(x)
    norm = lambda v: v / _complexed(tf.linalg.norm(v, axis=-2, keepdims=True), v)
    out = [_with_nan(w, bad)]
    if compute_left_eigenvectors:
        # Left eigenvectors are dual to right ones.
        dual = tf.where(bad[..., None, None], tf.linalg.eye(tf.shape(x)[-1], dtype=right.dtype), right)
        out.append(_with_nan(norm(_adjoint(tf.linalg.inv(dual))), bad))
    if compute_right_eigenvectors:
        out.append(_with_nan(norm(right), bad))
    return out


tf_rules.absent(
    p.schur_p, why="TensorFlow has no Schur decomposition; use eig or eigh, or native_serialization=True"
)


# ---- systems of equations and products -----------------------------------------------------------


@_rule(p.triangular_solve_p)
def _triangular_solve(ctx, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    tf = tensorflow()
    if unit_diagonal:
        a = tf.linalg.set_diag(a, tf.ones_like(tf.linalg.diag_part(a)))
    if conjugate_a:
        a = _conj(a)
    if transpose_a == left_side:  # x a = b is a^T x^T = b^T
        a, lower = tf.linalg.matrix_transpose(a), not lower
    rhs = b if left_side else tf.linalg.matrix_transpose(b)
    x = tf.linalg.triangular_solve(a, rhs, lower=lower)
    return x if left_side else tf.linalg.matrix_transpose(x)


@_rule(p.tridiagonal_solve_p)
def _tridiagonal_solve(ctx, dl, d, du, b, *, perturb_singular):
    """LAPACK's gttrf and gtts2: each step exchanges row i with the next one where that has the larger pivot."""
    tf = tensorflow()
    m = _size(ctx, 1, -1)
    rows = tf.range(m)
    above = _mask(rows < m - 1, du)
    above2 = tf.zeros_like(d)

    def eliminate(i, d, above, above2, b):
        low = dl[..., i + 1]
        swap = _magnitude(low) > _magnitude(d[..., i])
        choose = lambda x, y: tf.where(swap, x, y)
        pivot, other = choose(low, d[..., i]), choose(d[..., i], low)
        top, bottom = choose(d[..., i + 1], above[..., i]), choose(above[..., i], d[..., i + 1])
        top2, bottom2 = choose(above[..., i + 1], above2[..., i]), choose(above2[..., i], above[..., i + 1])
        factor = other / pivot
        if perturb_singular:
            factor = tf.where(tf.equal(pivot, 0), scalar(0, factor), factor)
        first = tf.where(swap[..., None], b[..., i + 1, :], b[..., i, :])
        second = tf.where(swap[..., None], b[..., i, :], b[..., i + 1, :])
        d = _put(_put(d, i, pivot, -1), i + 1, bottom - factor * top, -1)
        above = _put(_put(above, i, top, -1), i + 1, bottom2 - factor * top2, -1)
        b = _put(_put(b, i, first, -2), i + 1, second - factor[..., None] * first, -2)
        return [d, above, _put(above2, i, top2, -1), b]

    d, above, above2, b = _loop(m - 1, eliminate, [d, above, above2, b])
    if perturb_singular:
        largest = tf.reduce_max(tf.abs(tf.stack([d, above, above2])), [0, -1])
        limits = np.finfo(np_dtype(d))
        bound = tf.maximum(scalar(limits.eps, largest) * largest, scalar(limits.tiny, largest))[..., None]
        signed = _complexed(tf.where(tf.math.real(d) < 0, -bound, bound), d)
        d = tf.where(tf.abs(d) < bound, signed, d)

    def substitute(i, b, next1, next2):
        row = b[..., i, :] - above[..., i, None] * next1 - above2[..., i, None] * next2
        row = row / d[..., i, None]
        return [_put(b, i, row, -2), row, next1]

    zero = tf.zeros_like(b[..., 0, :])
    out = _loop(m, substitute, [b, zero, zero], reverse=True)[0]
    return _with_nan(out, tf.reduce_any(tf.equal(d, 0), -1))


@_rule(p.symmetric_product_p)
def _symmetric_product(ctx, a, c, *, alpha, beta):
    tf = tensorflow()
    out = tf.linalg.matmul(a, a, transpose_b=True) * scalar(alpha, a)
    return out + c * scalar(beta, c) if beta else out
