"""Arrays that are split over eight CPU devices."""

import pickle

import numpy as np

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.parallel import AxisType
from bedrax.parallel import PartitionSpec as P
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.sharding import GSPMDSharding, NamedSharding, make_mesh

devices = xla.devices()
assert len(devices) == 8

# Shardings that the compiler chose are equal if devices, split and memory are.
whole, split = runtime.HloSharding.replicate(), runtime.HloSharding.iota_tile([8, 1])
chosen = GSPMDSharding(devices, split)
same = GSPMDSharding(tuple(devices), runtime.HloSharding.iota_tile([8, 1]))
assert chosen == same == pickle.loads(pickle.dumps(chosen)) and len({chosen, same}) == 1
assert all(chosen != other for other in (GSPMDSharding(devices, whole), GSPMDSharding(devices[::-1], split), 3))

mesh = make_mesh((2, 4), ("a", "b"), (AxisType.Auto,) * 2)
want = {
    P(): "{replicated}",
    P("b", "a"): "{devices=[4,2]<=[2,4]T(1,0)}",
    P(("b", "a")): "{devices=[8,1]<=[2,4]T(1,0)}",
    P(None, "b"): "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
    P("a"): "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
}
value = np.arange(32, dtype=np.float32).reshape(8, 4)
for spec, text in want.items():
    where = NamedSharding(mesh, spec)
    assert str(where._to_xla_hlo_sharding(2)) == text, (spec, text)
    x = xla.device_put(value, where)
    np.testing.assert_array_equal(np.asarray(x), value)
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), value[shard.index])
    y = xla.jit(lambda x: lax.add(lax.sin(x), x))(x)
    np.testing.assert_allclose(np.asarray(y), np.sin(value) + value, rtol=1e-6)
    assert y.sharding.is_equivalent_to(where, 2), (y.sharding, where)
    assert isinstance(y.sharding, NamedSharding)
    made = xla.make_array_from_callback((8, 4), where, lambda index: value[index])
    np.testing.assert_array_equal(np.asarray(made), value)
    again = xla.make_array_from_single_device_arrays((8, 4), where, [s.data for s in reversed(made.addressable_shards)])
    np.testing.assert_array_equal(np.asarray(again), value)

split = NamedSharding(mesh, P("b"))
f = xla.jit(lambda x: lax.add(x, x), in_shardings=(split,), out_shardings=NamedSharding(mesh, P(None, "a")))
for _ in range(2):
    y = f(value)
    assert y.sharding == NamedSharding(mesh, P(None, "a"))
    np.testing.assert_array_equal(np.asarray(y), 2 * value)

inner = NamedSharding(mesh, P(None, "b"))
h = xla.jit(lambda x: lax.mul(xla.with_sharding_constraint(lax.add(x, x), inner), x))
text = h.lower(xla.device_put(value, split)).as_text()
assert "sdy.sharding_constraint" in text and '[{}, {"b"}]' in text, text
np.testing.assert_array_equal(np.asarray(h(xla.device_put(value, split))), 2 * value * value)

# The parts of an array may be over meshes of one device.
pair = NamedSharding(make_mesh((2,), ("p",), (AxisType.Auto,)), P("p"))
ones = [make_mesh((1,), ("q",), (AxisType.Auto,), devices=[d]) for d in devices[:2]]
halves = [xla.device_put(value[4 * i : 4 * i + 4], NamedSharding(m, P("q"))) for i, m in enumerate(ones)]
for parts in (halves, halves[::-1]):
    made = xla.make_array_from_single_device_arrays((8, 4), pair, parts)
    np.testing.assert_array_equal(made, value)
    np.testing.assert_array_equal(lax.neg(made), -value)

z = xla.device_put(np.ones(3, np.float32), devices[3])
assert lax.sin(z).devices() == {devices[3]}
assert lax.add(z, np.float32(1)).devices() == {devices[3]}
assert xla.device_put(z, devices[1]).devices() == {devices[1]}
stacked = xla.device_put_sharded([np.full(2, i, np.float32) for i in range(8)], devices)
np.testing.assert_array_equal(np.asarray(stacked)[:, 0], np.arange(8))
for action, message in (
    (lambda: lax.add(z, xla.device_put(np.ones(3, np.float32), devices[2])), "incompatible devices"),
    (lambda: xla.device_put(np.ones(3), NamedSharding(mesh, P("a"))), "is not a multiple of 2"),
    (lambda: xla.device_put(np.ones(3), NamedSharding(mesh, P("a", "b"))), "rank"),
    (lambda: NamedSharding(mesh, P("a")).devices_indices_map((3,)), "is not a multiple of 2"),
    (lambda: xla.make_array_from_single_device_arrays((8, 4), pair, [stacked] * 2), "a part is on one device"),
    (lambda: NamedSharding(mesh, P("a")).addressable_devices_indices_map((3,)), "is not a multiple of 2"),
):
    try:
        action()
    except ValueError as error:
        assert message in str(error), error
    else:
        raise AssertionError(message)
for made in (xla.make_array_from_callback, xla.make_array_from_single_device_arrays):
    try:
        made((8, 4), None, halves)
    except TypeError as error:
        assert "None has no sharding over devices" in str(error), error
    else:
        raise AssertionError(made)
