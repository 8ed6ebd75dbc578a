"""Rules of libraries for series, and the zeros that they may return."""

import math

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import taylor
from bedrax.core.tracing import Primitive
from bedrax.lax.tables import decompositions


def own(name, fun):
    """A primitive without a jvp rule."""
    prim = Primitive(name)
    prim.abstract(lambda x: x)
    prim.def_impl(fun)
    decompositions.add(prim, fun)
    return prim


X, TERMS = np.float32(0.5), [np.float32(t) for t in (1.0, 0.5, -2.0)]


@pytest.mark.parametrize("how", ["deriv", "comp", "linear", "zero"])
def test_rules(how):
    fun, expected = {
        "deriv": (lax.sin, lax.sin),
        "comp": (lax.sin, lax.sin),
        "linear": (lax.neg, lax.neg),
        "zero": (lax.floor, lax.floor),
    }[how]
    prim = own(f"own_{how}", fun)
    with pytest.raises(NotImplementedError):
        taylor.jet(prim.bind, (X,), (TERMS,))
    {
        "deriv": lambda: taylor.def_deriv(prim, lax.cos),
        "comp": lambda: taylor.def_comp(prim, lax.sin),
        "linear": lambda: taylor.deflinear(prim),
        "zero": lambda: taylor.defzero(prim),
    }[how]()
    wanted = taylor.jet(lambda x: lax.mul(expected(lax.mul(x, x)), x), (X,), (TERMS,))
    out = taylor.jet(lambda x: lax.mul(prim.bind(lax.mul(x, x)), x), (X,), (TERMS,))
    np.testing.assert_allclose(out[0], wanted[0], rtol=1e-6)
    np.testing.assert_allclose(out[1], wanted[1], rtol=1e-5, atol=1e-6)


def test_coefficients_and_derivatives():
    _, derivatives = taylor.jet(lax.exp, (X,), ([1.0, 0.0, 0.0],))
    _, coefficients = taylor.jet2(lax.exp, (X,), ([1.0, 0.0, 0.0],))
    for k, (d, c) in enumerate(zip(derivatives, coefficients, strict=True), 1):
        np.testing.assert_allclose(d, c * math.factorial(k), rtol=1e-6)


def test_zeros():
    two = np.float32(2)
    out = taylor.jet(lax.mul, (X, two), (TERMS, taylor.zero_series))
    np.testing.assert_allclose(out[1], [2 * t for t in TERMS])
    out = taylor.jet(lax.mul, (X, two), (TERMS, [np.float32(1), taylor.zero_term, taylor.zero_term]))
    wanted = taylor.jet(lax.mul, (X, two), (TERMS, [np.float32(1), np.float32(0), np.float32(0)]))
    np.testing.assert_allclose(out[1], wanted[1])


@pytest.mark.parametrize("transformation", [taylor.jet, taylor.jet2])
def test_misspelt_keywords_are_refused(transformation):
    with pytest.raises(TypeError, match="factorial_scale"):
        transformation(lambda x: x, (X,), (TERMS,), factorial_scale=False)
