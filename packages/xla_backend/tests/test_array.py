"""jaxlib's array class: conversions, printing, placement, copies."""

import copy
import pickle
from pathlib import Path
from unittest import mock

import ml_dtypes
import numpy as np
import pytest

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.core import array as core_array
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapeDtypeStruct
from bedrax.core.tracing import Tracer
from bedrax.parallel import Mesh, PartitionSpec
from bedrax.xla_backend import dlpack
from bedrax.xla_backend.layout import Format

PROGRAMS = Path(__file__).with_name("programs")


@pytest.mark.parametrize(
    "dtype", [np.float32, np.int8, np.uint16, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_round_trip_and_attributes(dtype, shape):
    x = np.ones(shape, dtype)
    a = xla.device_put(x)
    assert (a.shape, a.dtype, a.ndim, a.size, a.nbytes, a.itemsize) == (
        x.shape,
        x.dtype,
        x.ndim,
        x.size,
        x.nbytes,
        x.itemsize,
    )
    assert isinstance(a, core_array.Array)
    back = np.asarray(a)
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(back, x)
    assert not back.flags.writeable
    for other in (pickle.loads(pickle.dumps(a)), copy.copy(a), copy.deepcopy(a)):
        assert other.dtype == a.dtype
        np.testing.assert_array_equal(np.asarray(other), x)
    np.testing.assert_array_equal(np.array(a, dtype=np.complex128), x.astype(np.complex128))


def test_printing():
    assert repr(xla.device_put(np.arange(3.0, dtype=np.float32))) == "Array([0., 1., 2.], dtype=float32)"
    assert repr(xla.device_put(2.0)) == "Array(2., dtype=float32, weak_type=True)"
    assert repr(xla.device_put(np.zeros((0, 3), np.float32))) == "Array([], shape=(0, 3), dtype=float32)"
    assert str(xla.device_put(np.arange(3))) == "[0 1 2]"
    assert f"{xla.device_put(np.float32(1.5)):.3f}" == "1.500"
    matrix = "Array([[ True,  True],\n       [ True,  True]], dtype=bool)"
    assert repr(xla.device_put(np.ones((2, 2), bool))) == matrix


def test_scalars_and_their_errors():
    x = xla.device_put(np.int32(3))
    assert (int(x), float(x), complex(x), bool(x), x.__index__(), x.item()) == (3, 3.0, 3 + 0j, True, 3, 3)
    assert isinstance(x.item(), int)
    v = xla.device_put(np.arange(3.0, dtype=np.float32))
    assert v.tolist() == [0.0, 1.0, 2.0]
    assert [float(e) for e in v] == [0.0, 1.0, 2.0]
    assert len(v) == 3
    for convert, error in ((int, TypeError), (float, TypeError), (bool, ValueError), (hash, TypeError)):
        with pytest.raises(error):
            convert(v)
    with pytest.raises(TypeError, match="integer array of rank 0"):
        xla.device_put(np.float32(1)).__index__()
    with pytest.raises(TypeError, match="unsized"):
        len(x)
    with pytest.raises(TypeError, match="0-d"):
        iter(x)
    with pytest.raises(TypeError, match="immutable"):
        v[0] = 1
    with pytest.raises(ValueError, match="empty"):
        bool(xla.device_put(np.zeros(0, np.float32)))


def test_deletion():
    x = xla.device_put(np.ones(4, np.float32))
    assert not x.is_deleted()
    x.delete()
    assert x.is_deleted()
    assert x.shape == (4,)
    for use in (np.asarray, repr, copy.copy, lambda a: a.addressable_shards, xla.device_put):
        with pytest.raises(RuntimeError, match=r"type float32\[4\] is used after it was deleted"):
            use(x)
    with pytest.raises(RuntimeError, match="after it was deleted"):
        x.addressable_data(0)


def test_the_format_of_a_deleted_array_has_no_layout():  # reading it ended the process
    x = xla.device_put(np.ones((2, 2), np.float32))
    where, committed = x.format, xla.device_put(x, xla.devices()[0])
    x.delete()
    committed.delete()
    assert where.layout is not None and x.format == Format(None, where.sharding)
    with pytest.raises(RuntimeError, match="after it was deleted"):
        xla.jit(lambda x: x, in_shardings=where)(committed)


def test_device_put_and_get_of_trees():
    device = xla.devices()[0]
    tree = {"a": np.ones(2), "b": [1, None, 2.5], "c": xla.device_put(np.int8(3))}
    placed = xla.device_put(tree, device)
    assert placed["a"].dtype == np.float32
    assert placed["b"][0].dtype == np.int32
    assert placed["b"][1] is None
    assert placed["c"].committed
    assert placed["b"][2].devices() == {device}
    host = xla.device_get(placed)
    assert type(host["a"]) is np.ndarray
    assert float(host["b"][2]) == 2.5
    x = xla.device_put(np.ones(3))
    assert xla.device_put(x) is x
    y = xla.device_put(x, may_alias=False)
    assert y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    with pytest.raises(ValueError, match="expected a device, a sharding or a PartitionSpec, got"):
        xla.device_put(x, "cpu")
    with pytest.raises(TypeError):
        xla.device_put(object())
    assert xla.block_until_ready({"x": x, "n": 1})["x"] is x


def test_values_do_not_change_by_placement_inside_traced_functions():
    from bedrax import lax
    from bedrax.autodiff import grad
    from bedrax.batching import vmap
    from bedrax.parallel import PartitionSpec

    device = xla.devices()[0]

    def f(x):
        return lax.sin(xla.device_put(x, device))

    x = np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(np.asarray(xla.jit(f)(x)), np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(vmap(f)(x)), np.sin(x), rtol=1e-6)
    np.testing.assert_allclose(float(grad(f)(np.float32(1))), np.cos(1), rtol=1e-6)
    where = xla.NamedSharding(xla.make_mesh((1,), ("x",)), PartitionSpec("x"))
    constrained = xla.jit(lambda x: xla.with_sharding_constraint({"a": lax.sin(x)}, where))
    np.testing.assert_allclose(np.asarray(constrained(x)["a"]), np.sin(x), rtol=1e-6)
    batched = vmap(lambda x: xla.with_sharding_constraint(x, where), in_axes=1, out_axes=1)(np.ones((3, 2), np.float32))
    assert batched.shape == (3, 2)


def test_source_memory_is_not_shared_with_later_writes():
    source = np.zeros(1000, np.float32)
    a = xla.device_put(source, may_alias=False)
    source[:] = 1
    np.testing.assert_array_equal(np.asarray(a), np.zeros(1000))


def test_memory_of_a_subclass_of_numpys_arrays_is_not_shared_either(tmp_path):
    source = np.memmap(tmp_path / "numbers", np.float32, "w+", shape=(1024,))
    a = xla.device_put(source, may_alias=False)
    source[:] = 1
    np.testing.assert_array_equal(np.asarray(a), np.zeros(1024))


def test_dtypes_of_64_bits_are_narrowed_where_arrays_are_made_of_parts():
    where = xla.NamedSharding(xla.make_mesh((1,), ("x",)), PartitionSpec("x"))
    with pytest.warns(UserWarning, match="float64"):
        x = xla.make_array_from_callback((4,), where, lambda index: np.arange(4.0)[index], dtype=np.float64)
    assert x.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(x), np.arange(4))
    part = xla.device_put(np.ones(4, np.float32), xla.devices()[0])
    with pytest.warns(UserWarning, match="float64"):
        x = xla.make_array_from_single_device_arrays((4,), where, [part], dtype=np.float64)
    assert x.dtype == np.float32


def test_dlpack():
    x = xla.device_put(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert x.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(np.from_dlpack(x), np.arange(6).reshape(2, 3))
    y = xla.from_dlpack(np.arange(5, dtype=np.int32))
    np.testing.assert_array_equal(np.asarray(y), np.arange(5))
    assert y.is_fully_replicated
    np.testing.assert_array_equal(
        np.asarray(xla.from_dlpack(np.arange(12.0, dtype=np.float32).reshape(3, 4).T)), np.arange(12).reshape(3, 4).T
    )
    with pytest.raises(TypeError, match="__dlpack__"):
        xla.from_dlpack([1, 2])
    for name, supported in (("bfloat16", True), ("complex64", True), ("float8_e5m2", False), ("float8_e4m3fn", False)):
        assert dlpack.is_supported_dtype(dtypes.as_dtype(name)) is supported


def test_the_device_of_an_array_over_a_mesh_of_one_device():
    device = xla.devices()[0]
    one = xla.NamedSharding(Mesh(np.array([device]), ("x",)), PartitionSpec("x"))
    assert xla.device_put(np.ones(2, np.float32), one).device == device


@pytest.mark.parametrize("kind", [Array, type(xla.device_put(0)), Tracer])
def test_a_mock_stands_for_its_class(kind):
    assert isinstance(mock.Mock(spec=kind), kind) and isinstance(mock.Mock(spec=kind), Array)
    assert not isinstance(mock.Mock(), Array) and not isinstance(mock.Mock(spec=dict), Array)


def test_shards_of_one_device():
    x = xla.device_put(np.ones((2, 3), np.float32))
    (shard,) = x.addressable_shards
    assert shard.device == x.device
    assert shard.index == (slice(None), slice(None))
    assert shard.replica_id == 0
    assert x.is_fully_addressable
    assert x.is_fully_replicated
    assert x.sharding.shard_shape(x.shape) == (2, 3)
    np.testing.assert_array_equal(np.asarray(x.addressable_data(0)), np.ones((2, 3)))


def test_backends():
    assert xla.device_count() == len(xla.devices())
    assert xla.local_device_count() == len(xla.local_devices())
    assert (xla.process_index(), xla.process_count(), xla.process_indices()) == (0, 1, [0])
    assert xla.devices("cpu")[0].platform == "cpu"
    with pytest.raises(RuntimeError, match="Unknown backend 'nonsense'"):
        xla.devices("nonsense")


def test_importing_makes_no_client_and_no_package_jax():
    import subprocess
    import sys

    program = PROGRAMS / "import_makes_no_client.py"
    subprocess.run([sys.executable, program], check=True, timeout=60)


def test_results_of_programs_on_a_mesh_of_one_device_come_to_the_host():
    from bedrax import lax
    from bedrax.parallel import PartitionSpec

    where = xla.NamedSharding(xla.make_mesh((1,), ("i",)), PartitionSpec("i"))
    x = xla.device_put(np.arange(4, dtype=np.float32), where)
    made = xla.jit(lambda x: lax.add(x, x))(x)
    np.testing.assert_array_equal(xla.device_get(made), [0, 2, 4, 6])
    (shard,) = made.addressable_shards
    assert shard.device == xla.devices()[0] and shard.index == (slice(None),)
    np.testing.assert_array_equal(np.asarray(shard.data), [0, 2, 4, 6])


def test_from_dlpack_narrows_64_bits_without_x64():
    assert xla.from_dlpack(np.arange(2.0)).dtype == np.float32
    with pytest.raises(ValueError, match="needs a copy"):
        xla.from_dlpack(np.arange(2.0), copy=False)


def test_a_type_may_stand_for_an_array_that_a_jitted_function_does_not_read():
    """NetKet passes the types of its parameters to such functions."""
    given = ShapeDtypeStruct((3,), np.float32)
    unused, used = xla.jit(lambda x, y: lax.neg(x)), xla.jit(lambda x, y: lax.add(x, y))
    x = np.ones(3, np.float32)
    assert unused(x, given).tolist() == xla.jit(lambda x: unused(x, given))(x).tolist() == [-1, -1, -1]
    assert lax.scan(lambda c, _: (unused(c, given), None), x, None, length=2)[0].tolist() == [1, 1, 1]
    for call in (lambda: used(x, given), lambda: xla.jit(lambda x: used(x, given))(x)):
        with pytest.raises(TypeError, match="has no value"):
            call()
