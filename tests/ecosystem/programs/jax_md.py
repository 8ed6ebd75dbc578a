"""Particles in a periodic box: energy is kept, forces are gradients, a neighbour list agrees with all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
from jax_md import energy, minimize, quantity, simulate, space

jax.config.update("jax_enable_x64", True)
BOX, N = 6.0, 40
displacement, shift = space.periodic(BOX)
R = BOX * jax.random.uniform(jax.random.PRNGKey(0), (N, 2))
soft = energy.soft_sphere_pair(displacement)
init, apply = minimize.fire_descent(soft, shift)
state = init(R)
state = jax.lax.fori_loop(0, 200, lambda _, s: apply(s), state)
assert soft(state.position) < 0.1 * soft(R)
force = quantity.force(soft)(R)
nudge = jax.random.normal(jax.random.PRNGKey(1), R.shape)
slope = (soft(R + 1e-6 * nudge) - soft(R - 1e-6 * nudge)) / 2e-6
np.testing.assert_allclose(-jnp.sum(force * nudge), slope, rtol=1e-5)

init, apply = simulate.nve(soft, shift, 1e-3)
state = init(jax.random.PRNGKey(2), state.position, kT=0.1)
total = lambda s: soft(s.position) + quantity.kinetic_energy(momentum=s.momentum, mass=s.mass)
before = total(state)
state = jax.jit(lambda s: jax.lax.fori_loop(0, 500, lambda _, s: apply(s), s))(state)
np.testing.assert_allclose(total(state), before, rtol=1e-3)

neighbor_fn, by_list = energy.soft_sphere_neighbor_list(displacement, BOX)
neighbors = neighbor_fn.allocate(state.position)
np.testing.assert_allclose(jax.jit(by_list)(state.position, neighbors), soft(state.position), rtol=1e-6)
