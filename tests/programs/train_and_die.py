"""Training over all devices of a run, with a checkpoint after each step; see `tests/test_restart.py`.

``train_and_die.py <process_id> <num_processes> <port> <folder> <steps> <dies at step>``
"""

import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

me, count, port, folder, steps, dies = (int(a) if a.lstrip("-").isdigit() else a for a in sys.argv[1:])
jax.config.update("jax_num_cpu_devices", 8 // count)
if count > 1:
    jax.distributed.initialize(
        f"localhost:{port}",
        count,
        me,
        initialization_timeout=60,
        heartbeat_timeout_seconds=10,
        shutdown_timeout_seconds=60,
    )
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P(None, "model"))


@jax.jit
def step(w, x, y):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
    return w - 0.5 * gradient, loss


def batch(k):
    """Every process has every batch, and keeps the rows of its devices."""
    rng = np.random.default_rng(k)
    x, y = rng.normal(size=(16, 8)).astype(np.float32), rng.normal(size=(16, 4)).astype(np.float32)
    return [jax.make_array_from_callback(a.shape, split, lambda index, a=a: a[index]) for a in (x, y)]


w = jax.make_array_from_callback((8, 4), whole, lambda index: np.full((8, 4), 0.1, np.float32)[index])
with ocp.CheckpointManager(folder, options=ocp.CheckpointManagerOptions(max_to_keep=2)) as manager:
    done = manager.latest_step()
    if done is not None:
        w = manager.restore(done, args=ocp.args.StandardRestore({"w": w}))["w"]
        assert w.sharding == whole
    for k in range(0 if done is None else done + 1, steps):
        w, loss = step(w, *batch(k))
        print(f"loss {k} {float(loss):.9g}", flush=True)
        if me == 1 and k == dies:
            os._exit(17)
        manager.save(k, args=ocp.args.StandardSave({"w": w}))
        manager.wait_until_finished()
print("done", flush=True)
