"""Pictures and queries of shardings, and `shard_alike`, on eight CPU devices."""

import contextlib
import io

import numpy as np

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.lax.primitives.placement import inspect_array_sharding, shard_alike
from bedrax.parallel import Mesh
from bedrax.parallel import PartitionSpec as P
from bedrax.xla_backend import flags
from bedrax.xla_backend.debugging.pictures import visualize_array_sharding, visualize_sharding
from bedrax.xla_backend.sharding import NamedSharding

mesh = Mesh(np.array(xla.devices()).reshape(2, 4), ("x", "y"))
X = np.arange(64, dtype=np.float32).reshape(8, 8)
put = lambda value, *spec: xla.device_put(value, NamedSharding(mesh, P(*spec)))


def printed(action):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        action()
    return out.getvalue().rstrip().splitlines()


lines = printed(lambda: visualize_array_sharding(put(X, "x", "y")))
assert len({len(line) for line in lines}) == 1 and lines[0][0] == "┌" and lines[-1][-1] == "┘"
rows = [line for line in lines if "CPU" in line]
assert [r.split("│")[1].strip() for r in rows] == ["CPU 0", "CPU 4"] and rows[0].count("CPU") == 4
assert "CPU 1,5" in "".join(printed(lambda: visualize_array_sharding(put(X[0], "y"))))
assert "CPU 0,1,2,3,4,5,6,7" in "".join(printed(lambda: visualize_sharding((8, 8), NamedSharding(mesh, P()))))
assert printed(lambda: xla.jit(lambda x: (visualize_array_sharding(x), lax.sin(x))[1])(put(X, "x", "y"))) == lines
try:
    visualize_sharding((2, 2, 2), NamedSharding(mesh, P()))
except ValueError as error:
    assert "one or two dimensions" in str(error)
else:
    raise AssertionError


def looked(x, found):
    y = lax.sin(x)
    inspect_array_sharding({"y": y}, callback=found.append)
    return lax.reduce_sum(y, (0, 1))


for shardy in (True, False):
    with flags.use_shardy_partitioner(shardy):
        found = []
        xla.jit(lambda x, found=found: looked(x, found))(put(X, "x", "y"))
        assert found == [NamedSharding(mesh, P("x", "y"))], found
        a, b = xla.jit(lambda x: shard_alike(x, lax.full((8, 8), 1.0)))(put(X, "y"))
        assert a.sharding.is_equivalent_to(b.sharding, 2) and a.sharding.spec[0] == "y"
found = []
grad(lambda x: looked(x, found))(X)
assert len(found) == 1
found = []
xla.jit(lambda x: looked(x, found))(xla.device_put(X, xla.devices()[3]))
assert found[0].device_set == {xla.devices()[3]}
a, b = shard_alike({"k": put(X, "x")}, {"k": X})
assert b["k"].sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
np.testing.assert_array_equal(b["k"], X)
mapped = vmap(lambda x, y: shard_alike(x, y)[1], in_axes=(0, 1))(put(X, "x"), X)
np.testing.assert_array_equal(mapped, X.T)
np.testing.assert_allclose(
    grad(lambda x: lax.reduce_sum(shard_alike(lax.sin(x), x)[0], (0, 1)))(X), np.cos(X), rtol=1e-5
)
for bad in ((X, X[0]), ((X,), X)):
    try:
        shard_alike(*bad)
    except ValueError as error:
        assert "shard_alike" in str(error)
    else:
        raise AssertionError
