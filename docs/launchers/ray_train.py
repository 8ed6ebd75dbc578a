"""Two workers of Ray Train, each a process of one run. A worker that dies is replaced, and the run continues."""

import json
import os
import sys
import tempfile
from pathlib import Path

import ray.train
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.v2.jax import JaxConfig, JaxTrainer

os.environ.setdefault("RAY_TRAIN_V2_ENABLED", "1")


def train(config):
    """Runs in each worker. Ray has called `jax.distributed.initialize`."""
    import jax  # here, so that the driver does not use the devices
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = NamedSharding(mesh, P("data"))
    random = np.random.default_rng(jax.process_index())
    mine = random.normal(size=(64 * jax.local_device_count(), 3)).astype(np.float32)
    x = jax.make_array_from_process_local_data(rows, mine)
    y = jax.make_array_from_process_local_data(rows, mine @ np.float32([1, -2, 3]))

    @jax.jit
    def step(w, x, y):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
        return w - 0.1 * gradient, loss

    w, first = jnp.zeros(3), 0
    if (kept := ray.train.get_checkpoint()) is not None:
        with kept.as_directory() as folder:
            state = json.loads(Path(folder, "state.json").read_text(encoding="utf-8"))
        w, first = jnp.array(state["w"], jnp.float32), state["step"]
    for number in range(first, config["steps"]):
        w, loss = step(w, x, y)
        if number % 10 == 9:  # every worker reports; the first one writes, since all have the same weights
            with tempfile.TemporaryDirectory() as folder:
                state = {"w": np.asarray(w).tolist(), "step": number + 1}
                Path(folder, "state.json").write_text(json.dumps(state), encoding="utf-8")
                checkpoint = Checkpoint.from_directory(folder) if jax.process_index() == 0 else None
                ray.train.report(
                    {"loss": float(loss), "processes": jax.process_count(), "first": first}, checkpoint=checkpoint
                )
        if number == config.get("dies") and jax.process_index() == 1 and first == 0:
            os._exit(1)  # for a test: a worker dies


if __name__ == "__main__":
    steps, dies = int(sys.argv[1]) if sys.argv[1:] else 100, int(sys.argv[2]) if sys.argv[2:] else None
    with tempfile.TemporaryDirectory() as folder:
        trainer = JaxTrainer(
            train,
            train_loop_config={"steps": steps, "dies": dies},
            # On GPUs: ScalingConfig(num_workers=2, use_gpu=True), no jax_config, and "cuda" below.
            scaling_config=ScalingConfig(num_workers=2),
            jax_config=JaxConfig(use_gpu=True),
            run_config=RunConfig(
                storage_path=folder,
                failure_config=FailureConfig(max_failures=1),
                worker_runtime_env={"env_vars": {"JAX_PLATFORMS": "cpu"}},
            ),
        )
        result = trainer.fit()
    found = result.metrics
    print(f"{found['processes']} processes, started at step {found['first']}, loss {found['loss']:.1e}")
