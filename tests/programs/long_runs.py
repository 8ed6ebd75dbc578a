"""Long runs of programs over many devices. No loop reads a result before its end.

    python tests/programs/long_runs.py NAME [--devices=8] [--steps=3000]
    python tests/programs/long_runs.py NAME --address=localhost:PORT --process=0 --processes=2 ...

`--devices` counts the CPU devices of one process. A run prints one line of JSON: its name and its time in seconds. Every
run compares its last result with a result that is known without the loop.
"""

import argparse
import functools
import json
import os
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("name")
parser.add_argument("--devices", type=int, default=8)
parser.add_argument("--steps", type=int, default=3000)
parser.add_argument("--threads", type=int, default=6)
parser.add_argument("--address")
parser.add_argument("--process", type=int, default=0)
parser.add_argument("--processes", type=int, default=1)

RUNS = {}  # name -> run(steps)
ALONE = set()  # the runs that need all devices in one process


def run(fun=None, *, alone=False):
    """Register a run under the name of its function."""
    if fun is None:
        return functools.partial(run, alone=alone)
    RUNS[fun.__name__] = fun
    if alone:
        ALONE.add(fun.__name__)
    return fun


def mesh_of(devices):
    return jax.sharding.Mesh(np.array(devices), ("x",))


def spread(value, mesh=None, *spec):
    """A global array with `value`, split as in `spec` (by default along its first axis)."""
    where = NamedSharding(mesh or mesh_of(jax.devices()), P(*(spec or ("x",))))
    return jax.make_array_from_callback(np.shape(value), where, lambda index: value[index])


def check(x, expected):
    """Compare the part of `x` in this process with an array or a number."""
    expected = np.broadcast_to(expected, x.shape)
    for shard in x.addressable_shards:
        np.testing.assert_allclose(np.asarray(shard.data), expected[shard.index], rtol=1e-4)


def ones(per_device=4):
    return np.ones((per_device * jax.device_count(),), np.float32)


def in_threads(count, work):
    """Call ``work(0)``, ``work(1)``, ... in threads. The error of a thread is raised here."""
    errors = []

    def guarded(i):
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def mean_over(mesh):
    """A jitted step whose partial sums XLA adds over the devices: ``x - x + mean(x)``."""
    return jax.jit(lambda x: x - x + x.mean(), out_shardings=NamedSharding(mesh, P("x")))


# ---- one thread ----


@run
def jitted_mean(steps):
    mesh = mesh_of(jax.devices())
    step, x = mean_over(mesh), spread(ones())
    for _ in range(steps):
        x = step(x)
    check(x, 1)


@run
def results_that_are_dropped(steps):
    mesh = mesh_of(jax.devices())
    step, x = mean_over(mesh), spread(ones())
    for _ in range(steps):
        last = step(x)
    check(last, 1)


@run
def pmap_psum(steps):
    n = jax.local_device_count()
    step = jax.pmap(lambda x: x - x + jax.lax.psum(x, "i") / jax.device_count(), axis_name="i")
    x = np.ones((n, 4), np.float32)
    for _ in range(steps):
        x = step(x)
    check(x, 1)


@run
def shard_map_psum(steps):
    mesh = mesh_of(jax.devices())
    body = lambda x: x - x + jax.lax.psum(x, "x") / jax.device_count()
    step, x = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))), spread(ones())
    for _ in range(steps):
        x = step(x)
    check(x, 1)


@run
def shard_map_ring(steps):
    """Each step passes the parts to the next device, gathers all, and keeps its own."""
    n, mesh = jax.device_count(), mesh_of(jax.devices())

    def body(x):
        x = jax.lax.ppermute(x, "x", [(i, (i + 1) % n) for i in range(n)])
        everything = jax.lax.all_gather(x, "x", tiled=True)
        return jax.lax.dynamic_slice_in_dim(everything, jax.lax.axis_index("x") * x.shape[0], x.shape[0])

    step = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
    start = np.arange(n, dtype=np.float32)
    x = spread(start)
    for _ in range(steps):
        x = step(x)
    check(x, np.roll(start, steps))


