"""Measure this repository on a GPU; the result is a part of docs/gpu.md.

    python3 tools/on_gpu.py [--device gpu] [--small] [--jobs 1] [--write] [section ...]

Sections: `records` (compiles and runs each record, compares it with NumPy, and lists the custom calls that ran),
`starts` (whole processes), `digits` (the training of the example), `calls` (the host's time for a call), `faq` (the
benchmark of the FAQ), `peak` (products, attention and convolutions against the peak of the card). Nothing is installed:
each section runs in a process with the sources first on its path, so a crash costs one section. The processes need
NumPy, SciPy, ml_dtypes, opt_einsum, platformdirs and jaxlib with its plugin; `digits` also needs flax, optax and scikit-learn. If the
Python that runs this file has upstream's `jax`, each section but `records` runs on it, too.
"""

import argparse
import collections
import importlib.metadata
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "gpu.md"
MARK = "<!-- what follows is written by tools/on_gpu.py -->\n"
SOURCES = [str(path) for path in sorted(ROOT.glob("packages/*/src"))]

# Dense operations per second by dtype, and bytes per second, from NVIDIA's data sheets (tf32 where XLA may use it).
PEAKS = {
    "H200": {"bf16": 989e12, "tf32": 494e12, "f32": 67e12, "f64": 67e12, "memory": 4.8e12},
    "H100": {"bf16": 989e12, "tf32": 494e12, "f32": 67e12, "f64": 67e12, "memory": 3.35e12},
    "A100": {"bf16": 312e12, "tf32": 156e12, "f32": 19.5e12, "f64": 19.5e12, "memory": 2.0e12},
    "L4": {"bf16": 121e12, "tf32": 60e12, "f32": 30e12, "f64": 0.5e12, "memory": 0.3e12},
}


def seconds_of(run, repeats=20):
    """The median time of `run`, after three calls that are not counted. `run` waits for its result."""
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def spelled(seconds):
    unit, size = next(((u, s) for u, s in (("s", 1), ("ms", 1e-3)) if seconds >= s), ("µs", 1e-6))
    return f"{seconds / size:.3g} {unit}"


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in lines) + "\n"


# Records whose results on a GPU differ from NumPy's on purpose, and the reason.
EXPECTED = {
    "markers-platform_index-of_three": "it returns the result of the branch for the platform",
    "reductions-reduce-init": "its initial value is not an identity, and XLA may use it more than once",
    "reductions-reduce-int": "its initial value is not an identity, and XLA may use it more than once",
}

# ---- the sections, each in its own process -----------------------------------------------------------


def records(small):
    """Run every record that XLA can run. A line of progress for each shows the parent which record ended a process."""
    import jax

    from bedrax.testing import checks
    from bedrax.testing.records import all_cases

    left = set(sys.stdin.read().split("\n"))
    platform_name = jax.devices()[0].platform
    for case in all_cases():
        if case.id not in left:
            continue
        print("start", case.id, sep="\t", flush=True)
        lowered = optimized = problem = ""
        try:
            with checks.x64_if_needed(case):
                args = case.make_args()
                stage = jax.jit(case.fun).lower(*args)
                lowered, compiled = stage.as_text(), stage.compile()
                optimized, actual = compiled.as_text(), checks.as_list(compiled(*args))
                assert not actual or {d.platform for x in actual for d in x.devices()} == {platform_name}
                for out, want in zip(actual, checks.numpy_results(case, args), strict=True):
                    checks.assert_same(out, want, case.rtol, case.atol, case.equal_nan, what=case.id)
        except Exception as error:
            problem = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        calls = set(re.findall(r"stablehlo.custom_call @([\w$.]+)", lowered))
        calls |= set(re.findall(r'custom_call_target="(.*?)"', optimized))
        print("end", case.id, case.primitive.name, ",".join(sorted(calls)), problem, sep="\t", flush=True)


