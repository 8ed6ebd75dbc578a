"""Results of eager calls that run as one compiled program, and of compiled functions of keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x: jnp.var(x, axis=1, ddof=1), lambda x: np.var(x, axis=1, ddof=1)),
        (lambda x: jnp.mean(x, [0, 1]), lambda x: np.mean(x)),  # a list cannot be a static argument
        (lambda x: x.sum(-1, keepdims=True), lambda x: x.sum(-1, keepdims=True)),
        (lambda x: jnp.median(x, axis=0), lambda x: np.median(x, axis=0)),
        (lambda x: jnp.linspace(0, 1, 5), lambda x: np.linspace(0, 1, 5)),
        (lambda x: x // 2, lambda x: x // 2),
        (lambda x: jnp.where(x > 3, x, 0), lambda x: np.where(x > 3, x, 0)),
        (lambda x: jnp.interp(1.5, x[0], x[1], left=0), lambda x: np.interp(1.5, x[0], x[1], left=0)),
        (lambda x: jax.nn.softmax(x, axis=(0, 1)), lambda x: np.exp(x) / np.exp(x).sum()),
        (lambda x: jnp.linalg.norm(x, ord="fro"), lambda x: np.linalg.norm(x)),
    ],
)
def test_functions_of_several_operations(call, expected):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for _ in range(2):  # the second call finds the program
        np.testing.assert_allclose(np.asarray(call(jnp.asarray(x))), expected(x), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(jax.jit(call)(x)), expected(x), rtol=1e-5)


def test_errors_of_one_program_are_those_of_the_function():
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.var(jnp.ones(3), axis=5)
    with pytest.raises(TypeError):
        jnp.linalg.norm(jnp.ones(3), ord=object())


def test_weak_types_survive():
    assert jnp.var(jnp.asarray(1.0) * jnp.ones(3, jnp.float16)).dtype == jnp.float16
    assert (jnp.int8(7) // 2).dtype == jnp.int8
    assert jnp.clip(jnp.ones(2, jnp.bfloat16), 0, 2.0).dtype == jnp.bfloat16


@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg"])
def test_keys_go_in_and_out_of_compiled_functions(implementation):
    @jax.jit
    def step(state, x):
        key, use = jax.random.split(state["key"])
        return {"key": key, "n": state["n"] + 1}, (jax.random.normal(use, x.shape), None)

    traces = []
    counted = jax.jit(lambda k: traces.append(0) or (k, [jax.random.split(k, 3)]))
    state = {"key": jax.random.key(1, impl=implementation), "n": 0}
    expected = state["key"]
    for _ in range(4):
        state, (noise, nothing) = step(state, jnp.ones(3))
        expected, use = jax.random.split(expected)
        np.testing.assert_array_equal(jax.random.key_data(state["key"]), jax.random.key_data(expected))
        np.testing.assert_array_equal(noise, jax.random.normal(use, (3,)))
        same, (three,) = counted(state["key"])
        assert nothing is None and same.dtype == three.dtype == expected.dtype and three.shape == (3,)
        np.testing.assert_array_equal(jax.random.key_data(same), jax.random.key_data(expected))
    assert len(traces) == 1
    assert jax.tree.leaves(state)[0].dtype == expected.dtype  # a leaf, though dispatch sees the array of its bits


def test_one_compiled_function_of_keys_of_two_kinds_and_of_arrays():
    f = jax.jit(lambda x: x)
    for x in (jax.random.key(0), jax.random.key(0, impl="rbg"), jnp.zeros(2, jnp.uint32), jax.random.key(0)):
        for _ in range(2):
            assert f(x).dtype == x.dtype and f(x).shape == x.shape
