"""Arrays and pytrees kept by TensorStore, read back to other placements."""

import asyncio
import concurrent.futures
import contextlib
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorstore

from bedrax.parallel import Mesh, PartitionSpec
from bedrax.processes import array_serialization, tensorstore_io, tensorstore_specs, tree_io
from bedrax.xla_backend import NamedSharding, SingleDeviceSharding, clients, device_put
from bedrax.xla_backend.array import ArrayImpl

PROGRAMS = Path(__file__).with_name("programs")

VALUES = {
    "matrix": np.arange(24, dtype=np.float32).reshape(4, 6),
    "scalar": np.float32(2.5),
    "mask": np.array([True, False]),
    "whole": np.arange(3, dtype=np.int32),
    "empty": np.zeros((0, 3), np.float32),
    "complex": np.array([1 + 2j], np.complex64),
}


def one():
    return SingleDeviceSharding(clients.devices("cpu")[0])


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
@pytest.mark.parametrize("ocdbt", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_written_arrays_are_read_back(name, driver, ocdbt, tmp_path):
    x = device_put(VALUES[name])
    spec = tensorstore_io.get_tensorstore_spec(str(tmp_path / "x"), ocdbt=ocdbt, driver=driver)
    tensorstore_io.run_serialization([x], [spec])
    (out,) = tensorstore_io.run_deserialization([one()], [spec])
    assert isinstance(out, ArrayImpl) and out.dtype == x.dtype and out.sharding == one()
    np.testing.assert_array_equal(np.asarray(out), VALUES[name])


def test_another_shape_and_dtype(tmp_path):
    spec = tensorstore_io.get_tensorstore_spec(str(tmp_path / "x"))
    tensorstore_io.run_serialization([device_put(np.arange(6.0, dtype=np.float32).reshape(2, 3))], [spec])
    (out,) = tensorstore_io.run_deserialization([one()], [spec], [(3, 2)], [np.int32])
    np.testing.assert_array_equal(np.asarray(out), [[0, 1], [3, 4], [0, 0]])
    assert out.dtype == np.int32


def test_paths():
    spec = tensorstore_io.get_tensorstore_spec
    assert spec("/a/b")["kvstore"] == {"driver": "file", "path": "/a/b"}
    assert spec("gs://bucket/a/b")["kvstore"] == {"driver": "gcs", "bucket": "bucket", "path": "a/b"}
    assert spec("/a/b", ocdbt=True)["kvstore"] == {"driver": "ocdbt", "base": "file:///a", "path": "b"}
    assert spec("/a/b", ocdbt=True, process_idx=3)["kvstore"]["base"] == "file:///a/ocdbt.process_3"
    assert tensorstore_io.is_remote_storage(spec("s3://bucket/a")) and tensorstore_io.is_remote_storage("gs://x")
    assert tensorstore_io.is_remote_storage(spec("gs://b/a/c", ocdbt=True))
    assert not tensorstore_io.is_remote_storage(spec("/a/b"))
    with pytest.raises(ValueError, match="absolute"):
        spec("a/b")
    with pytest.raises(ValueError, match="gs:// and s3://"):
        spec("ftp://a/b")


def test_the_manager_works_in_the_background(tmp_path):
    manager = array_serialization.GlobalAsyncCheckpointManager()
    xs = [device_put(VALUES["matrix"]), device_put(VALUES["whole"])]
    paths = [str(tmp_path / n) for n in "ab"]
    done = []
    manager.serialize_with_paths(xs, paths, on_commit_callback=lambda: done.append(True))
    out = manager.deserialize_with_paths([one(), one()], paths)
    assert done == [True]
    for x, y in zip(xs, out, strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    manager.serialize_with_paths(xs[:1], paths[:1], on_commit_callback=lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        manager.wait_until_finished()


def test_a_tree_in_a_folder(tmp_path):
    tree = {"a": [device_put(VALUES["matrix"]), (device_put(VALUES["whole"]),)], "b": None, "c": 2.0}
    folder = tmp_path / "tree"
    tree_io.save(tree, folder)
    like = tree_io.load_pytreedef(folder)
    assert like["a"][0].shape == (4, 6) and like["c"].shape == () and like["b"] is None
    out = tree_io.load(folder, one())
    np.testing.assert_array_equal(np.asarray(out["a"][0]), VALUES["matrix"])
    assert type(out["a"][1]) is tuple and float(out["c"]) == 2.0
    assert tree_io.load(folder, one(), mask={"a": [True, False], "b": None, "c": False})["c"] is None
    with pytest.raises(FileExistsError, match="overwrite"):
        tree_io.save(tree, folder, overwrite=False)
    with pytest.raises(TypeError, match=r"data\['a'\]"):
        tree_io.save({"a": "text"}, folder)


def test_reads_wait_for_each_other():
    limiter = tensorstore_io._LimitInFlightBytes(10)

    async def use():
        most = now = 0

        async def one(n):
            nonlocal most, now
            await limiter.wait_for_bytes(n)
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1
            await limiter.release_bytes(n)

        await asyncio.gather(*[one(n) for n in (6, 6, 40, 1)])
        return most

    assert asyncio.run(use()) <= 2 and limiter.free == 10


SPREAD = PROGRAMS / "spread_checkpoint.py"


def test_an_array_is_loaded_with_another_sharding(tmp_path):
    subprocess.run([sys.executable, SPREAD, str(tmp_path / "spread")], check=True)
    mesh = Mesh(np.array(clients.devices("cpu")[:1]), ("x",))
    (out,) = tree_io.load(tmp_path / "spread", NamedSharding(mesh, PartitionSpec("x")))
    np.testing.assert_array_equal(np.asarray(out), np.arange(64.0).reshape(8, 8))


def test_specifications_are_known_and_merged():
    is_spec = tensorstore_specs.is_tensorstore_spec_leaf
    assert is_spec(None) and is_spec({"driver": "zarr"}) and is_spec({"kvstore": {}})
    assert not is_spec({}) and not is_spec({"a": 1}) and not is_spec(3)
    below = {"a": {"b": 1}, "c": 2}
    merged = tensorstore_specs.merge_nested_ts_specs(below, {"a": {"d": 3}, "c": {"e": 4}})
    assert merged == {"a": {"b": 1, "d": 3}, "c": {"e": 4}} and below == {"a": {"b": 1}, "c": 2}
    assert tensorstore_specs.merge_nested_ts_specs(below, None) == below


@pytest.mark.parametrize("ocdbt", [False, True])
@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_specifications_are_compared_with_arrays(ocdbt, driver, tmp_path):
    x, path = np.ones((2, 3), np.float32), str(tmp_path / "x")
    spec = tensorstore_io.get_tensorstore_spec(path, ocdbt=ocdbt, arr=x, driver=driver)
    verify = tensorstore_specs.verify_tensorstore_spec
    verify(spec, x, path, ocdbt)
    verify(spec, None, path, ocdbt, check_metadata=False)
    wrong = [
        ((spec, x, path + "y", ocdbt), "not for the path"),
        ((spec, x, path, not ocdbt), "the store is"),
        ((spec, x[0], path, ocdbt), "the array is"),
        ((spec, x.astype(np.int32), path, ocdbt), "the array is int32"),
        ((spec, None, path, ocdbt), "needs an array"),
    ]
    for args, message in wrong:
        with pytest.raises(ValueError, match=message):
            verify(*args)


def test_the_memory_of_a_read_is_that_of_its_chunks():
    store = {"driver": "memory"}
    metadata = {"chunks": [4, 4], "shape": [10, 10], "dtype": "<f4"}
    kept = tensorstore.open({"driver": "zarr", "kvstore": store, "metadata": metadata, "create": True}).result()
    for index in (np.s_[:, :], np.s_[0:2, 0:2], np.s_[3:5, 3:5], np.s_[0:0, 0:2], np.s_[8:, 4:8]):
        rows, columns = ({n // 4 for n in range(10)[s]} for s in index)
        expected = len(rows) * len(columns) * 16 * 4
        assert tensorstore_specs.estimate_read_memory_footprint(kept, kept[index].domain) == expected


def test_databases_become_one(tmp_path):
    stores = [{"driver": "ocdbt", "base": f"file://{tmp_path}/{name}"} for name in ("all", "all/one", "other")]
    for i, spec in enumerate(stores[1:]):
        tensorstore.KvStore.open(spec).result().write(f"key{i}", b"value%d" % i).result()
    asyncio.run(tensorstore_specs.combine_kvstores(stores[0], stores[1:], tensorstore_specs.TS_CONTEXT))
    whole = tensorstore.KvStore.open(stores[0]).result()
    assert [whole.read(key).result().value for key in whole.list().result()] == [b"value0", b"value1"]
    assert tensorstore_specs.Transaction is tensorstore.Transaction and tensorstore_specs.Future is tensorstore.Future


def test_databases_are_copied_one_at_a_time(monkeypatch):
    """TensorStore loses values of two concurrent copies into one transaction: b"" in about one of 4,000 runs."""
    running, most = 0, []

    async def copied(source, target, copy=tensorstore_specs._copied):
        nonlocal running
        running += 1
        most.append(running)
        await copy(source, target)
        running -= 1

    monkeypatch.setattr(tensorstore_specs, "_copied", copied)
    stores = [{"driver": "memory", "path": f"{name}/"} for name in "abcd"]
    asyncio.run(tensorstore_specs.combine_kvstores(stores[0], stores[1:]))
    assert most == [1, 1, 1]


def test_values_are_copied_before_a_save_in_the_background_returns(tmp_path):
    memory = np.zeros(1 << 20, np.float32)
    start = -memory.ctypes.data % 64 // 4
    numbers = memory[start : start + 1_000_000]  # aligned memory, which XLA uses without a copy
    array = device_put(np.ones(1_000_000, np.float32))
    saved = tree_io.nonblocking_save({"numbers": numbers, "array": array}, tmp_path)
    numbers[:] = 7
    array.delete()
    saved.result()
    found = tree_io.load(tmp_path, one())
    assert not np.asarray(found["numbers"]).any()
    assert np.asarray(found["array"]).all()


def test_a_callback_of_a_future_saves_again(tmp_path):
    again = []
    first = tree_io.nonblocking_save({"x": np.ones(3, np.float32)}, tmp_path / "first")
    done = threading.Event()

    def save_again(_):
        again.append(tree_io.nonblocking_save({"x": np.ones(4, np.float32)}, tmp_path / "second"))
        done.set()

    first.add_done_callback(save_again)
    assert done.wait(60)
    again[0].result()
    assert tree_io.load(tmp_path / "second", one())["x"].shape == (4,)


def test_each_array_needs_a_specification(tmp_path):
    x, spec = device_put(VALUES["whole"]), tensorstore_io.get_tensorstore_spec(tmp_path / "x")
    with pytest.raises(ValueError, match="got 2 arrays and 1 specifications"):
        tensorstore_io.run_serialization([x, x], [spec])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "specs", "error", "message"),
    [
        ({"x": VALUES["whole"]}, {"x": None, "y": None}, ValueError, "2 specifications for 1 arrays"),
        ({"x": VALUES["whole"]}, {"x": {"recheck_cached_data": False}}, ValueError, "the leaf False"),
        ({"x": VALUES["whole"]}, {"x": {"driver": "none_of_them"}}, ValueError, "none_of_them"),
        ({"x": 1 << 40}, None, OverflowError, "int32"),
    ],
)
def test_an_argument_that_cannot_be_saved_keeps_the_last_save(data, specs, error, message, tmp_path):
    tree_io.save({"x": VALUES["matrix"]}, tmp_path)
    with pytest.raises(error, match=message):
        tree_io.save(data, tmp_path, ts_specs=specs)
    np.testing.assert_array_equal(np.asarray(tree_io.load(tmp_path, one())["x"]), VALUES["matrix"])


def test_keys_are_not_saved(tmp_path):
    random = pytest.importorskip("bedrax.random")  # above this package
    tree_io.save({"x": VALUES["matrix"]}, tmp_path)
    with pytest.raises(TypeError, match=r"data\['x'\] has the dtype key<fry>.*key_data"):
        tree_io.save({"x": random.key(0)}, tmp_path)
    np.testing.assert_array_equal(np.asarray(tree_io.load(tmp_path, one())["x"]), VALUES["matrix"])


def test_further_entries_of_a_specification_may_be_a_store_alone(tmp_path):
    store = {"x": {"kvstore": {"driver": "file", "path": str(tmp_path / "elsewhere")}}}
    tree_io.save({"x": VALUES["matrix"]}, tmp_path / "tree", ts_specs=store)
    assert (tmp_path / "elsewhere").is_dir()
    found = tree_io.load(tmp_path / "tree", one(), ts_specs=store)
    np.testing.assert_array_equal(np.asarray(found["x"]), VALUES["matrix"])


def test_a_callback_of_a_future_loads(tmp_path):
    found = []
    saved = tree_io.nonblocking_save({"x": np.ones(3, np.float32)}, tmp_path)
    done = threading.Event()

    def load(_):
        with contextlib.suppress(concurrent.futures.TimeoutError):
            found.append(tree_io.nonblocking_load(tmp_path, one()).result(timeout=10))
        done.set()

    saved.add_done_callback(load)
    assert done.wait(60)
    assert found[0]["x"].shape == (3,)


def test_a_failed_read_lets_the_next_one_begin(tmp_path):
    spec = tensorstore_io.get_tensorstore_spec(tmp_path / "x")
    tensorstore_io.run_serialization([device_put(VALUES["matrix"])], [spec])
    (chunk,) = (p for p in (tmp_path / "x").iterdir() if not p.name.startswith("."))
    chunk.write_bytes(b"not a chunk")
    limiter = tensorstore_io._LimitInFlightBytes(VALUES["matrix"].nbytes)

    async def twice():
        for _ in range(2):
            with pytest.raises(ValueError, match="Error reading"):
                await asyncio.wait_for(tensorstore_io.async_deserialize(one(), spec, byte_limiter=limiter), 10)

    asyncio.run(twice())
    assert limiter.free == limiter.limit