def all_records(small, environment, jobs):
    """Run `records` in child processes; the parent's side."""
    names = [
        sys.executable,
        "-c",
        "from bedrax.testing.records import all_cases\n"
        "print(*[c.id for c in all_cases() if c.xla is True and c.needs is None], sep='\\n')",
    ]
    ids = subprocess.run(names, env=environment, capture_output=True, text=True, check=True).stdout.split("\n")
    ids = [i for i in ids if i][:: 20 if small else 1]
    failed, calls, good = {}, collections.defaultdict(set), []

    def run(left):
        """Run these records in one process after the other: a process that ends costs the record that it ran."""
        while left:
            done = child("records", small, {**environment, "JAX_DEFAULT_MATMUL_PRECISION": "highest"}, "\n".join(left))
            lines = [line.split("\t") for line in done.stdout.splitlines()]
            started = [line[1] for line in lines if line[0] == "start"]
            if not started:
                failed.update(dict.fromkeys(left, f"its process did not start: {last_words(done)}"))
                return
            for _, name, primitive, targets, problem in (line for line in lines if line[0] == "end"):
                left.remove(name)
                if problem:
                    failed[name] = problem
                else:
                    good.append(name)
                    for target in filter(None, targets.split(",")):
                        calls[target].add(primitive)
            if started[-1] in left:
                left.remove(started[-1])
                failed[started[-1]] = f"its process ended: {last_words(done)}"

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, [ids[i::jobs] for i in range(jobs)]))
    text = f"{len(good)} of {len(ids)} records give the results of NumPy's rules, with the precision `highest`.\n\n"
    for name in sorted(EXPECTED.keys() & failed.keys()):
        del failed[name]
        text += f"`{name}` gives another result: {EXPECTED[name]}.\n\n"
    if failed:
        text += (
            table(["record", "what happened"], [(f"`{k}`", v.replace("|", "\\|")) for k, v in failed.items()]) + "\n"
        )
    rows = [(f"`{target}`", ", ".join(sorted(by))) for target, by in sorted(calls.items())]
    return text + "Custom calls that were executed in records with the right results:\n\n" + table(["call", "by"], rows)


def digits(small):
    import jax

    sys.path.insert(0, str(ROOT))
    from examples.digits import data, linen_model, training

    epochs = 2 if small else 40
    given = data.load()
    optimizer = training.make_optimizer(epochs, len(given.train_labels))
    init_key, key = jax.random.split(jax.random.key(0))
    history, ends = [], []

    def after_epoch(loss, accuracy):
        history.append((loss, accuracy))
        ends.append(time.perf_counter())

    began = time.perf_counter()
    state = training.init(linen_model.MODEL, optimizer, init_key)
    training.train(linen_model.MODEL, optimizer, state, given, epochs, key, after_epoch)
    yield "loss after the last epoch", history[-1][0], "{:.4f}".format
    yield "accuracy on the test set", history[-1][1], "{:.2%}".format
    yield "first epoch, with all compilation", ends[0] - began, spelled
    yield "each other epoch", (ends[-1] - ends[0]) / (epochs - 1), spelled


def starts(small):
    """Whole processes, from the start of Python to the end: the first one and the second one with an empty cache."""
    programs = {
        "`jnp.sin(1.0)`": "import jax.numpy as jnp; jnp.sin(1.0).block_until_ready()",
        "a gradient": "import jax, jax.numpy as jnp; print(jax.grad(lambda x: jnp.tanh(x @ x).sum())(jnp.eye(3)))",
        "random numbers": "import jax; print(jax.random.normal(jax.random.key(0), (3, 4)))",
    }

    def run(program, **more):
        began = time.perf_counter()
        environment = {**os.environ, **more}
        subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, env=environment)
        return time.perf_counter() - began

    for name, program in programs.items():
        run(program)  # so that files are in memory
        with tempfile.TemporaryDirectory() as folder:
            for which in ("first start", "second start"):
                yield f"{name}: {which}", run(program, JAX_ENABLE_COMPILATION_CACHE="1", XDG_CACHE_HOME=folder), spelled


