"""Optimal transport between clouds of points: the cost falls to the exact one, gradients move points."""

import jax
import jax.numpy as jnp
import numpy as np
from ott.geometry import pointcloud
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn, sinkhorn_lr

x = jax.random.normal(jax.random.key(0), (8, 2))
y = x[::-1] + jnp.array([3.0, 0.0])


@jax.jit
def cost(x, y):
    geometry = pointcloud.PointCloud(x, y, epsilon=1e-2)
    out = sinkhorn.Sinkhorn(max_iterations=5000)(linear_problem.LinearProblem(geometry))
    return out.reg_ot_cost, out.matrix


value, plan = cost(x, y)
np.testing.assert_allclose(plan.sum(1), 1 / 8, atol=1e-3)
centred = np.asarray(y) - np.asarray(x).mean(0)
shifts = np.square(np.asarray(x)[:, None] - np.asarray(y)[None]).sum(-1)
import scipy.optimize as so

rows, columns = so.linear_sum_assignment(shifts)
np.testing.assert_allclose(jnp.sum(plan * shifts), shifts[rows, columns].mean(), rtol=1e-2)
gradient = jax.grad(lambda x: cost(x, y)[0])(x)
np.testing.assert_allclose(gradient.sum(0), [-6.0, 0.0], atol=0.1)
low = sinkhorn_lr.LRSinkhorn(rank=2)(linear_problem.LinearProblem(pointcloud.PointCloud(x, y)))
assert np.isfinite(low.primal_cost)
