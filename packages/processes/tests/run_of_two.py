"""The program of each process in `test_runs.py`: ``run_of_two.py <what> <process_id> <num_processes> <port>``."""

import concurrent.futures
import os
import sys
import time

import numpy as np

from bedrax import lax
from bedrax.core import config, jitting
from bedrax.parallel import Mesh
from bedrax.parallel import PartitionSpec as P
from bedrax.processes import array_serialization, distributed, multihost, tree_io
from bedrax.processes.local_data import make_array_from_process_local_data
from bedrax.xla_backend import clients, flags
from bedrax.xla_backend.placement import make_array_from_callback
from bedrax.xla_backend.sharding import NamedSharding

what, me, count, port = sys.argv[1], *map(int, sys.argv[2:5])


def start(**options):
    config.config.update("jax_num_cpu_devices", 4)
    options = {"initialization_timeout": 30, "heartbeat_timeout_seconds": 10, "shutdown_timeout_seconds": 30, **options}
    distributed.initialize(f"localhost:{port}", count, me, **options)


def certified():
    """With certificates of one authority: ``certified <id> <count> <port> <folder> <authority of process 1>``."""
    folder, other = sys.argv[5:7]
    authority = f"{folder}/{other if me else 'ca'}.pem"
    start(
        mtls_cert_file=f"{folder}/node.pem",
        mtls_key_file=f"{folder}/node.key",
        mtls_ca_file=authority,
        verify_secure_credentials=True,
    )
    x = jitting.jit(lambda x: lax.reduce_sum(x, (0,)))(np.arange(4.0, dtype=np.float32))
    assert (clients.process_count(), float(x)) == (count, 6.0)


def values():
    start()
    assert distributed.is_initialized()
    assert (clients.process_index(), clients.process_count()) == (me, count)
    assert (clients.device_count(), clients.local_device_count()) == (4 * count, 4)
    devices = np.array(clients.devices())
    mesh = Mesh(devices, ("x",))
    split = NamedSharding(mesh, P("x"))

    whole = np.arange(16.0, dtype=np.float32)
    x = make_array_from_callback((16,), split, lambda index: whole[index])
    assert not x.is_fully_addressable
    double = jitting.jit(lambda x: lax.add(x, x))(x)
    for shard in double.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), 2 * whole[shard.index])
    assert float(jitting.jit(lambda x: lax.reduce_sum(x, (0,)))(x)) == whole.sum()
    np.testing.assert_array_equal(multihost.process_allgather(double), 2 * whole)

    # The part of an array on one process: along a split dimension, and along another one.
    mine = np.full((8, 3), me, np.int32)
    y = make_array_from_process_local_data(split, mine)
    assert y.shape == (8 * count, 3)
    np.testing.assert_array_equal(multihost.process_allgather(y)[:, 0], np.repeat(np.arange(count), 8))
    square = Mesh(devices.reshape(count, 4), ("a", "b"))
    columns = make_array_from_process_local_data(NamedSharding(square, P(None, "b")), np.arange(8)[None], (1, 8))
    np.testing.assert_array_equal(multihost.process_allgather(columns), np.arange(8)[None])
    try:
        make_array_from_process_local_data(split, np.zeros(5), (16,))
    except ValueError as error:
        assert "5 elements" in str(error) and "16" in str(error)
    else:
        raise AssertionError("data that fits nothing was accepted")

    tree = {"id": np.float32(me), "v": np.array([-0.0, np.nan, me], np.float32)}
    first = multihost.broadcast_one_to_all(tree)
    assert first["id"] == 0 and np.signbit(first["v"][0]) and np.isnan(first["v"][1])
    last = multihost.broadcast_one_to_all(tree, is_source=me == count - 1)
    assert last["id"] == count - 1
    np.testing.assert_array_equal(multihost.process_allgather(tree)["id"], np.arange(count))
    assert multihost.process_allgather(tree["v"], tiled=True).shape == (3 * count,)
    multihost.assert_equal({"same": np.arange(3)})
    try:
        multihost.assert_equal({"a": me}, "numbers")
    except AssertionError as error:
        assert me != 0 and "numbers: the value['a'] of process 1" in str(error), error
    else:
        assert me == 0
    multihost.sync_global_devices("here")

    over = multihost.host_local_array_to_global_array({"w": np.arange(4.0) + 4 * me}, mesh, P("x"))["w"]
    np.testing.assert_array_equal(multihost.process_allgather(over), np.arange(4.0 * count))
    part = multihost.global_array_to_host_local_array(over, mesh, P("x"))
    np.testing.assert_array_equal(np.asarray(part), np.arange(4.0) + 4 * me)
    assert not multihost.reached_preemption_sync_point(0)
    with multihost.live_devices(clients.devices()) as live:
        assert len(live) == 4 * count
    multihost.sync_global_devices("end")


