"""Planets: a physics simulation.

The forces are the gradient of the energy. A loop of 3,000 steps is one compiled program, and the energy stays constant.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

MASSES = jnp.array([1.0, 3e-2, 2e-2, 1e-2])


def potential(places):
    i, j = np.triu_indices(len(MASSES), 1)
    return -jnp.sum(MASSES[i] * MASSES[j] / jnp.linalg.norm(places[i] - places[j], axis=-1))


def energy(places, speeds):
    return potential(places) + jnp.sum(MASSES[:, None] * speeds**2) / 2


@jax.jit
def simulate(places, speeds):
    def step(state, _, h=0.005):
        places, speeds = state
        push = lambda speeds, places: speeds - h / 2 * jax.grad(potential)(places) / MASSES[:, None]
        speeds = push(speeds, places)  # the method of Verlet: half a push, a move, half a push
        places = places + h * speeds
        return (places, push(speeds, places)), places

    return jax.lax.scan(step, (places, speeds), length=3000)


def main():
    radii = jnp.array([0.0, 0.6, 1.0, 1.5])
    angles = jnp.array([0.0, 0.0, 2.0, 4.0])
    places = radii[:, None] * jnp.stack([jnp.cos(angles), jnp.sin(angles)], 1)
    around = jnp.where(radii > 0, 1 / jnp.sqrt(jnp.where(radii > 0, radii, 1.0)), 0.0)
    speeds = around[:, None] * jnp.stack([-jnp.sin(angles), jnp.cos(angles)], 1)
    speeds = speeds - (MASSES[:, None] * speeds).sum(0) / MASSES.sum()  # the whole stays where it is
    end, paths = simulate(places, speeds)
    change = float(energy(*end) / energy(places, speeds) - 1)
    print(f"3,000 steps; the energy changed by {change:.1e} of its value")
    return np.asarray(paths), change


def picture(data):
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(5, 4))).subplots()
    for n in range(data[0].shape[1]):
        axes.plot(*data[0][:, n].T, lw=1.2, color=f"C{n}")
        axes.scatter(*data[0][-1, n], color=f"C{n}", s=(120 if n == 0 else 40))
    axes.set(aspect="equal", xticks=[], yticks=[])
    return figure


if __name__ == "__main__":
    result = main()
    if len(sys.argv) > 1:
        picture(result).savefig(sys.argv[1])
