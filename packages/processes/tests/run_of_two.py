"""The program of each process in `test_runs.py`: ``run_of_two.py <what> <process_id> <num_processes> <port>``."""

import concurrent.futures
import os
import re
import sys
import time

import numpy as np

from bedrax import lax
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core import config, jitting
from bedrax.parallel import Mesh, pmap
from bedrax.parallel import PartitionSpec as P
from bedrax.processes import array_serialization, distributed, multihost, tree_io
from bedrax.processes.local_data import make_array_from_process_local_data
from bedrax.xla_backend import clients, flags
from bedrax.xla_backend.placement import device_put, make_array_from_callback
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


def mapped():
    """`pmap`: each process passes its part of the mapped axis, which spans the devices of all processes."""
    start()
    devices, whole = clients.devices(), np.arange(4.0 * count, dtype=np.float32)
    own = slice(4 * me, 4 * me + 4)
    x, total = whole[own], whole.sum()

    def check(y, expected):
        assert y.is_fully_addressable and y.shape == np.shape(expected), (y, expected)
        np.testing.assert_allclose(y, expected)

    add = lambda v: lax.psum(v, "i")
    check(pmap(add, "i")(x), np.full(4, total))
    check(pmap(lambda v: lax.mul(lax.psum(1, "i"), lax.axis_index("i")), "i")(x), 4 * count * np.arange(4 * count)[own])
    check(pmap(lambda v: lax.all_gather(v, "i"), "i")(x), np.tile(whole, (4, 1)))
    around = [(i, (i + 1) % (4 * count)) for i in range(4 * count)]
    check(pmap(lambda v: lax.ppermute(v, "i", around), "i")(x), np.roll(whole, 1)[own])
    y = pmap(lambda v: lax.mul(v, v))(x)
    check(pmap(add, "i")(y), np.full(4, (whole**2).sum()))
    assert y.sharding.device_set == set(clients.local_devices())

    # Arguments and results that are not mapped, other axes, trees, keywords, static and donated arguments.
    check(pmap(add, "i", out_axes=None)(x), total)
    check(pmap(lambda v, w: lax.add(v, w), in_axes=(0, None))(x, np.float32(100 * me)), x + 100 * me)
    columns = np.stack([whole, 10 * whole])
    across = pmap(lambda v: lax.add(v, add(v)), "i", in_axes=1, out_axes=1)
    check(across(columns[:, own]), (columns + columns.sum(1, keepdims=True))[:, own])
    out = pmap(lambda a, *, b: {"a": add(a["x"]), "b": b}, "i", out_axes={"a": None, "b": 0})({"x": x}, b=y)
    check(out["a"], total), check(out["b"], x * x)
    check(pmap(lambda k, v: lax.mul(add(v), float(k)), "i", static_broadcasted_argnums=0)(3, x), np.full(4, 3 * total))
    everywhere = make_array_from_callback(
        (2,), NamedSharding(Mesh(np.array(devices), ("x",)), P()), lambda _: whole[:2]
    )
    check(pmap(lambda v, w: lax.add(v, lax.reduce_sum(w, (0,))), in_axes=(0, None))(x, everywhere), x + 1)
    numbers = pmap(lambda w: lax.add(w, lax.axis_index("i")), "i", in_axes=None, axis_size=4 * count)(np.int32(7))
    check(numbers, 7 + np.arange(4 * count)[own])
    last = pmap(lambda k, v, w: lax.add(v, w), donate_argnums=-1, static_broadcasted_argnums=0)
    kept, gone = (pmap(lambda v: v)(x) for _ in range(2))
    check(last(3, kept, gone), 2 * x)
    assert gone.is_deleted() and not kept.is_deleted()

    # Nested, and under the other transformations.
    both = pmap(lambda r: pmap(lambda v: lax.psum(v, ("i", "j")), "j")(r), "i")
    check(both(np.stack([x, x], 1)), np.full((4, 2), 2 * total))
    check(jitting.jit(lambda x: lax.add(pmap(add, "i")(x), x))(x), total + x)
    check(vmap(pmap(add, "i"))(np.stack([x, 2 * x])), np.full((2, 4), [[total], [2 * total]]))
    check(vmap(pmap(add, "i"), 1, 1)(np.stack([x, 2 * x], 1)), np.full((4, 2), [total, 2 * total]))
    square = pmap(lambda v: lax.mul(add(v), v), "i")  # its sum over all processes is the square of the total
    check(grad(lambda x: lax.reduce_sum(square(x), (0,)))(x), np.full(4, 2 * total))
    scale = lambda w: lax.reduce_sum(pmap(lambda v: lax.mul(v, w))(x), (0,))
    check(grad(scale)(np.float32(2)), total)
    here = device_put(np.float32(3), clients.local_devices()[1])
    check(pmap(lambda v: lax.mul(v, here))(x), 3 * x)

    # Devices in another order, apart, some of each process, and of one process only.
    order = [devices[i] for i in range(4 * count - 1, -1, -1)]
    places = [i for i, d in enumerate(order) if d.process_index == me]
    check(pmap(lambda v: lax.axis_index("i"), "i", devices=order)(x), places)
    apart = [clients.local_devices(process_index=i)[k] for k in (2, 0) for i in range(count)]
    rows = pmap(lambda v: lax.all_gather(v, "i"), "i", devices=apart)(x[:2])
    check(rows, np.broadcast_to(whole.reshape(count, 4)[:, :2].T.ravel(), rows.shape))
    assert pmap(lambda v: v, devices=apart)(x[:2]).sharding.device_set == {d for d in apart if d.process_index == me}
    check(pmap(add, "i", devices=clients.local_devices())(x), np.full(4, x.sum()))

    other = clients.local_devices(process_index=1 - me)
    cases = {
        "8 devices of 2 processes. This process has 4 of these devices.* has size 3": lambda: pmap(add, "i")(x[:3]),
        "This process has 4 of these devices.* has size 8": lambda: pmap(add, "i")(whole),
        "axis_size=4, but the axis spans 8 devices of 2 processes": lambda: pmap(add, "i", axis_size=4)(x),
        "maps no argument": lambda: pmap(add, "i", in_axes=None)(x),
        "none of them is of this process": lambda: pmap(add, "i", devices=other)(x),
        "outside of scan": lambda: pmap(add, "i").lower(x),
        "several processes was given where": lambda: pmap(lambda v, w: v, in_axes=(0, None))(x, spread),
        "leave in_shardings": lambda: jitting.jit(pmap(add, "i"), device=clients.local_devices()[0])(x),
    }
    spread = make_array_from_callback(
        whole.shape, NamedSharding(Mesh(np.array(devices), ("x",)), P("x")), lambda i: whole[i]
    )
    for message, call in cases.items():
        try:
            call()
        except (ValueError, NotImplementedError) as error:
            assert re.search(message, str(error)), error
        else:
            raise AssertionError(f"no error: {message}")
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
    """Process 1 ends without a message, while process 0 runs no collective."""
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
    """The second manager's write is complete in process 0 only. The barriers of two managers are different."""
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
    """Process 1 never starts."""
    if me == 0:
        start(initialization_timeout=4)


def wrong():
    """Both processes have the number 0."""
    time.sleep(2 * me)
    distributed.initialize(f"localhost:{port}", count, 0, initialization_timeout=6, heartbeat_timeout_seconds=10)


def disagree():
    """Process 1 gives the number of processes as three."""
    distributed.initialize(f"localhost:{port}", count + me, me, initialization_timeout=20)


globals()[what]()
print(f"done {what} {me}\n", end="", flush=True)  # one write: the runtime writes there, too
