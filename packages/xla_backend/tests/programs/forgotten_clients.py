"""Clients that are forgotten after a use: python forgotten_clients.py USE

Prints the number of devices and whether a function has the right result, for one to three devices. With "held", prints
the error for an array that is still there.
"""

import sys

import numpy as np

import bedrax.xla_backend.flags  # noqa: F401  declares the options
from bedrax import lax
from bedrax.core.config import config
from bedrax.core.jitting import jit
from bedrax.parallel.mapping import shard_map
from bedrax.parallel.meshes import Mesh, set_mesh
from bedrax.parallel.specs import PartitionSpec
from bedrax.xla_backend import clients, placement
from bedrax.xla_backend.sharding import NamedSharding

config.update("jax_debug_leaked_clients_on_clear_backends", True)
f = jit(lambda x: lax.sin(x) + x)
X = np.ones(3, np.float32)


def use_meshes():
    mesh = Mesh(np.array(clients.devices()), ("all",))
    x = placement.device_put(np.ones(12, np.float32), NamedSharding(mesh, PartitionSpec("all")))
    f(x)
    with mesh:
        jit(lambda x: lax.cos(x))(x)
    with set_mesh(mesh):
        jit(lambda x: lax.tan(x))(x)
    shard_map(lambda x: lax.exp(x), mesh=mesh, in_specs=PartitionSpec("all"), out_specs=PartitionSpec("all"))(x)


USES = {
    "devices": lambda: clients.devices(),
    "operation": lambda: lax.add(X, X),
    "call": lambda: f(X),
    "compiled": lambda: f.lower(X).compile()(X),
    "map": lambda: lax.map(f, X),
    "meshes": use_meshes,
    "linear algebra": lambda: lax.eigh(np.eye(3)),
}


def hold():
    x = f(X)
    try:
        clients.clear_backends()
    except RuntimeError as error:
        print(error)
    print(clients.backends_are_initialized())
    return x


if sys.argv[1] == "held":
    hold()
else:
    for count in (1, 2, 3):
        config.update("jax_num_cpu_devices", count)
        USES[sys.argv[1]]()
        print(len(clients.devices()), float(np.asarray(f(X))[0]) > 1.8)
        clients.clear_backends()