@run
def data_parallel_gradient(steps):
    mesh = mesh_of(jax.devices())
    batch, w = spread(np.ones((2 * jax.device_count(), 3), np.float32)), spread(np.zeros(3, np.float32), mesh, None)
    loss = lambda w, x: ((x @ w - 3) ** 2).mean()
    step = jax.jit(lambda w, x: w - 0.05 * jax.grad(loss)(w, x))
    for _ in range(steps):
        w = step(w, batch)
    check(w, 1)


@run
def scan_of_micro_batches(steps):
    mesh = mesh_of(jax.devices())
    batches = spread(np.ones((4, 2 * jax.device_count(), 3), np.float32), mesh, None, "x")
    w = spread(np.zeros(3, np.float32), mesh, None)
    loss = lambda w, x: ((x @ w - 3) ** 2).mean()

    @jax.jit
    def step(w, batches):
        total, _ = jax.lax.scan(lambda total, x: (total + jax.grad(loss)(w, x), None), jnp.zeros_like(w), batches)
        return w - 0.01 * total

    for _ in range(steps):
        w = step(w, batches)
    check(w, 1)


@run
def while_loop_with_collectives(steps):
    """The predicate of the loop needs a sum over the devices."""
    mesh = mesh_of(jax.devices())

    @functools.partial(jax.jit, out_shardings=NamedSharding(mesh, P("x")))
    def step(x):
        return jax.lax.while_loop(lambda x: x.sum() < 3 * x.size, lambda x: x + 1, x) - 2

    x = spread(ones())
    for _ in range(steps):
        x = step(x)
    check(x, 1)


@run
def donated_arguments(steps):
    mesh = mesh_of(jax.devices())
    step = jax.jit(lambda x: x - x + x.mean(), donate_argnums=0, out_shardings=NamedSharding(mesh, P("x")))
    x = spread(ones())
    for _ in range(steps):
        x = step(x)
    check(x, 1)


@run
def eager_sums(steps):
    x = spread(ones())
    for _ in range(steps):
        total = x.sum()
    check(total, 4 * jax.device_count())


@run
def eager_arithmetic(steps):
    """Programs over many devices without collectives."""
    x = spread(ones())
    for _ in range(steps):
        x = x * 0.5 + 0.5
    check(x, 1)


@run
def resharding(steps):
    mesh = mesh_of(jax.devices())
    split, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    gather, cut = jax.jit(lambda x: x + 1, out_shardings=whole), jax.jit(lambda x: x - 1, out_shardings=split)
    x = spread(ones())
    for _ in range(steps):
        x = cut(gather(x))
    check(x, 1)


@run(alone=True)
def copies_between_devices(steps):
    mesh, n = mesh_of(jax.devices()), jax.device_count()
    other = mesh_of(jax.devices()[::-1])
    step, x = mean_over(mesh), spread(ones())
    for _ in range(steps):
        x = step(x)
        x = jax.device_put(jax.device_put(x, NamedSharding(other, P("x"))), NamedSharding(mesh, P("x")))
    check(x, 1)
    assert len(x.sharding.device_set) == n


@run
def compiled_ahead_of_time(steps):
    mesh, x = mesh_of(jax.devices()), spread(ones())
    step = mean_over(mesh).lower(x).compile()
    for _ in range(steps):
        x = step(x)
    check(x, 1)


@run(alone=True)
def mixed_with_one_device(steps):
    """Programs over all devices, and programs on the last one."""
    mesh, last = mesh_of(jax.devices()), jax.devices()[-1]
    step, x = mean_over(mesh), spread(ones())
    alone, y = jax.jit(lambda y: y @ y / 64), jax.device_put(np.ones((64, 64), np.float32), last)
    for _ in range(steps):
        x, y = step(x), alone(y)
    check(x, 1)
    check(y, 1)


