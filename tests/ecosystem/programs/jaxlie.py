"""Rotations and rigid motions: products, logarithms, derivatives on the manifold, poses of a tree by gradient descent."""

import jax
import jax.numpy as jnp
import jaxlie
import numpy as np
from scipy.spatial.transform import Rotation

tangent = jnp.array([0.1, -0.4, 0.7])
turn = jaxlie.SO3.exp(tangent)
expected = Rotation.from_rotvec(np.asarray(tangent))
np.testing.assert_allclose(turn.as_matrix(), expected.as_matrix(), atol=1e-6)
both = jax.jit(lambda t: (jaxlie.SO3.exp(t) @ jaxlie.SO3.exp(-3 * t)).log())(tangent)
np.testing.assert_allclose(both, -2 * tangent, rtol=1e-5)
motions = jax.vmap(jaxlie.SE3.exp)(jnp.arange(12.0).reshape(2, 6) / 10)
there_and_back = jax.vmap(lambda m: (m @ m.inverse()).as_matrix())(motions)
np.testing.assert_allclose(there_and_back, np.tile(np.eye(4), (2, 1, 1)), atol=1e-6)

# A tree of poses: the gradient has a tangent in the place of each pose.
goal = {"turn": turn, "motion": [jaxlie.SE3.exp(jnp.arange(6.0) / 10)]}
poses = {"turn": jaxlie.SO3.identity(), "motion": [jaxlie.SE3.identity()]}


def loss(poses):
    away = jaxlie.manifold.rminus(goal, poses)
    return sum(jnp.sum(x**2) for x in jax.tree.leaves(away))


@jax.jit
def step(poses):
    slope = jaxlie.manifold.grad(loss)(poses)
    return jaxlie.manifold.rplus(poses, jax.tree.map(lambda x: -0.3 * x, slope))


for _ in range(40):
    poses = step(poses)
np.testing.assert_allclose(poses["turn"].as_matrix(), turn.as_matrix(), atol=1e-4)
np.testing.assert_allclose(poses["motion"][0].as_matrix(), goal["motion"][0].as_matrix(), atol=1e-4)
