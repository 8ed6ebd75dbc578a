"""Saves an array that is split over eight devices, and loads it with another sharding: python ... FOLDER"""

import sys

import numpy as np

from bedrax.core import config
from bedrax.parallel import Mesh
from bedrax.parallel import PartitionSpec as P
from bedrax.processes import tree_io
from bedrax.xla_backend import NamedSharding, device_put, devices

config.config.update("jax_num_cpu_devices", 8)
mesh = Mesh(np.array(devices()).reshape(4, 2), ("a", "b"))
value = np.arange(64.0, dtype=np.float32).reshape(8, 8)
tree_io.save([device_put(value, NamedSharding(mesh, P("a", "b")))], sys.argv[1])
(out,) = tree_io.load(sys.argv[1], NamedSharding(mesh, P(None, ("b", "a"))))
assert out.sharding.spec == P(None, ("b", "a"))
np.testing.assert_array_equal(np.asarray(out), value)
