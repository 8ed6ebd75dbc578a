"""Two compiled programs in one process: does a row of the benchmark differ because the programs differ?

    python -m benchmarks.paired 'compiled/tanh, forward, large' 'compiled models/mlp, gradient' ...

The environments `ours` and `upstream` (see environments.py) each export the function of the case. A process of `ours` calls both
programs in turn, so that both have the same allocator and the same placement of memory. It prints the ratio of the smallest CPU
times, the median of PROCESSES such processes, and whether XLA made the same program from both inputs, but for names.
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROCESSES, ROUNDS, SECONDS = 3, 20, 0.02


def function_of(name: str):
    """The function and the arguments of a case of the groups `compiled` and `compiled models`."""
    from benchmarks import compiled

    group, _, rest = name.partition("/")
    what, kind, *size = [part.strip() for part in rest.rsplit(",", 1 if group == "compiled models" else 2)]
    make, args = compiled.model(what, kind) if group == "compiled models" else compiled.operation(what, size[0], kind)
    return make(), args


def save(name: str, path: str) -> None:
    """Write the exported program of a case."""
    import jax

    f, args = function_of(name)
    Path(path).write_bytes(jax.export.export(jax.jit(f))(*args).serialize())


def body_of(compiled) -> str:
    """An optimized program without its names and source locations."""
    text = re.sub(r",? (metadata|frontend_attributes)=\{[^{}]*\}", "", compiled.as_text())
    lines = [line for line in text.splitlines() if " = " in line or line.endswith("{")]
    names: dict[str, str] = {}
    rename = lambda found: names.setdefault(found[0], f"%{len(names)}")
    found = re.sub(r"%[\w.-]+", rename, "\n".join(line for line in lines if not line.startswith("HloModule")))
    return re.sub(r"\b[\w.]+(?=: \w+\[)", "", found)  # parameters in the head of a computation


def compare(name: str, *paths: str) -> dict:
    """Call two exported programs in turn."""
    import time

    import jax

    _, args = function_of(name)
    functions = [jax.jit(jax.export.deserialize(bytearray(Path(path).read_bytes())).call) for path in paths]
    programs = [body_of(f.lower(*args).compile()) for f in functions]
    for f in functions:
        jax.block_until_ready(f(*args))
    began = time.process_time()
    jax.block_until_ready(functions[0](*args))
    calls = max(1, int(SECONDS / max(time.process_time() - began, 1e-6)))
    best = [float("inf")] * 2
    for turn in range(2 * ROUNDS):
        which = (turn + turn // 2) % 2
        began = time.process_time()
        for _ in range(calls):
            jax.block_until_ready(functions[which](*args))
        best[which] = min(best[which], (time.process_time() - began) / calls)
    return {"ratio": best[0] / best[1], "same": programs[0] == programs[1]}


def main() -> None:
    from benchmarks import environments

    here = [environments.HOME / name / "bin" / "python" for name in ("ours", "upstream")]
    ours, upstream = (environments.Environment(python.parts[-3], python) for python in here)

    def run(environment, *args):
        command = [environment.python, "-m", "benchmarks.paired", *args]
        found = subprocess.run(command, env=environment.variables, capture_output=True, text=True, check=False)
        if found.returncode:
            raise RuntimeError(found.stderr.strip().splitlines()[-1])
        return found.stdout

    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            paths = [str(Path(folder, environment.name)) for environment in (ours, upstream)]
            try:
                for environment, path in zip((ours, upstream), paths, strict=True):
                    run(environment, "--save", name, path)
                found = [json.loads(run(ours, "--compare", name, *paths).splitlines()[-1]) for _ in range(PROCESSES)]
            except RuntimeError as error:
                print(f"{name}: {error}", flush=True)
                continue
        same = "the same program" if found[0]["same"] else "another program"
        print(f"{name}: {statistics.median(one['ratio'] for one in found):.2f}, {same}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--save"]:
        save(*sys.argv[2:])
    elif sys.argv[1:2] == ["--compare"]:
        print(json.dumps(compare(*sys.argv[2:])))
    else:
        main()
