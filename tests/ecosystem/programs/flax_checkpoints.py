"""Save steps with flax.training.checkpoints, keep the last ones, restore the latest and a chosen one."""

import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from flax.training import checkpoints

with tempfile.TemporaryDirectory() as folder:
    for step in range(4):
        tree = {"w": jnp.full((2, 3), step, jnp.bfloat16), "key": jax.random.PRNGKey(step), "step": step}
        checkpoints.save_checkpoint(folder, tree, step, keep=2, overwrite=True)
    assert checkpoints.latest_checkpoint(folder).endswith("_3")
    for step in (2, 3):
        back = checkpoints.restore_checkpoint(folder, tree, step)
        np.testing.assert_array_equal(back["w"], np.full((2, 3), step))
        np.testing.assert_array_equal(back["key"], jax.random.PRNGKey(step))
        assert back["w"].dtype == jnp.bfloat16 and back["step"] == step
