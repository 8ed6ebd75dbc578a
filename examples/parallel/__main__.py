"""Train one language model in seven ways on many devices, and compare. `python -m examples.parallel --help`."""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = Path(__file__).parents[2]
DEVICES = 8
LIMIT = 2e-4  # of differences of the losses, relative to their size


def with_devices(count: int, *arguments: str) -> None:
    """Run this program again, with as many CPU devices."""
    environment = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"}
    command = [sys.executable, "-m", "examples.parallel", *arguments]
    code = subprocess.run(command, cwd=ROOT, env=environment).returncode
    if code:
        sys.exit(code)


def with_processes(count: int, *arguments: str) -> None:
    """Run this program in several processes, which share the devices. Only the first one's output is shown."""
    # A port below those of outgoing connections. No other process has this number, so no other program has this port.
    address = f"localhost:{20000 + os.getpid() % 12000}"
    environment = {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES // count}",
        "JAX_COORDINATOR_ADDRESS": address,
        "JAX_NUM_PROCESSES": str(count),
    }
    command = [sys.executable, "-m", "examples.parallel", *arguments]
    runs = [
        subprocess.Popen(
            command, cwd=ROOT, env={**environment, "JAX_PROCESS_ID": str(i)}, stdout=subprocess.DEVNULL if i else None
        )
        for i in range(count)
    ]
    codes = [run.wait() for run in runs]
    if any(codes):
        sys.exit(f"the processes ended with {codes}")


def compare(steps: int, out: Path) -> None:
    """Train in every way, and check that the curves agree."""
    import jax
    import numpy as np

    if "JAX_NUM_PROCESSES" in os.environ:
        jax.distributed.initialize()

    from . import data, report
    from .model import LanguageModel, Shape
    from .training import WAYS, make_mesh, train

    shape = Shape()
    params = LanguageModel(shape).init(jax.random.key(0), np.zeros((1, shape.length), np.int32))["params"]
    batches = data.batches(steps, 16, shape.length)
    curves, times = {}, {}
    for name, way in WAYS.items():
        losses, stamps = [], [time.perf_counter()]

        def after(value, losses=losses, stamps=stamps):
            losses.append(value)
            stamps.append(time.perf_counter())

        mesh = make_mesh(way, shape, len(jax.devices()))
        trained = train(way, shape, mesh, params, batches, after)
        curves[name] = losses
        spent = np.diff(stamps)
        times[name] = (float(spent[0]), float(np.median(spent[1:])))
        report.show_split(name, trained)
    report.table(curves, times)
    if jax.process_count() == 1:
        out.mkdir(parents=True, exist_ok=True)
        report.picture(curves, times, out / "curves.png")
    first, *others = curves.values()
    worst = max(float(np.max(np.abs(np.subtract(c, first)) / np.abs(first))) for c in others)
    print(f"largest relative difference of the losses: {worst:.1e}")
    if worst > LIMIT:
        sys.exit(f"the curves differ by more than {LIMIT}")
    if first[-1] > 0.9 * first[0]:
        sys.exit(f"nothing was learned: the loss went from {first[0]:.3f} to {first[-1]:.3f}")


def explain(out: Path) -> None:
    """Compile one step for all devices without running it, and print its exchanges."""
    import jax
    import numpy as np

    from bedrax.parallel import explain

    from .model import LanguageModel, Shape
    from .training import WAYS, abstract_arguments, make_mesh

    shape, count = Shape(width=512, heads=8, hidden=2048, layers=4, length=256), len(jax.devices())
    tokens = np.zeros((1, shape.length), np.int32)
    params = jax.eval_shape(lambda: LanguageModel(shape).init(jax.random.key(0), tokens)["params"])
    found = {}
    for name, way in WAYS.items():
        mesh = make_mesh(way, shape, count)
        step, arguments = abstract_arguments(way, shape, mesh, params, 2 * count)
        result = explain(step, *arguments, mesh=mesh)
        print(f"\n{name}, {count} devices\n{result}")
        (out / f"{re.sub(r'[^a-z_]+', '_', name).strip('_')}_{count}.svg").write_text(result.svg(), encoding="utf-8")
        found[name] = dict(
            exchanges=sum(c.count for c in result.collectives),
            sent=result.sent,
            seconds=result.seconds,
            kept=sum(result.memory.values()) - 2 * result.memory["shared"],
        )
    (out / f"explained_{count}.json").write_text(json.dumps(found, indent=1), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="examples.parallel", description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "out")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the eight devices")
    parser.add_argument(
        "--explain", type=int, nargs="*", metavar="DEVICES", help="compile for these numbers of devices, run nothing"
    )
    parser.add_argument("--here", choices=("compare", "explain"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here == "compare":
        return compare(options.steps, options.out)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.here == "explain":
        return explain(options.out)
    out = ("--out", str(options.out.resolve()))
    if options.processes > 1:
        return with_processes(options.processes, "--here", "compare", "--steps", str(options.steps), *out)
    if options.explain is None:
        return with_devices(DEVICES, "--here", "compare", "--steps", str(options.steps), *out)
    for count in options.explain or (8, 64, 512):
        with_devices(count, "--here", "explain", *out)


if __name__ == "__main__":
    main()
