"""Records of linear solves."""

import functools

import numpy as np

from bedrax import lax
from bedrax.lax import matrices
from bedrax.lax.primitives import solvers
from bedrax.testing.records import OpCase, arg


def _by_lu(a, b):
    lu, _, order = lax.lu(a)
    rows = lax.eq(lax.broadcast_in_dim(order, a.shape, (0,)), lax.broadcasted_iota(np.int32, a.shape, 1))
    y = matrices.matmul(lax.convert_element_type(rows, a.dtype), lax.expand_dims(b, (1,)))
    y = lax.triangular_solve(lu, y, left_side=True, lower=True, unit_diagonal=True)
    return lax.squeeze(lax.triangular_solve(lu, y, left_side=True), (1,))


def _general(a, b):
    from bedrax.autodiff import custom_linear_solve

    return custom_linear_solve(
        lambda x: lax.dot(a, x), b, lambda _, y: _by_lu(a, y), lambda _, y: _by_lu(matrices.transposed(a), y)
    )


def _symmetric(d, b):
    """A diagonal system with a diagnostic result, and a right side of two arrays."""
    from bedrax.autodiff import custom_linear_solve

    return custom_linear_solve(
        lambda x: (lax.mul(d, x[0]), lax.neg(x[1])),
        b,
        lambda _, y: ((lax.div(y[0], d), lax.neg(y[1])), np.int32(7)),
        symmetric=True,
        has_aux=True,
    )


_MATRIX = (4 * np.eye(3) + np.array([[0, 1, 2], [-1, 0.5, 0], [0.3, 1, -1]])).astype(np.float32)

_solve = functools.partial(OpCase, solvers.linear_solve_p, needs="bedrax.autodiff")

CASES = [
    _solve("general", _general, (_MATRIX, arg((3,))), oracle=np.linalg.solve),
    _solve(
        "right_side",
        lambda b: _general(_MATRIX.astype(b.dtype), b),
        (arg((3,)),),
        oracle=lambda b: np.linalg.solve(_MATRIX, b),
    ),
    _solve(
        "symmetric_aux",
        lambda d, b, c: (lambda out: [*out[0], out[1]])(_symmetric(d, (b, c))),
        (arg((3,), low=1, high=2), arg((3,)), arg(())),
        oracle=lambda d, b, c: (b / d, -c, np.int32(7)),
    ),
]
