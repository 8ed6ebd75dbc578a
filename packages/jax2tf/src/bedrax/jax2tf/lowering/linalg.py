"""TensorFlow for linear algebra: its own decompositions; missing ones are composed.

Outside of XLA, TensorFlow's triangular solver raises InvalidArgumentError for a singular matrix; other backends give
infinities. TensorFlow's XLA has no `eig`, and no `svd` of complex matrices: these are composed in a function that is
traced for a compilation by it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from bedrax.core import dims
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import scalar
from bedrax.lax.primitives import linalg as p
from bedrax.lax.tables import decompositions
from bedrax.tf import tensorflow as tf
from bedrax.tf import types


def _rule(prim):
    """Registers a rule for the dtypes of TensorFlow's decompositions, and for matrices that are not empty."""

    def register(rule):
        composed = decompositions.find(prim)

        @functools.wraps(rule)
        def checked(ctx, *operands, **params):
            native = operands[0].dtype in (tf.float32, tf.float64, tf.complex64, tf.complex128)
            if not native and composed is None:
                raise NotImplementedError(
                    f"{prim} is implemented for float32, float64, complex64 and complex128, got"
                    f" {operands[0].dtype.name}; convert the operands"
                )
            if native and not any(dims.is_constant_dim(d) and d == 0 for d in ctx.avals_in[0].shape):
                return rule(ctx, *operands, **params)
            if composed is not None:
                return ctx.composed(composed, operands, params)
            out = [tf.zeros(ctx.shape(a.shape), types.tf_dtype(a.dtype)) for a in ctx.avals_out]
            return out if prim.multiple_results else out[0]

        tf_rules.add(prim, checked)
        return rule

    return register


def _nan_like(x):
    return scalar(complex("nan+nanj") if x.dtype.is_complex else np.nan, x)


def _finite_matrices(x):
    """`x` with zeros for matrices with infinite or nan elements, and a mask of these matrices (``[...]``)."""
    parts = (tf.math.real(x), tf.math.imag(x)) if x.dtype.is_complex else (x,)
    bad = functools.reduce(
        tf.logical_or, [tf.reduce_any(tf.logical_not(tf.math.is_finite(v)), [-2, -1]) for v in parts]
    )
    return tf.where(bad[..., None, None], tf.zeros([], x.dtype), x), bad


def _with_nan(out, bad):
    """Results with nan according to the mask `bad`."""
    extra = out.shape.rank - bad.shape.rank
    return tf.where(bad[(...,) + (None,) * extra], _nan_like(out), out)


# ---- Cholesky ------------------------------------------------------------------------------------


@_rule(p.cholesky_p)
def _cholesky(ctx, x):
    return tf.linalg.band_part(tf.linalg.cholesky(x), -1, 0)  # for a failure it leaves the upper triangle unchanged


# ---- QR ------------------------------------------------------------------------------------------


@_rule(p.qr_p)
def _qr(ctx, x, **params):
    if params["pivoting"]:
        return ctx.composed(decompositions[p.qr_p], [x], params)
    return list(tf.linalg.qr(x, full_matrices=params["full_matrices"]))


# ---- eigenvalues and singular values -------------------------------------------------------------


@_rule(p.eigh_p)
def _eigh(ctx, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    x, bad = _finite_matrices(x)
    w, v = tf.linalg.eigh(x if lower else tf.linalg.adjoint(x))  # the operation reads the lower triangle
    w, v = _with_nan(tf.math.real(w), bad), _with_nan(v, bad)
    if subset_by_index is not None:
        start, end = subset_by_index
        w, v = w[..., start:end], v[..., start:end]
    return [v, w]


@_rule(p.svd_p)
def _svd(ctx, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    if x.dtype.is_complex and ctx.for_xla:
        params = dict(
            full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index, algorithm=algorithm
        )
        return ctx.composed(decompositions[p.svd_p], [x], params)
    x, bad = _finite_matrices(x)
    span = slice(None) if subset_by_index is None else slice(*subset_by_index)
    if not compute_uv:
        return [_with_nan(tf.linalg.svd(x, compute_uv=False), bad)[..., span]]
    s, u, v = tf.linalg.svd(x, full_matrices=full_matrices)
    u, v = (_with_nan(y, bad) for y in (u, v))
    if subset_by_index is not None:
        u, v = u[..., span], v[..., span]
    return [_with_nan(s, bad)[..., span], u, tf.linalg.adjoint(v)]


@_rule(p.eig_p)
def _eig(ctx, x, *, compute_left_eigenvectors, compute_right_eigenvectors, **others):
    if ctx.for_xla:
        params = dict(
            compute_left_eigenvectors=compute_left_eigenvectors, compute_right_eigenvectors=compute_right_eigenvectors
        )
        return ctx.composed(decompositions[p.eig_p], [x], params | others)
    x, bad = _finite_matrices(x)
    if not (compute_left_eigenvectors or compute_right_eigenvectors):
        return [_with_nan(tf.linalg.eigvals(x), bad)]
    w, right = tf.linalg.eig(x)
    norm = lambda v: v / tf.cast(tf.linalg.norm(v, axis=-2, keepdims=True), v.dtype)
    out = [_with_nan(w, bad)]
    if compute_left_eigenvectors:
        # Left eigenvectors are dual to right ones.
        dual = tf.where(bad[..., None, None], tf.linalg.eye(tf.shape(x)[-1], dtype=right.dtype), right)
        out.append(_with_nan(norm(tf.linalg.adjoint(tf.linalg.inv(dual))), bad))
    if compute_right_eigenvectors:
        out.append(_with_nan(norm(right), bad))
    return out


# ---- systems of equations and products -----------------------------------------------------------


# Triangular systems up to this size are written out for TFLite and TF.js, which have no solver.
_SMALL = 16


def _substituted(a, b, lower: bool, n: int):
    """The solution of ``a @ x = b`` by substitution, row by row."""
    rows: list[Any] = []
    for i in range(n) if lower else reversed(range(n)):
        row = b[..., i : i + 1, :]
        if rows:
            others = a[..., i : i + 1, :i] if lower else a[..., i : i + 1, i + 1 :]
            row -= tf.matmul(others, tf.concat(rows, -2))
        row /= a[..., i : i + 1, i : i + 1]
        rows = [*rows, row] if lower else [row, *rows]
    return tf.concat(rows, -2)


@_rule(p.triangular_solve_p)
def _triangular_solve(ctx, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    if unit_diagonal:
        a = tf.linalg.set_diag(a, tf.ones_like(tf.linalg.diag_part(a)))
    if conjugate_a:
        a = tf.math.conj(a)
    if transpose_a == left_side:  # x a = b is a^T x^T = b^T
        a, lower = tf.linalg.matrix_transpose(a), not lower
    rhs = b if left_side else tf.linalg.matrix_transpose(b)
    n = ctx.avals_in[0].shape[-1]
    small = not ctx.enable_xla and dims.is_constant_dim(n) and n <= _SMALL
    x = _substituted(a, rhs, lower, n) if small else tf.linalg.triangular_solve(a, rhs, lower=lower)
    return x if left_side else tf.linalg.matrix_transpose(x)
