"""Arrays of a library's dtype that are split over two devices."""

import numpy as np

from bedrax import lax
from bedrax.extend.element_dtypes import primal_tangent_dtype
from bedrax.parallel import AxisType, Mesh, PartitionSpec, set_mesh, shard_map
from bedrax.xla_backend import NamedSharding, clients, device_put, jit

dtype = primal_tangent_dtype(np.int8, np.float32)
there_and_back = lambda x: lax.convert_element_type(lax.convert_element_type(x, dtype)[::-1], np.int8)
for kind in (AxisType.Explicit, AxisType.Auto):
    mesh = Mesh(np.array(clients.devices("cpu")), ("i",), (kind,))
    x = device_put(np.arange(4, dtype=np.int8), NamedSharding(mesh, PartitionSpec("i")))
    with set_mesh(mesh):
        same = jit(lambda x: lax.convert_element_type(lax.convert_element_type(x, dtype), np.int8))(x)
    assert same.sharding.spec == PartitionSpec("i"), same.sharding
coded = lax.convert_element_type(x, dtype)
assert coded.sharding == x.sharding and coded.addressable_data(0).shape == (2,)
by_parts = shard_map(there_and_back, mesh=mesh, in_specs=PartitionSpec("i"), out_specs=PartitionSpec("i"))
assert list(by_parts(x)) == [1, 0, 3, 2]
