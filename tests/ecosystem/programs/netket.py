"""Variational Monte Carlo finds the ground state of a short chain of spins."""

import jax
import netket as nk
import numpy as np

graph = nk.graph.Chain(6, pbc=True)
hilbert = nk.hilbert.Spin(0.5, 6)
hamiltonian = nk.operator.Ising(hilbert, graph, h=1.0)
exact = nk.exact.lanczos_ed(hamiltonian)[0]
sampler = nk.sampler.MetropolisLocal(hilbert, n_chains=16)
state = nk.vqs.MCState(sampler, nk.models.RBM(alpha=1), n_samples=512, seed=0, sampler_seed=1)
driver = nk.driver.VMC(
    hamiltonian, nk.optimizer.Sgd(0.05), variational_state=state, preconditioner=nk.optimizer.SR(diag_shift=0.01)
)
log = nk.logging.RuntimeLog()
driver.run(80, out=log, show_progress=False)
energy = np.real(state.expect(hamiltonian).mean)
np.testing.assert_allclose(energy, exact, rtol=2e-2)
assert isinstance(jax.tree.leaves(state.parameters)[0], jax.Array)