@run
def debug_callbacks(steps):
    mesh, seen = mesh_of(jax.devices()), []

    @functools.partial(jax.jit, out_shardings=NamedSharding(mesh, P("x")))
    def step(x):
        mean = x.mean()
        jax.debug.callback(lambda mean: seen.append(float(mean)), mean)
        return x - x + mean

    x = spread(ones())
    for _ in range(steps):
        x = step(x)
    check(x, 1)
    jax.effects_barrier()
    assert set(seen) <= {1.0}, set(seen)


@run(alone=True)
def io_callbacks(steps):
    mesh, seen = mesh_of(jax.devices()), []

    def note(x):
        seen.append(x.shape)
        return x

    body = lambda x: jax.lax.psum(io_callback(note, x, x), "x") / jax.device_count() + x - x
    step = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
    x = spread(ones())
    for _ in range(steps):
        x = step(x)
    check(x, 1)
    assert len(seen) == steps * jax.device_count(), len(seen)


@run
def pure_callbacks(steps):
    mesh = mesh_of(jax.devices())
    body = lambda x: jax.lax.psum(jax.pure_callback(lambda x: x, x, x), "x") / jax.device_count() + x - x
    step = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
    x = spread(ones())
    for _ in range(steps):
        x = step(x)
    check(x, 1)


# ---- several threads in one process ----


@run(alone=True)
def threads_with_collectives(steps):
    mesh = mesh_of(jax.devices())
    step = mean_over(mesh)

    def work(i):
        x = spread(ones() * (i + 1))
        for _ in range(steps):
            x = step(x)
        check(x, i + 1)

    in_threads(args.threads, work)


@run(alone=True)
def threads_on_overlapping_meshes(steps):
    """Two threads. The last devices of the first mesh are the first ones of the second mesh, in another order."""
    devices, n = jax.devices(), jax.device_count()
    meshes = mesh_of(devices[: 3 * n // 4]), mesh_of(devices[: n // 4 - 1 : -1])

    def work(i):
        step, x = mean_over(meshes[i]), spread(np.ones(3 * n // 4 * 4, np.float32), meshes[i])
        for _ in range(steps):
            x = step(x)
        check(x, 1)

    in_threads(2, work)


@run(alone=True)
def threads_on_separate_meshes(steps):
    devices, n = jax.devices(), jax.device_count()
    meshes = mesh_of(devices[: n // 2]), mesh_of(devices[n // 2 :])

    def work(i):
        step, x = mean_over(meshes[i]), spread(np.ones(n // 2 * 4, np.float32), meshes[i])
        for _ in range(steps):
            x = step(x)
        check(x, 1)

    in_threads(2, work)


@run(alone=True)
def threads_with_everything(steps):
    """Collectives, eager operations, callbacks, compiled calls, and one device, each in a thread."""
    mesh, last = mesh_of(jax.devices()), jax.devices()[-1]
    step = mean_over(mesh)
    body = lambda x: jax.lax.psum(jax.pure_callback(lambda x: x, x, x), "x") / jax.device_count() + x - x
    calling = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
    ready = step.lower(spread(ones())).compile()
    steps_of = [step, calling, ready, lambda x: x * 0.5 + 0.5, lambda x: x - x + x.mean(), jax.jit(lambda x: x * 1)]

    def work(i):
        step = steps_of[i % len(steps_of)]
        x = jax.device_put(ones(), last) if i % len(steps_of) == 5 else spread(ones())
        for _ in range(steps):
            x = step(x)
        check(x, 1)

    in_threads(args.threads, work)


def main():
    options = {}
    if args.address:
        options = dict(coordinator_address=args.address, num_processes=args.processes, process_id=args.process)
        jax.distributed.initialize(**options)
    assert jax.local_device_count() == args.devices, jax.devices()
    start = time.perf_counter()
    RUNS[args.name](args.steps)
    print(json.dumps({"name": args.name, "seconds": round(time.perf_counter() - start, 2)}), flush=True)


if __name__ == "__main__":
    args = parser.parse_args()
    flags = f"--xla_force_host_platform_device_count={args.devices}"
    os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), flags]).strip()
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import io_callback
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    main()
