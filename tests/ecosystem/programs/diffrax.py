"""Ordinary, stiff and stochastic equations against closed forms; adjoints, dense output, events."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np

term = dfx.ODETerm(lambda t, y, rate: -rate * y)
control = dfx.PIDController(rtol=1e-6, atol=1e-6)
SOLVERS = (dfx.Tsit5(), dfx.Dopri8(), dfx.Kvaerno5(), dfx.KenCarp4())


def final(rate, solver=SOLVERS[0], adjoint=None):
    adjoint = adjoint or dfx.RecursiveCheckpointAdjoint()
    return dfx.diffeqsolve(
        term, solver, 0.0, 1.0, 0.1, jnp.array(1.0), args=rate, stepsize_controller=control, adjoint=adjoint
    ).ys[0]


for solver in SOLVERS[:3]:
    np.testing.assert_allclose(final(1.5, solver), np.exp(-1.5), rtol=1e-4)
for adjoint in (dfx.RecursiveCheckpointAdjoint(), dfx.BacksolveAdjoint()):
    np.testing.assert_allclose(jax.grad(lambda r: final(r, adjoint=adjoint))(1.5), -np.exp(-1.5), rtol=1e-3)  # noqa: B023
np.testing.assert_allclose(jax.vmap(final)(jnp.array([0.5, 1.0])), np.exp([-0.5, -1.0]), rtol=1e-4)

save = dfx.SaveAt(dense=True, t1=True)
event = dfx.Event(lambda t, y, args, **_: y - 0.5, root_finder=None)
half = dfx.diffeqsolve(
    term, SOLVERS[0], 0.0, 5.0, 0.01, jnp.array(1.0), args=1.0, saveat=save, event=event, stepsize_controller=control
)
np.testing.assert_allclose(half.evaluate(0.3), np.exp(-0.3), rtol=1e-3)
assert 0.6 < half.ts[0] < 1.2

brownian = dfx.VirtualBrownianTree(0.0, 1.0, 1e-3, (), jax.random.key(0))
sde = dfx.MultiTerm(dfx.ODETerm(lambda t, y, _: -y), dfx.ControlTerm(lambda t, y, _: jnp.array(0.0), brownian))
noiseless = dfx.diffeqsolve(sde, dfx.Euler(), 0.0, 1.0, 1e-3, jnp.array(1.0)).ys[0]
np.testing.assert_allclose(noiseless, np.exp(-1), rtol=1e-3)
