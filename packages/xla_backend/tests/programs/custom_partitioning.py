"""Functions with a custom partitioning on eight CPU devices."""

import numpy as np

from bedrax import lax
from bedrax import xla_backend as xla
from bedrax.parallel import Mesh, shard_map
from bedrax.parallel import PartitionSpec as P
from bedrax.parallel.partitioning import custom_partitioning
from bedrax.xla_backend import flags
from bedrax.xla_backend.sharding import NamedSharding

mesh = Mesh(np.array(xla.devices()).reshape(4, 2), ("x", "y"))
A = np.arange(64, dtype=np.float32).reshape(8, 8)
B = np.cos(A)
put = lambda x, *spec: xla.device_put(x, NamedSharding(mesh, P(*spec)))
matmul = lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())))
requested = []


# A product whose contracted axis is split: each device's part is summed by its own collective.
def partition(mesh, args, result):
    a, b = args
    assert a.shape == b.shape == result.shape == (8, 8) and a.dtype == np.float32
    requested.append((a.sharding.spec, result.sharding.spec))
    own = lambda s: NamedSharding(mesh, P(*s))

    def lower(a, b):
        assert a.shape == (8, 2) and b.shape == (2, 4)
        places = lax.add(lax.mul(lax.axis_index("x"), np.int32(2)), lax.axis_index("y"))
        return lax.psum(matmul(a, b), "x"), lax.reshape(places, (1,))

    return mesh, lower, (own((None, "y")), own((("x", "y"),))), (own((None, "x")), own(("x", "y")))


@custom_partitioning
def product(a, b):
    return matmul(a, b), lax.iota(np.int32, 8)


def split(mesh, args, result):
    product_type, places = result
    assert product_type.shape == (8, 8) and places.shape == (8,)
    return NamedSharding(mesh, P(None, args[1].sharding.spec[1])), NamedSharding(mesh, P(("x", "y")))


def whole_partition(mesh, args, result):
    requested.append(args[0].sharding.spec)
    mesh, lower, out, given = partition(mesh, args, result[0])
    return mesh, lower, out, given


product.def_partition(whole_partition, split, sharding_rule="i k, k j -> i j, n", reduction_factors=("k",))


@custom_partitioning
def scaled(x, by=2.0):
    return {"y": lax.mul(x["x"], np.float32(by))}


scaled = custom_partitioning(scaled.fun, static_argnums=(1,))

wanted = []


def each(by, mesh, args, result):
    requested.append((by, result["y"].sharding.spec))
    return (
        mesh,
        lambda x: {"y": lax.mul(x["x"], np.float32(by + 1))},
        result["y"].sharding,
        ({"x": result["y"].sharding},),
    )


def user(by, mesh, result):
    wanted.append(result["y"].sharding.spec)
    return {"y": result["y"].sharding}


def rule(by, mesh, operands, results):
    assert by == 3.0 and mesh.axis_names == ("x", "y") and len(operands) == len(results) == 1
    return "... -> ..."


scaled.def_partition(each, lambda by, mesh, args, result: {"y": args[0]["x"].sharding}, user, sharding_rule=rule)

for shardy in (True, False):
    with flags.use_shardy_partitioner(shardy):
        requested.clear()
        y, places = xla.jit(lambda a, b: product(a, b))(put(A, None, "x"), put(B, "x", "y"))
        assert P(None, "x") in requested, requested
        np.testing.assert_allclose(y, A @ B, rtol=1e-4, atol=1e-4)
        assert y.sharding.is_equivalent_to(NamedSharding(mesh, P(None, "y")), 2), y.sharding
        np.testing.assert_array_equal(places, np.arange(8))
        # a result without uses
        y = xla.jit(lambda a, b: product(a, b)[0])(put(A, None, "x"), put(B, "x", "y"))
        np.testing.assert_allclose(y, A @ B, rtol=1e-4, atol=1e-4)
        # arrives split otherwise: the partitioner moves it
        y, _ = xla.jit(lambda a, b: product(lax.sin(a), b))(put(A, "y"), put(B))
        np.testing.assert_allclose(y, np.sin(A) @ B, rtol=1e-4, atol=1e-4)
        # what the devices run is what `partition` returned: it multiplies by one more
        requested.clear()
        out = xla.jit(lambda x: scaled({"x": x}, 3.0)["y"])(put(A, "x", "y"))
        assert requested == [(3.0, P("x", "y"))], requested
        np.testing.assert_array_equal(out, A * 4)
        out = xla.jit(lambda x: scaled({"x": x}, 3.0)["y"], out_shardings=NamedSharding(mesh, P("y")))(put(A))
        np.testing.assert_array_equal(out, A * 4)
        # one device, and inside shard_map: the function itself
        np.testing.assert_array_equal(xla.jit(lambda x: scaled({"x": x}, 3.0)["y"])(A), A * 3)
        mapped = shard_map(lambda x: scaled({"x": x}, 3.0)["y"], mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        np.testing.assert_array_equal(xla.jit(mapped)(A), A * 3)
        for given in (dict(sharding_rule="... -> ..."), {}):
            bad = custom_partitioning(lax.sin)
            bad.def_partition(
                lambda mesh, args, result: (mesh, lax.sin, args[0].sharding, (args[0].sharding,)), **given
            )
            if given and shardy:
                continue
            try:
                xla.jit(lambda x, f=bad: f(x))(put(A, "x"))
            except ValueError as error:
                assert ("Shardy" if shardy else "GSPMD") in str(error)
            else:
                raise AssertionError
        bad = custom_partitioning(lax.sin)
        same = lambda mesh, args, result: args[0].sharding
        bad.def_partition(
            lambda mesh, args, result: (mesh, lambda x: lax.reduce_sum(x, (0,)), args[0].sharding, (args[0].sharding,)),
            same,
            sharding_rule="... -> ...",
        )
        try:
            xla.jit(lambda x, f=bad: f(x))(put(A, "x"))
        except Exception as error:
            assert "for one device" in str(error), error
        else:
            raise AssertionError
assert wanted, "GSPMD never requested how a user splits the result"
