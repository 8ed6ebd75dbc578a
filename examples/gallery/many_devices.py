"""Many devices: one step on eight.

The CPU is split into eight devices. Each has a part of the data, and the gradient is their mean. A device holds one part
of the parameters' first layer, too.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)


def loss(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["in"]) @ params["out"] - y) ** 2)


@jax.jit
def step(params, x, y):
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.2 * g, params, gradient), value


def main():
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    specs = {"in": P(None, "model"), "out": P("model", None)}
    first, second = jax.random.split(jax.random.key(0))
    params = {"in": jax.random.normal(first, (16, 32)) / 4, "out": jax.random.normal(second, (32, 1)) / 6}
    x = np.random.default_rng(0).normal(size=(64, 16)).astype(np.float32)
    y = np.sin(x[:, :1])

    split = {name: jax.device_put(p, NamedSharding(mesh, specs[name])) for name, p in params.items()}
    places = [jax.device_put(a, NamedSharding(mesh, P("data", None))) for a in (x, y)]
    losses, alone = [], []
    for _ in range(60):
        split, value = step(split, *places)
        params, other = step(params, x, y)
        losses.append(float(value))
        alone.append(float(other))
    parts = {name: p.sharding.shard_shape(p.shape) for name, p in split.items()}
    print(f"loss {losses[-1]:.4f} on eight devices, {alone[-1]:.4f} on one; a device has {parts}")
    return losses, alone


def picture(data):
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(5, 4))).subplots()
    axes.plot(data[0], lw=4, alpha=0.5, label="eight devices")
    axes.plot(data[1], lw=1.2, label="one device")
    axes.set(xlabel="step", ylabel="loss")
    axes.legend(fontsize=9)
    return figure


if __name__ == "__main__":
    result = main()
    if len(sys.argv) > 1:
        picture(result).savefig(sys.argv[1])
