"""Long runs of programs over many devices. No loop reads a result before its end, so calls run ahead of the devices.

    python tests/programs/long_runs.py [NAME ...] [--devices=8,64] [--processes=1,2,3,4] [--steps=10000] [--timeout=3600]

Each run is a new process (or several), is ended after the time-out, and prints a line: name, devices, processes, steps,
seconds, "ok" or what went wrong. Without names, all runs. `--devices` counts the CPU devices of each process; more
processes than one have two each. Every run compares its last result with a value that is known without the loop.
The exit status is 1 if a run failed. It also runs with upstream's `jax`.
"""

import argparse
import functools
import itertools
import os
import socket
import subprocess
import sys
import threading
import time

numbers = lambda text: [int(number) for number in text.split(",")]
parser = argparse.ArgumentParser()
parser.add_argument("names", nargs="*")
parser.add_argument("--devices", type=numbers, default=[8])
parser.add_argument("--processes", type=numbers, default=[1])
parser.add_argument("--steps", type=int, default=3000)
parser.add_argument("--threads", type=int, default=6)
parser.add_argument("--timeout", type=float, default=600)
parser.add_argument("--address", help="given by this program to the processes that it starts")
parser.add_argument("--process", type=int, help="likewise")

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


def work():
    """One process of one run."""
    (name,), (devices,), (processes,) = args.names, args.devices, args.processes
    if processes > 1:
        jax.distributed.initialize(args.address, processes, args.process)
    assert jax.local_device_count() == devices, jax.devices()
    RUNS[name](args.steps)


def measured(name, devices, processes):
    """Run in new processes. Returns the seconds, and "ok" or what went wrong."""
    with socket.socket() as s:
        s.bind(("localhost", 0))
        address = f"localhost:{s.getsockname()[1]}"
    command = [
        sys.executable,
        __file__,
        name,
        f"--devices={devices}",
        f"--processes={processes}",
        f"--address={address}",
    ]
    command += [f"--steps={args.steps}", f"--threads={args.threads}"]
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}",
    }
    start = time.monotonic()
    started = [
        subprocess.Popen(
            [*command, f"--process={i}"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        for i in range(processes)
    ]
    outcome = "ok"
    try:
        for process in started:
            left = start + args.timeout - time.monotonic()
            _, errors = process.communicate(timeout=max(left, 0))
            if process.returncode and outcome == "ok":
                outcome = f"ended with {process.returncode}:\n{errors[-3000:]}"
    except subprocess.TimeoutExpired:
        outcome = f"has not ended after {args.timeout:g} s"
    finally:
        for process in started:
            process.kill()
            process.wait()
    return time.monotonic() - start, outcome


def main():
    if unknown := set(args.names) - {*RUNS}:
        parser.error(f"expected some of {', '.join(RUNS)}; got {', '.join(unknown)}")
    ways = [(count, 1) for count in args.devices if 1 in args.processes] + [(2, n) for n in args.processes if n > 1]
    failed = 0
    for name, (devices, processes) in itertools.product(args.names or RUNS, ways):
        if processes > 1 and name in ALONE:
            continue
        seconds, outcome = measured(name, devices, processes)
        failed += outcome != "ok"
        print(f"{name:30} {devices:3} {processes:2} {args.steps:6} {seconds:8.1f} {outcome}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    args = parser.parse_args()
    if args.process is None:
        main()
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import io_callback
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    work()
