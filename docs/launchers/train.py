"""A linear model, trained by all processes of a run: each has its part of the data, all have the same weights."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

jax.distributed.initialize()  # before the first array; the launcher's variables describe the run

mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
rows = NamedSharding(mesh, P("data"))

# Each process makes (or reads) its own rows. 64 rows per device.
random = np.random.default_rng(jax.process_index())
mine = random.normal(size=(64 * jax.local_device_count(), 3)).astype(np.float32)
x = jax.make_array_from_process_local_data(rows, mine)
y = jax.make_array_from_process_local_data(rows, mine @ np.float32([1, -2, 3]))


@jax.jit
def step(w, x, y):  # arrays of several processes are arguments: a program cannot capture them
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    return w - 0.1 * gradient, loss


w = jnp.zeros(3)
for _ in range(100):
    w, loss = step(w, x, y)
print(
    f"process {jax.process_index()} of {jax.process_count()}: {jax.device_count()} devices,"
    f" loss {loss:.1e}, weights {np.round(w, 2).tolist()}"
)
