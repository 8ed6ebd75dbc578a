"""Differential equations against their solutions, and derivatives against finite differences."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax.autodiff import check_grads
from bedrax.core import config
from bedrax.core.jitting import jit
from bedrax.libraries.ode import odeint


@pytest.fixture(autouse=True)
def float64():
    with config.enable_x64(True):
        yield


TIMES = np.array([0.0, 0.4, 0.5, 2.0])


def test_solutions():
    np.testing.assert_allclose(odeint(lambda y, t: -2 * y, 3.0, TIMES), 3 * np.exp(-2 * TIMES), rtol=1e-6)
    turn = lambda state, t, w: {"x": w * state["v"], "v": -w * state["x"]}
    out = jit(lambda w: odeint(turn, {"x": 0.0, "v": 1.0}, TIMES, w))(3.0)
    np.testing.assert_allclose(out["x"], np.sin(3 * TIMES), atol=1e-6)
    np.testing.assert_allclose(odeint(lambda y, t: t**3, 0.0, TIMES), TIMES**4 / 4, atol=1e-7)


def test_too_few_steps():
    out = np.asarray(odeint(lambda y, t: -2 * y, 3.0, TIMES, mxstep=1))
    assert np.isnan(out[-1]) and out[0] == 3


def test_derivatives():
    scale = np.array([0.7, 1.3])  # closed over

    def solution(y0, t, a):
        return odeint(lambda y, t, a: jnp.sin(a * t) * y * scale - y**3, y0, t, a, rtol=1e-10, atol=1e-10)

    check_grads(solution, (np.array([0.5, -1.0]), TIMES, np.float64(1.2)), order=1, modes=["rev"], rtol=1e-5)
