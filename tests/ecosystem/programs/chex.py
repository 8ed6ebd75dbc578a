"""Assertions on trees and shapes, variants of tests, dataclasses, fake_jit and fake_pmap."""

import chex
import jax
import jax.numpy as jnp
import numpy as np


@chex.dataclass
class Point:
    x: chex.Array
    y: chex.Array


p = Point(x=jnp.ones((2, 3)), y=jnp.zeros(2))
assert jax.tree.map(lambda a: a + 1, p).y[0] == 1
chex.assert_shape([p.x], (2, 3))
chex.assert_tree_all_finite(p)
chex.assert_trees_all_close(p, jax.jit(lambda p: p)(p))
chex.assert_equal_shape([p.y, p.y])
for wrong in (lambda: chex.assert_rank(p.x, 1), lambda: chex.assert_type(p.x, int), lambda: chex.assert_scalar(p.x)):
    try:
        wrong()
    except AssertionError:
        continue
    raise SystemExit("an assertion that must fail holds")

traces = []


@jax.jit
@chex.assert_max_traces(n=1)
def once(x):
    traces.append(x)
    return x * 2


assert once(1.0) == 2 and once(3.0) == 6 and len(traces) == 1


@jax.jit
@chex.chexify
def unused(x):
    return x


@chex.chexify
@jax.jit
def positive(x):
    chex.assert_trees_all_close(jnp.sign(x), jnp.ones_like(x), custom_message="not positive")
    return jnp.log(x)


with chex.fake_jit():
    assert isinstance(jax.jit(lambda x: x)(np.ones(2)), np.ndarray | jax.Array)
with chex.fake_pmap():
    out = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(jnp.arange(3.0))
    np.testing.assert_allclose(out, 3.0)


class Variants(chex.TestCase):
    @chex.variants(with_jit=True, without_jit=True, with_device=True, without_device=True)
    def test_sum(self):
        np.testing.assert_allclose(self.variant(lambda x: x.sum())(jnp.arange(4.0)), 6.0)


import unittest

result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromTestCase(Variants))
assert result.wasSuccessful() and result.testsRun == 4, result