def calls(small):
    """The host's time for each of many calls that do not wait for their results."""
    import jax
    import jax.numpy as jnp

    x, weights = jnp.ones((8, 8)), [jnp.ones((8, 8))] * 100
    step = jax.jit(lambda ws, x: [w + x for w in ws])
    add, key = jax.jit(lambda x: x + 1), jax.random.key(0)
    for name, call in {
        "`jit(f)(x)`": lambda: add(x),
        "`jit(f)` of 100 arrays": lambda: step(weights, x),
        "`x + x`": lambda: x + x,
        "`jnp.sin(x)`": lambda: jnp.sin(x),
        "`x @ x`": lambda: x @ x,
        "`x[3]`": lambda: x[3],
        "`jax.random.normal(key, (8,))`": lambda: jax.random.normal(key, (8,)),
        "`vmap(jnp.dot)(x, x)`": lambda: jax.vmap(jnp.dot)(x, x),
        "`grad(f)(x)`, eagerly": lambda: jax.grad(lambda x: jnp.sin(x).sum())(x),
    }.items():

        def many(call=call, count=10 if small else 100):
            for _ in range(count):
                last = call()
            return last

        times = []
        for _ in range(3 if small else 10):
            jax.block_until_ready(many())
            began = time.perf_counter()
            last = many()
            times.append((time.perf_counter() - began) / (10 if small else 100))
            jax.block_until_ready(last)
        yield name, min(times), spelled


def faq(small):
    import jax
    import numpy as np

    def f(x):
        return x.T @ (x - x.mean(axis=0))

    for n in (10, 100) if small else (10, 1000):
        x_np = np.ones((n, n), np.float32)
        yield f"{n} x {n}: NumPy on the host", seconds_of(lambda x=x_np: f(x)), spelled
        began = time.perf_counter()
        x = jax.device_put(x_np).block_until_ready()
        yield f"{n} x {n}: copied to the device", time.perf_counter() - began, spelled
        f_jit = jax.jit(f)
        began = time.perf_counter()
        f_jit(x).block_until_ready()
        yield f"{n} x {n}: first call", time.perf_counter() - began, spelled
        yield f"{n} x {n}: each other call", seconds_of(lambda f=f_jit, x=x: f(x).block_until_ready(), 100), spelled


def workloads(small):
    """(name, dtype of the peak, operations, bytes, function, operands)."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def normal(*shape, dtype=jnp.bfloat16):
        return jax.random.normal(jax.random.key(len(shape)), shape, jnp.float32).astype(dtype)

    n, (b, t, h, d), (images, side, c) = 8192, (4, 4096, 16, 128), (64, 56, 256)
    if small:
        n, (b, t, h, d), (images, side, c) = 256, (1, 128, 2, 16), (2, 8, 16)
    for name, dtype, precision in (
        ("bf16", jnp.bfloat16, None),
        ("tf32", jnp.float32, "default"),
        ("f32", jnp.float32, "highest"),
    ):
        product = lambda x, y, p=precision: jnp.matmul(x, y, precision=p)
        yield f"product, {n} x {n}, {name}", name, 2 * n**3, None, product, (normal(n, n, dtype=dtype),) * 2
    qkv = (normal(b, t, h, d),) * 3
    flops = 4 * b * h * t * t * d
    yield f"attention, {b} x {t} x {h} x {d}, bf16", "bf16", flops, None, jax.nn.dot_product_attention, qkv
    backward = jax.grad(lambda *x: jax.nn.dot_product_attention(*x).astype(jnp.float32).sum(), (0, 1, 2))
    yield "the same with its gradient", "bf16", 3.5 * flops, None, backward, qkv
    conv = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    operands = normal(images, side, side, c), normal(3, 3, c, c)
    yield f"convolution, {images} x {side}² x {c}, 3², bf16", "bf16", 18 * images * side**2 * c**2, None, conv, operands
    count = 2**20 if small else 2**29
    yield f"`x + 1`, {count:,} f32", "memory", None, 8 * count, lambda x: x + 1, (jnp.zeros(count, jnp.float32),)


def peak(small):
    import jax

    kind = jax.devices()[0].device_kind
    known = next((row for name, row in PEAKS.items() if name in kind), {})
    for name, limit, operations, size, function, operands in workloads(small):
        compiled = jax.jit(function)
        taken = seconds_of(lambda f=compiled, xs=operands: jax.block_until_ready(f(*xs)), 5 if small else 20)
        rate = (operations or size) / taken
        share = f", {rate / known[limit]:.0%} of the peak" if limit in known else ""
        unit = "TFLOP/s" if operations else "TB/s"
        yield name, taken, lambda s, u=unit, r=rate, p=share: f"{spelled(s)} ({r / 1e12:.3g} {u}{p})"


# ---- the parent ----------------------------------------------------------------------------------


def child(section, small, environment, given=""):
    command = [sys.executable, __file__, "--child", section, *["--small"] * small]
    return subprocess.run(command, env=environment, input=given, capture_output=True, text=True)


def last_words(done):
    return f"exit code {done.returncode}, {' '.join(done.stderr.split())[-300:]}".replace("|", "\\|")


def machine(environment):
    say = (
        "import jax, jaxlib, numpy; d = jax.devices()[0]; print(d.platform, d.device_kind, len(jax.devices()), "
        "jaxlib.__version__, numpy.__version__, jax.__version__, sep='\\t')"
    )
    first = environment["JAX_PLATFORMS"].partition(",")[0]  # alone: if it does not start, its error has the reason
    given = {**environment, "JAX_PLATFORMS": first}
    done = subprocess.run([sys.executable, "-c", say], env=given, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"no device answers: {last_words(done)}")
    return done.stdout.strip().split("\t")


def upstream():
    """The version of upstream's `jax` in this Python, or None."""
    try:
        version = importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:
        return None
    return None if "bedrax" in version else version