def one_thread():
    """With the guard on, other threads compute on devices of this process only."""
    start()
    split = NamedSharding(Mesh(np.array(clients.devices()), ("x",)), P("x"))
    x = make_array_from_callback((16,), split, lambda index: np.ones(16, np.float32)[index])
    f = jitting.jit(lambda x: lax.add(x, x))

    def elsewhere(x):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: f(x).block_until_ready()).result()

    elsewhere(x)
    with flags.thread_guard(True):
        f(x).block_until_ready()
        elsewhere(np.ones(3, np.float32))
        try:
            elsewhere(x)
        except Exception as error:
            assert "thread" in str(error), error
            print("refused:", error)
        else:
            raise AssertionError("another thread started a computation of all processes")
    elsewhere(x)
    multihost.sync_global_devices("end")


def train(steps=10**6):
    """Add until the other process dies; process 1 ends without a message at step 5."""
    start()
    mesh = Mesh(np.array(clients.devices()), ("x",))
    x = make_array_from_callback((16,), NamedSharding(mesh, P("x")), lambda index: np.ones(16, np.float32)[index])
    step = jitting.jit(lambda x: lax.mul(x, lax.reduce_sum(x, (0,))))
    for k in range(steps):
        x = step(x)
        x.block_until_ready()
        if me == 1 and k == 5:
            os._exit(17)
        time.sleep(0.02)


def wait():
    """Process 1 leaves without a word; process 0 waits in no collective."""
    start(heartbeat_timeout_seconds=6)
    multihost.sync_global_devices("here")
    if me == 1:
        os._exit(17)
    time.sleep(60)


def shapes():
    """Arrays of different shapes are compared: process 1 raises an error, and both continue."""
    start()
    for mine in (np.arange(3 + me), [np.arange(3)] * (1 + me), np.arange(3).astype(("int32", "float32")[me])):
        try:
            multihost.assert_equal({"a": mine}, "parts")
        except AssertionError as error:
            assert me == 1 and "parts: process 1 has other leaves, shapes or dtypes than process 0" in str(error), error
        else:
            assert me == 0
    multihost.sync_global_devices("all continue")


def exists():
    """Process 0 finds a folder that must not be overwritten: ``exists <id> <count> <port> <folder>``."""
    start()
    try:
        tree_io.save({"x": np.arange(3)}, sys.argv[5], overwrite=False)
    except OSError as error:
        print(f"refused: {error}\n", end="", flush=True)
    multihost.sync_global_devices("all continue")


def managers():
    """The second manager's write is complete in process 0 only. The first one's barrier is not its barrier."""
    start()
    first, second = (array_serialization.GlobalAsyncCheckpointManager(timeout_secs=5) for _ in range(2))
    calls = []
    manager = (first, second)[me]  # as if each process had written with another manager until now
    manager.serialize([], [], on_commit_callback=lambda: calls.append("committed"))
    try:
        manager.wait_until_finished()
    except array_serialization.BarrierTimeoutError:
        print(f"waited {me}\n", end="", flush=True)
    assert not calls


def leave():
    """Process 0 ends first. It has the coordination service, which process 1 still needs."""
    start()
    clients.devices()
    if me == 1:
        time.sleep(3)
        distributed.global_state.client.key_value_set("still", "here")


def fail():
    """An exception ends process 1."""
    start()
    multihost.sync_global_devices("here")
    if me == 1:
        raise ArithmeticError("the loss is NaN")
    multihost.sync_global_devices("there")


def late():
    """Process 1 never comes."""
    if me == 0:
        start(initialization_timeout=4)


def wrong():
    """All say that they are process 0."""
    time.sleep(2 * me)
    distributed.initialize(f"localhost:{port}", count, 0, initialization_timeout=6, heartbeat_timeout_seconds=10)


def disagree():
    """Process 1 believes that there are three."""
    distributed.initialize(f"localhost:{port}", count + me, me, initialization_timeout=20)


globals()[what]()
print(f"done {what} {me}\n", end="", flush=True)  # one write: the runtime writes there, too
