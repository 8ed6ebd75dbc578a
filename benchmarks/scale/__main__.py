"""Measure the curves of scale, and draw them. `python -m benchmarks.scale --help`."""

import argparse
import json
import re
import subprocess
from pathlib import Path

from benchmarks import environments
from benchmarks.scale.curves import CURVES, Curve
from benchmarks.scale.drawing import draw
from benchmarks.scale.page import write

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
TIMEOUT = 300.0  # seconds for one point


def point(curve: Curve, size: int, environment: environments.Environment) -> dict:
    """One measurement in a new process: seconds and megabytes, or the error."""
    flags = f"{environment.variables['XLA_FLAGS']} --xla_force_host_platform_device_count={curve.devices}"
    command = [environment.python, HERE / "point.py", curve.program, size, curve.warm, curve.collector]
    try:
        done = subprocess.run(
            list(map(str, command)),
            env={**environment.variables, "XLA_FLAGS": flags},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {TIMEOUT:.0f} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:300]}
    return json.loads(done.stdout.splitlines()[-1])


def measure(curve: Curve, compared: list[environments.Environment], rounds: int) -> dict[str, dict]:
    """By environment and size, the smallest time and the smallest memory of all rounds."""
    found: dict[str, dict] = {environment.name: {} for environment in compared}
    for turn in range(rounds):
        for size in curve.sizes:
            for environment in compared[:: -1 if turn % 2 else 1]:
                old, new = found[environment.name].get(str(size), {}), point(curve, size, environment)
                best = {key: min(value, old.get(key, value)) for key, value in new.items() if key != "error"}
                found[environment.name][str(size)] = best or old or new
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--only", default="", metavar="PATTERN", help="only curves whose names match (regex)")
    parser.add_argument("--rounds", type=int, default=2, help="turns of every environment (2)")
    parser.add_argument("--ours", type=Path, metavar="PYTHON", help="measure the sources with this interpreter")
    parser.add_argument("--upstream", type=Path, metavar="PYTHON", help="an existing interpreter with upstream jax")
    parser.add_argument("--draw", action="store_true", help="measure nothing: draw the results that are kept")
    args = parser.parse_args()

    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"versions": {}, "curves": {}}
    if not args.draw:
        make, given = environments.make, environments.Environment
        compared = [
            given("ours", args.ours, sources=True) if args.ours else make("ours"),
            given("upstream", args.upstream) if args.upstream else make("upstream"),
        ]
        results["versions"] = {environment.name: environment.versions() for environment in compared}
        for curve in CURVES:
            if re.search(args.only, curve.name):
                results["curves"][curve.name] = measure(curve, compared, args.rounds)
                print(curve.name, json.dumps(results["curves"][curve.name]), flush=True)
                RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    known = [curve for curve in CURVES if curve.name in results["curves"]]
    for curve in known:
        (HERE / curve.file).write_text(draw(curve, results["curves"][curve.name]), encoding="utf-8")
    write(HERE / "README.md", known, results)


if __name__ == "__main__":
    main()
