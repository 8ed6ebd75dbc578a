"""Fit of a differential equation on NumPy alone.

A damped pendulum was measured with noise. Its frequency and damping are found by the gradient through the solver.
"""

import sys

import numpy as np

import bedrax.numpy as jnp
from bedrax.autodiff import value_and_grad
from bedrax.core import executors, jit
from bedrax.lax import scan
from bedrax.numpy_backend.executor import executor

executors.install(executor)  # NumPy evaluates, also where jaxlib is installed

TIMES = np.linspace(0, 8, 81, dtype=np.float32)


def solve(params, start=(1.2, 0.0)):
    """Angles at all times, by the method of Heun."""
    stiffness, damping = params
    slope = lambda s: jnp.stack([s[1], -stiffness * jnp.sin(s[0]) - damping * s[1]])

    def step(state, _):
        h, k = TIMES[1] - TIMES[0], slope(state)
        state = state + h / 2 * (k + slope(state + h * k))
        return state, state[0]

    return scan(step, jnp.array(start), length=len(TIMES) - 1)[1]


def main():
    measured = np.asarray(solve((4.0, 0.3))) + np.random.default_rng(0).normal(size=80).astype(np.float32) * 0.05
    fit = jit(value_and_grad(lambda params: jnp.mean((solve(params) - measured) ** 2)))
    params = jnp.array([3.0, 0.1])
    for _ in range(150):
        value, gradient = fit(params)
        params = params - jnp.array([1.0, 0.1]) * gradient
    print(f"stiffness {float(params[0]):.2f} (4.00), damping {float(params[1]):.2f} (0.30), error {float(value):.4f}")
    return measured, np.asarray(solve((3.0, 0.1))), np.asarray(solve(params)), np.asarray(params)


def picture(data):
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(5, 4))).subplots()
    axes.scatter(TIMES[1:], data[0], s=10, color="C1", label="measured")
    axes.plot(TIMES[1:], data[1], color="C7", label="before the fit", ls="--")
    axes.plot(TIMES[1:], data[2], color="C0", label="after", lw=2)
    axes.set(xlabel="time", ylabel="angle")
    axes.legend(fontsize=9)
    return figure


if __name__ == "__main__":
    result = main()
    if len(sys.argv) > 1:
        picture(result).savefig(sys.argv[1])
