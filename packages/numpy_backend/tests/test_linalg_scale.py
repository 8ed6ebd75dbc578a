"""Matrices of very large and very small elements: squares of them are outside the dtype's range."""

import numpy as np
import pytest

from bedrax.numpy_backend.rules import linalg, schur_form

_MATRIX = np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 10]])


@pytest.mark.parametrize("scale", [2.0**100, 2.0**-100])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_reflectors_and_pivots_scale_with_the_matrix(scale, dtype):
    x = _MATRIX.astype(dtype)
    large = x * dtype(scale)
    for got, want in zip(linalg._hessenberg(large)[1:], linalg._hessenberg(x)[1:], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    symmetric = x + x.T
    np.testing.assert_allclose(
        linalg._tridiagonal(symmetric * dtype(scale), lower=True)[-1],
        linalg._tridiagonal(symmetric, lower=True)[-1],
        rtol=1e-5,
    )
    marks = np.zeros(3, np.int32)
    got, want = linalg._geqp3(large, marks), linalg._geqp3(x, marks)
    np.testing.assert_allclose(np.triu(got[0]) / dtype(scale), np.triu(want[0]), rtol=1e-4)
    np.testing.assert_array_equal(got[1], want[1])


@pytest.mark.parametrize("scale", [2.0**700, 2.0**-700])
def test_schur_form_scales_with_the_matrix(scale):
    got, want = schur_form.schur(_MATRIX * scale)[0], schur_form.schur(_MATRIX)[0]
    np.testing.assert_allclose(got / scale, want, rtol=1e-9)
