"""Exported programs for four devices, called on eight CPU devices."""

import numpy as np

from bedrax import lax
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.lax.primitives.callbacks import pure_callback
from bedrax.parallel import AbstractMesh, Mesh
from bedrax.parallel import PartitionSpec as P
from bedrax.xla_backend import NamedSharding, device_put, jit, local_devices
from bedrax.xla_backend import export as ex
from bedrax.xla_backend.placement import with_sharding_constraint

abstract = NamedSharding(AbstractMesh((4,), ("a",)), P("a"))
f = jit(lambda x: lax.sin(x) * 2)
exported = ex.export(f)(ShapeDtypeStruct((32,), np.float32, sharding=abstract))
assert exported.nr_devices == 4 and str(exported.in_shardings_hlo) == "({devices=[4]<=[4]},)"
concrete = Mesh(np.array(local_devices()[:4]), ("a",))
same = ex.export(f)(ShapeDtypeStruct((32,), np.float32, sharding=NamedSharding(concrete, P("a"))))
assert same.in_shardings_hlo == exported.in_shardings_hlo
exported = ex.deserialize(exported.serialize(1))
x = np.arange(32, dtype=np.float32)
other = Mesh(np.array(local_devices()[2:6]).reshape(2, 2), ("b", "c"))
out = exported.call(device_put(x, NamedSharding(other, P("b"))))
np.testing.assert_allclose(out, 2 * np.sin(x), rtol=1e-5, atol=1e-6)
assert [s.index for s in out.addressable_shards[:2]] == [(slice(0, 8, None),), (slice(8, 16, None),)]
assert exported.in_shardings_jax(other)[0].is_equivalent_to(NamedSharding(other, P(("b", "c"))), 1)
assert exported.vjp().nr_devices == 4
try:
    exported.call(x)
except ValueError as e:
    assert "was exported for 4 devices and is called in a program for 1" in str(e)
else:
    raise SystemExit("called with one device")
one = ex.export(f)(x)
assert one.nr_devices == 1
spread = one.call(device_put(x, NamedSharding(concrete, P("a"))))
np.testing.assert_allclose(spread, 2 * np.sin(x), rtol=1e-5, atol=1e-6)


@jit
def unused(x):
    with_sharding_constraint(x, NamedSharding(concrete, P("a")))
    pure_callback(np.sin, x, x)
    return lax.sin(x) * 2


assert ex.export(unused)(x).nr_devices == 1 and len(unused(x).devices()) == 1
np.testing.assert_allclose(unused(x), 2 * np.sin(x), rtol=1e-5, atol=1e-6)
print("done")
