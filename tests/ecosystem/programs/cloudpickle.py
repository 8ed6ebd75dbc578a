"""Jitted functions, closures over arrays, optimizers and keys go to another process and back."""

import subprocess
import sys
import tempfile

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np

scale = jnp.arange(3.0)
f = jax.jit(jax.grad(lambda x: jnp.sum(scale * jnp.sin(x))))
f(jnp.ones(3))
tree = {"f": f, "add": jnp.add, "key": jax.random.key(3), "w": jnp.ones(2, jnp.bfloat16), "vmap": jax.vmap(f)}
again = cloudpickle.loads(cloudpickle.dumps(tree))
np.testing.assert_allclose(again["f"](jnp.ones(3)), np.arange(3) * np.cos(1), rtol=1e-6)
with tempfile.NamedTemporaryFile(suffix=".pkl") as file:
    file.write(cloudpickle.dumps(lambda: float(f(jnp.ones(3))[2])))
    file.flush()
    code = f"import pickle; print(pickle.load(open({file.name!r}, 'rb'))())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
np.testing.assert_allclose(float(out.split()[-1]), 2 * np.cos(1), rtol=1e-6)
