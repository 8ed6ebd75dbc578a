"""A driven qubit and a decaying cavity against closed forms; the gradient of a solution."""

import dynamiqs as dq
import jax
import jax.numpy as jnp
import numpy as np

dq.set_progress_meter(False) if hasattr(dq, "set_progress_meter") else None
times = jnp.linspace(0.0, 2.0, 11)
result = dq.sesolve(dq.sigmax(), dq.basis(2, 0), times, exp_ops=[dq.sigmaz()])
np.testing.assert_allclose(result.expects[0].real, np.cos(2 * times), atol=1e-3)


def photons(rate):
    a = dq.destroy(8)
    out = dq.mesolve(
        dq.zeros(8) if hasattr(dq, "zeros") else 0 * dq.number(8),
        [jnp.sqrt(rate) * a],
        dq.fock(8, 3),
        times,
        exp_ops=[dq.number(8)],
    )
    return out.expects[0].real


np.testing.assert_allclose(photons(0.7), 3 * np.exp(-0.7 * times), rtol=1e-2)
slope = jax.grad(lambda r: photons(r)[-1])(0.7)
np.testing.assert_allclose(slope, -2.0 * 3 * np.exp(-1.4), rtol=2e-2)
