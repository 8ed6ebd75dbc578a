"""Logistic regression on NumPy alone.

Two clouds of points are separated by a line. The program imports `bedrax.numpy` and `bedrax.autodiff`, which need no jaxlib.
"""

import sys

import numpy as np

import bedrax.numpy as jnp
from bedrax.autodiff import value_and_grad
from bedrax.core import executors
from bedrax.numpy_backend.executor import executor

executors.install(executor)  # NumPy evaluates, also where jaxlib is installed


def loss(weights, points, labels):
    logits = points @ weights[:2] + weights[2]
    return jnp.mean(jnp.logaddexp(0.0, logits) - labels * logits)


def main():
    draw = np.random.default_rng(0)
    labels = np.repeat(np.float32([0, 1]), 100)
    points = draw.normal(size=(200, 2)).astype(np.float32) + np.where(labels[:, None], 1.5, -1.5).astype(np.float32)
    weights = jnp.zeros(3)
    for _ in range(100):
        value, gradient = value_and_grad(loss)(weights, points, labels)
        weights = weights - 0.5 * gradient
    right = np.mean((points @ np.asarray(weights[:2]) + float(weights[2]) > 0) == labels)
    print(f"loss {float(value):.3f}, {right:.0%} of the points are on their side")
    return points, labels, np.asarray(weights)


def picture(data):
    from matplotlib.figure import Figure

    points, labels, (a, b, c) = data
    axes = (figure := Figure(figsize=(5, 4))).subplots()
    for label in (0, 1):
        axes.scatter(*points[labels == label].T, s=14)
    x = np.array([-4.0, 4.0])
    axes.plot(x, -(a * x + c) / b, color="C2", lw=2)
    axes.set(xlim=(-4.5, 4.5), ylim=(-4.5, 4.5), xlabel="first feature", ylabel="second feature")
    return figure


if __name__ == "__main__":
    result = main()
    if len(sys.argv) > 1:
        picture(result).savefig(sys.argv[1])
