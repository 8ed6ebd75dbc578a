"""Trees of arrays, scalars and optimizer states are saved and restored; a manager keeps the last steps."""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    params = {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3, jnp.bfloat16), "n": np.array(4, np.float32)}
    tree = {"params": params, "opt": optax.adam(1e-3).init(params), "step": 7}
    with ocp.StandardCheckpointer() as saver:
        saver.save(folder / "state", tree)
        saver.wait_until_finished()
        back = saver.restore(folder / "state", jax.tree.map(ocp.utils.to_shape_dtype_struct, tree))
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    jax.tree.map(np.testing.assert_array_equal, tree, back)
    assert back["params"]["b"].dtype == jnp.bfloat16
    with ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler()) as saver:
        saver.save(folder / "later", args=ocp.args.PyTreeSave(tree))
        saver.wait_until_finished()
        np.testing.assert_array_equal(saver.restore(folder / "later")["params"]["w"], params["w"])
    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    with ocp.CheckpointManager(folder / "steps", options=options) as manager:
        for n in range(4):
            manager.save(n, args=ocp.args.StandardSave({"x": jnp.full(3, float(n))}))
        manager.wait_until_finished()
        assert manager.all_steps() == [2, 3]
        restored = manager.restore(3, args=ocp.args.StandardRestore({"x": jnp.zeros(3)}))
    np.testing.assert_array_equal(restored["x"], 3.0)
