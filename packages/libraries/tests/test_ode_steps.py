"""The parts of a solver against an equation whose solution is known."""

import math

import numpy as np

from bedrax.libraries import ode_steps as parts
from bedrax.numpy.flatten_util import ravel_pytree

Y0 = np.array([1.0, 2.0], np.float32)


def slope(y, t):
    return -y * y  # y = 1 / (t + 1 / y0)


def test_a_step_and_its_interpolant_follow_the_solution():
    h = np.float32(0.1)
    y1, f1, error, k = parts.runge_kutta_step(slope, Y0, slope(Y0, 0), np.float32(0), h)
    solution = lambda t: 1 / (t + 1 / Y0)
    np.testing.assert_allclose(y1, solution(0.1), rtol=1e-5)
    np.testing.assert_allclose(f1, slope(y1, 0.1), rtol=1e-6)
    assert k.shape == (7, 2) and np.all(np.abs(error) < 1e-4)
    coefficients = parts.interp_fit_dopri(Y0, y1, k, h)
    for share in (0.0, 0.3, 0.5, 1.0):
        np.testing.assert_allclose(np.polyval(np.asarray(coefficients), share), solution(share * 0.1), rtol=1e-4)


def test_fitted_polynomials_have_the_given_values_and_slopes():
    p = np.array(parts.fit_4th_order_polynomial(1.0, 2.0, 1.4, 3.0, 4.0, 0.5))
    np.testing.assert_allclose([np.polyval(p, x) for x in (0, 1, 0.5)], [1, 2, 1.4])
    np.testing.assert_allclose([np.polyval(np.polyder(p), x) for x in (0, 1)], [1.5, 2.0])


def test_sizes_of_steps():
    assert parts.abs2(np.complex64(3 + 4j)) == 25 and parts.abs2(np.float32(-3)) == 9
    ratio = parts.mean_error_ratio(np.full(2, 2e-3), 1e-3, 1e-3, np.ones(2), -np.ones(2))
    np.testing.assert_allclose(ratio, 1, rtol=1e-6)
    assert math.isclose(parts.optimal_step_size(0.1, 1.0), 0.09, rel_tol=1e-6)
    assert math.isclose(parts.optimal_step_size(0.1, 0.0), 1.0, rel_tol=1e-6)
    assert math.isclose(parts.optimal_step_size(0.1, 1e9), 0.02, rel_tol=1e-6)
    assert parts.optimal_step_size(0.1, 0.9) >= 0.1  # a good step is not followed by a shorter one
    h = parts.initial_step_size(slope, 0.0, Y0, 4, 1e-6, 1e-6, slope(Y0, 0))
    assert 1e-4 < h < 0.2


def test_functions_of_vectors():
    tree = {"a": np.ones(2, np.float32), "b": np.float32(3)}
    flat, unravel = ravel_pytree(tree)
    f = parts.ravel_first_arg(lambda y, s: {"a": y["a"] * s, "b": y["b"]}, unravel)
    np.testing.assert_array_equal(f(flat, 2), [2, 2, 3])


def test_ravel_first_arg_of_an_object_with_wrap():
    class Wrapped:
        def __init__(self, call):
            self.call = call

        def wrap(self, transformation, static, store):
            return Wrapped(lambda *args: transformation(self.call, *static, *args))

    fun = parts.ravel_first_arg_(Wrapped(lambda y, t: {"a": y["a"] * t}), lambda v: {"a": v.reshape(2, 1)})
    np.testing.assert_array_equal(fun.call(np.ones(2, np.float32), 3), [3, 3])