def compared(section, small, sides):
    """A table of the results of `section`: a column for each side, and the ratio of the first two."""
    results, problems = [], []
    for title, environment in sides.items():
        done = child(section, small, environment)
        if done.returncode:
            problems.append(f"It failed {title}: {last_words(done)}\n")
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
        results.append({name: (value, text) for name, value, text in lines})
    rows = []
    for name, (value, text) in results[0].items():
        others = [side.get(name, (None, "-")) for side in results[1:]]
        ratios = [f"{value / other:.2f}" if other else "-" for other, _ in others]
        rows.append((name, text, *(text for _, text in others), *ratios))
    heads = ["", *sides, *["ratio"] * (len(sides) - 1)]
    return table(heads, rows) + "".join(f"\n{problem}" for problem in problems), bool(problems)


SECTIONS = {"records": records, "starts": starts, "digits": digits, "calls": calls, "faq": faq, "peak": peak}
TITLES = {
    "records": "The records",
    "starts": "Whole processes",
    "digits": "The digits",
    "calls": "The host's time for a call",
    "faq": "The benchmark of the FAQ",
    "peak": "Against the peak",
}


def main():
    parser = argparse.ArgumentParser(description="Measure this repository on a GPU.")
    parser.add_argument("sections", nargs="*", metavar="section", help=f"one of {', '.join(SECTIONS)}; default: all")
    parser.add_argument("--device", default="gpu", choices=("gpu", "cpu"), help="where to run (cpu: a rehearsal)")
    parser.add_argument("--small", action="store_true", help="small sizes, and every twentieth record")
    parser.add_argument("--jobs", type=int, default=1, help="processes that run records in parallel")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}, behind its mark")
    parser.add_argument("--child", choices=tuple(SECTIONS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child == "records":
        return records(options.small)
    if options.child:
        for name, value, spell in SECTIONS[options.child](options.small):
            print(json.dumps([name, value, spell(value)]), flush=True)
        return 0
    chosen = options.sections or list(SECTIONS)
    if unknown := set(chosen) - set(SECTIONS):
        parser.error(f"unknown sections {sorted(unknown)}; there are {', '.join(SECTIONS)}")
    theirs = {
        **os.environ,
        "JAX_PLATFORMS": "cuda,cpu" if options.device == "gpu" else "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # several processes share the card
        "JAX_ENABLE_COMPILATION_CACHE": "0",  # compilation is measured; `starts` switches the cache on
    }
    paths = [*SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**theirs, "PYTHONPATH": os.pathsep.join(paths)}
    _, name, count, *versions = machine(environment)
    whole = (
        f"{count} x {name}; Python {platform.python_version()}, jaxlib {versions[0]}, NumPy {versions[1]},"
        f" jax {versions[2]}.\n"
    )
    print(whole, flush=True)
    sides = {"here": environment}
    if other := upstream():
        sides[f"upstream {other}"] = theirs
    failed = False
    for section in chosen:
        began = time.perf_counter()
        if section == "records":
            result = all_records(options.small, environment, options.jobs)
        else:
            result, bad = compared(section, options.small, sides)
            failed |= bad
        text = f"\n## {TITLES[section]}\n\n{result.strip()}\n\n({time.perf_counter() - began:.0f} seconds)\n"
        print(text, flush=True)
        whole += text
    if options.write:
        before, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
        PAGE.write_text(f"{before}{MARK}\n{whole}", encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
