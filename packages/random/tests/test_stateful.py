"""A generator with a state draws what `jax.random` draws with the key of each draw."""

import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import random
from bedrax.batching import vmap
from bedrax.core.jitting import jit
from bedrax.random.stateful import StatefulPRNG, stateful_rng


def keys(seed):
    base = random.key(seed)
    return [random.fold_in(base, n) for n in range(8)]


def same(a, b):
    np.testing.assert_array_equal(random.key_data(a), random.key_data(b))


def test_draws_are_those_of_the_numbered_keys():
    rng, own = stateful_rng(3), keys(3)
    same(rng.key(), own[0])
    same(rng.key((2, 2)), random.split(own[1], (2, 2)))
    np.testing.assert_array_equal(rng.random(3), random.uniform(own[2], (3,)))
    np.testing.assert_array_equal(rng.uniform(1, 5, 2), random.uniform(own[3], (2,), minval=1, maxval=5))
    np.testing.assert_allclose(
        rng.normal(1.0, [2.0, 3.0]), 1 + np.float32([2, 3]) * random.normal(own[4], (2,)), rtol=1e-6
    )
    np.testing.assert_array_equal(rng.integers(5, size=(4,)), random.randint(own[5], (4,), 0, 5))
    assert 2 <= rng.integers(2, 4) < 4 and rng._counter[...] == 7
    assert stateful_rng().random() != stateful_rng().random()


def test_children_are_independent():
    rng, own = stateful_rng(1), keys(1)
    for child, expected in zip(rng.spawn(2), random.split(own[0], 2), strict=True):
        same(child.key(), random.fold_in(expected, 0))
    parts = rng.split(3)
    drawn = vmap(lambda r: (r.uniform(), r.uniform())[1])(parts)
    expected = [random.uniform(random.fold_in(k, 1)) for k in random.split(own[1], 3)]
    np.testing.assert_array_equal(drawn, expected)
    np.testing.assert_array_equal(parts._counter[...], [2, 2, 2])
    with pytest.raises(ValueError, match="vmap"):
        parts.normal()


def test_under_jit():
    rng, own = stateful_rng(0), keys(0)
    draw = jit(lambda: rng.normal(size=2))
    np.testing.assert_allclose(draw(), random.normal(own[0], (2,)), rtol=1e-6)
    np.testing.assert_allclose(draw(), random.normal(own[1], (2,)), rtol=1e-6)
    given = jit(StatefulPRNG.random)(rng)
    assert given == random.uniform(own[2]) and rng._counter[...] == 3
    with pytest.raises(TypeError, match="seed"):
        jit(lambda: stateful_rng().random())()
    assert jnp.shape(jit(lambda s: stateful_rng(s).random(2))(4)) == (2,)
