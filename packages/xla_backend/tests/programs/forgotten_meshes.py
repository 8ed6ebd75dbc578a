"""`clear_caches` frees a mesh that was used in every way. Other tests of a process may keep meshes, so this is its own."""

import gc
import weakref

import numpy as np

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.parallel.mapping import shard_map
from bedrax.parallel.meshes import AxisType, Mesh, set_mesh
from bedrax.parallel.specs import PartitionSpec as P
from bedrax.xla_backend.sharding import NamedSharding


def use(kind):
    mesh = Mesh(np.array(xla.devices()[:1]), ("only",), (kind,))
    x = xla.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("only")))
    xla.jit(lambda x: lax.sin(x))(x)
    with mesh:
        xla.jit(lambda x: lax.cos(x))(x)
    with set_mesh(mesh):
        xla.jit(lambda x: lax.tan(x))(x)
    shard_map(lambda x: lax.exp(x), mesh=mesh, in_specs=P("only"), out_specs=P("only"))(x)
    return weakref.ref(mesh)


for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = use(kind)
    gc.collect()
    assert mesh() is not None  # blocks that are entered again find their contexts
    xla.clear_caches()
    gc.collect()
    assert mesh() is None, kind
