"""Derivatives of elementwise functions at inputs that generic checks leave out: kinks, poles, integers, weak types."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad, jvp, vjp
from bedrax.core import dtypes
from bedrax.core.avals import aval_of


@pytest.mark.parametrize(
    ("fun", "args", "want"),
    [
        (lax.pow, (0.0, 2.0), (0.0, 0.0)),
        (lax.pow, (0.0, 1.0), (1.0, 0.0)),
        (lax.pow, (0.0, 0.0), (0.0, 0.0)),
        (lax.max, (1.0, 1.0), (0.5, 0.5)),
        (lax.min, (1.0, 2.0), (1.0, 0.0)),
        (lax.clamp, (0.0, 2.0, 1.0), (0.0, 0.0, 1.0)),
        (lax.clamp, (0.0, -2.0, 1.0), (1.0, 0.0, 0.0)),
        (lax.rem, (5.0, 2.0), (1.0, -2.0)),
        (lax.rem, (-5.0, 2.0), (1.0, 2.0)),
        (lax.nextafter, (5.0, 2.0), (1.0, 0.0)),
        (lax.nextafter, (2.0, 2.0), (1.0, 0.0)),
    ],
)
def test_at_special_points(fun, args, want):
    got = grad(fun, argnums=tuple(range(len(args))))(*map(np.float32, args))
    np.testing.assert_allclose([float(g) for g in got], want)


def test_abs_at_zero_is_one_sided():
    assert float(grad(lax.abs)(np.float32(0))) == 1.0


def test_integer_operands_have_float0_tangents():
    x = np.int32(3)
    _, t = jvp(lambda x: lax.mul(x, x), (x,), (np.zeros((), dtypes.float0),))
    assert t.dtype == dtypes.float0


def test_integer_exponents():
    for n in (-2, 0, 1, 3):
        assert float(grad(lax.pow)(np.float32(2), np.int32(n))) == pytest.approx(n * 2.0 ** (n - 1))


def test_conversion_to_integer_stops_derivatives():
    f = lambda x: lax.mul(x, lax.convert_element_type(lax.convert_element_type(x, np.int32), np.float32))
    assert float(grad(f)(np.float32(2.5))) == 2.0


def test_stop_gradient():
    assert float(grad(lambda x: lax.mul(lax.stop_gradient(x), x))(np.float32(3))) == 3.0


def test_weak_types_of_derivatives():
    for f in (lax.sqrt, lax.square, lax.tanh, lambda x: lax.integer_pow(x, 3)):
        out, t = jvp(f, (2.0,), (1.0,))
        assert aval_of(out).weak_type and aval_of(t).weak_type
        assert not aval_of(jvp(f, (np.float32(2),), (np.float32(1),))[1]).weak_type


def test_cotangents_of_complex_parts_are_not_conjugated():
    z = np.complex64(1 + 2j)
    assert np.asarray(vjp(lax.imag, z)[1](np.float32(3))[0]) == -3j
    assert np.asarray(vjp(lax.conj, z)[1](np.complex64(1 + 1j))[0]) == 1 - 1j
    x, y = vjp(lax.complex, np.float32(1), np.float32(2))[1](np.complex64(3 + 4j))
    assert (float(x), float(y)) == (3.0, -4.0)


def test_mul_out_dtype():
    import ml_dtypes

    x = np.array([1.5, 2], ml_dtypes.bfloat16)
    y = ml_dtypes.bfloat16(3)
    ans, pullback = vjp(lambda x, y: lax.mul(x, y, out_dtype=np.float32), x, y)
    assert ans.dtype == np.float32
    cx, cy = pullback(np.float32([1, 1]))
    assert (cx.dtype, cy.dtype, cy.shape) == (x.dtype, x.dtype, ())
    np.testing.assert_allclose(np.asarray(cx).astype("f"), [3, 3])
    assert float(cy) == 3.5


def test_unsupported_parameters_say_so():
    with pytest.raises(ValueError, match="polygamma gradient with respect to m is not supported"):
        grad(lax.polygamma)(np.float32(1), np.float32(1))
    with pytest.raises(ValueError, match="Betainc gradient with respect to a and b is not supported"):
        grad(lax.betainc)(np.float32(1), np.float32(1), np.float32(0.5))


def test_densities_at_the_ends_of_their_ranges():
    one = np.float32(1)
    assert float(grad(lax.igamma, argnums=1)(one, np.float32(0))) == 1.0
    assert float(grad(lax.igammac, argnums=1)(one, np.float32(0))) == -1.0
    assert float(grad(lax.betainc, argnums=2)(one, np.float32(3), np.float32(0))) == pytest.approx(3.0)
    assert float(grad(lax.betainc, argnums=2)(np.float32(2), one, np.float32(1))) == pytest.approx(2.0)


@pytest.mark.parametrize("x, y", [(4.0, 0.0), (4.0, 1.0), (0.5, 2.0), (3.0, -1.0), (0.0, 2.0)])
def test_second_derivatives_of_powers_are_symmetric(x, y):
    x, y = np.float32(x), np.float32(y)
    mixed = [
        grad(grad(lax.pow, 0), 1)(x, y),
        grad(grad(lax.pow, 1), 0)(x, y),
        jvp(lambda y: grad(lax.pow, 0)(x, y), (y,), (np.float32(1),))[1],
    ]
    want = x ** (y - 1) * (1 + y * np.log(x)) if x else 0.0
    np.testing.assert_allclose(mixed, want, rtol=1e-5)
