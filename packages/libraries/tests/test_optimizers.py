"""Optimizers: minima, first steps computed by hand, and states as pytrees."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import pytree
from bedrax.autodiff import grad
from bedrax.core.jitting import jit
from bedrax.libraries import optimizers

MAKERS = {
    "sgd": (0.1,), "momentum": (0.05, 0.8), "nesterov": (0.05, 0.8), "adagrad": (0.5,), "rmsprop": (0.02,),
    "rmsprop_momentum": (0.005,), "adam": (0.05,), "adamax": (0.05,), "sm3": (0.5,),
}  # fmt: skip
TARGET = {"w": np.array([[1.0, -2.0], [0.5, 3.0]], np.float32), "b": np.float32(0.7)}


def loss(params):
    return sum(pytree.tree_leaves(pytree.tree_map(lambda x, y: jnp.sum((x - y) ** 2), params, TARGET)))


@pytest.mark.parametrize("name", MAKERS)
def test_minimum(name):
    init, update, get_params = getattr(optimizers, name)(*MAKERS[name])
    state = init(pytree.tree_map(np.zeros_like, TARGET))
    step = jit(lambda i, state: update(i, grad(loss)(get_params(state)), state))
    for i in range(400):
        state = step(i, state)
    assert loss(get_params(state)) < 0.02


def first_step(maker, x, g):
    return maker.params_fn(maker.update_fn(0, g, maker.init_fn(x)))


def test_first_steps():
    x, g = np.float32(1.0), np.float32(-4.0)
    np.testing.assert_allclose(first_step(optimizers.sgd(0.1), x, g), 1.4, rtol=1e-6)
    np.testing.assert_allclose(first_step(optimizers.nesterov(0.1, 0.5), x, g), 1 + 0.1 * 6, rtol=1e-6)
    np.testing.assert_allclose(first_step(optimizers.adam(0.1), x, g), 1.1, rtol=1e-5)  # a step of unit length
    np.testing.assert_allclose(first_step(optimizers.adagrad(0.1, momentum=0.0), x, g), 1.1, rtol=1e-6)


def test_states_are_pytrees_and_can_be_unpacked():
    maker = optimizers.adam(0.1)
    state = maker.init_fn(TARGET)
    marked = optimizers.unpack_optimizer_state(state)
    assert isinstance(marked["b"], optimizers.JoinPoint)
    again = optimizers.pack_optimizer_state(marked)
    assert pytree.tree_structure(again) == pytree.tree_structure(state)
    assert len(pytree.tree_leaves(state)) == 6
    with pytest.raises(TypeError, match="gradient tree"):
        maker.update_fn(0, {"w": TARGET["w"]}, state)


def test_schedules():
    assert optimizers.make_schedule(0.5)(10) == 0.5
    np.testing.assert_allclose(optimizers.exponential_decay(1.0, 10, 0.5)(20), 0.25)
    np.testing.assert_allclose(optimizers.inverse_time_decay(1.0, 10, 1.0)(5), 1 / 1.5)
    np.testing.assert_allclose(optimizers.inverse_time_decay(1.0, 10, 1.0, staircase=True)(5), 1)
    np.testing.assert_allclose(optimizers.polynomial_decay(1.0, 10, 0.2)(5), 0.6, rtol=1e-6)
    steps = optimizers.piecewise_constant([2, 5], [1.0, 0.5, 0.1])
    np.testing.assert_allclose([steps(i) for i in (0, 2, 3, 5, 6)], [1, 1, 0.5, 0.5, 0.1])
    with pytest.raises(ValueError, match="one longer"):
        optimizers.piecewise_constant([1], [1.0])


def test_clipping():
    tree = {"a": np.float32([3.0]), "b": np.float32([4.0])}
    np.testing.assert_allclose(optimizers.l2_norm(tree), 5)
    np.testing.assert_allclose(optimizers.clip_grads(tree, 1.0)["b"], [0.8], rtol=1e-6)
    np.testing.assert_allclose(optimizers.clip_grads(tree, 9.0)["b"], [4.0])
