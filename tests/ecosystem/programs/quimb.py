"""Tensor networks: a split tensor against NumPy, the gradient of a contraction, the ground state of a chain of spins."""

import jax
import jax.numpy as jnp
import numpy as np
import quimb as qu
import quimb.tensor as qtn

matrix = np.random.RandomState(0).randn(5, 4).astype(np.float32)
low = jax.jit(lambda x: qtn.Tensor(x, ("i", "j")).split(["i"], max_bond=2, cutoff=0.0).contract().data)(matrix)
u, s, v = np.linalg.svd(matrix)
np.testing.assert_allclose(low, (u[:, :2] * s[:2]) @ v[:2], atol=1e-5)


def chance(angle):
    """The chance that a turned qubit is 1."""
    c, s = jnp.cos(angle / 2), jnp.sin(angle / 2)
    network = qtn.Tensor(jnp.array([[c, -s], [s, c]]), ("a", "b")) & qtn.Tensor(jnp.array([1.0, 0.0]), ("b",))
    return (network ^ all).data[1] ** 2


np.testing.assert_allclose(jax.jit(jax.grad(chance))(0.6), np.sin(0.6) / 2, rtol=1e-5)

chain = qtn.MPO_ham_heis(4)
exact = qu.eigvalsh(chain.to_dense())[0]
chain.apply_to_arrays(lambda x: jnp.asarray(x, jnp.float32))
state = qtn.MPS_rand_state(4, 4, seed=1, dtype="float32")


def energy(state):
    below, middle, above = qtn.tensor_network_align(state.H, chain, state)
    return (below & middle & above) ^ all


def unit(state):
    return state / (state.H @ state) ** 0.5


found = qtn.TNOptimizer(
    state, energy, norm_fn=unit, autodiff_backend="jax", optimizer="L-BFGS-B", progbar=False
).optimize(60)
np.testing.assert_allclose(energy(unit(found)), exact, rtol=1e-3)
