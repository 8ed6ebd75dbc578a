"""The libraries' own tests, from their source distributions: the files, the record of results, the known failures and
their reasons.

Each file runs in its own process with a time limit, here and upstream. `suites.json` has the results of each file; the
table of README.md is written from it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

RECORD = Path(__file__).with_name("suites.json")
# Distribution: the files and folders that run without --whole, about two minutes of a library at most. A library without
# a share runs with --whole only.
SHARES = {
    "blackjax": "",
    "brax": "brax/base_test.py brax/math_test.py brax/training/types_test.py",
    "chex": "chex/_src/asserts_test.py chex/_src/asserts_chexify_test.py chex/_src/dataclass_test.py "
    "chex/_src/dimensions_test.py chex/_src/fake_test.py chex/_src/warnings_test.py",
    "distrax": "distrax/_src/bijectors/block_test.py distrax/_src/utils/math_test.py",
    "dm-haiku": "haiku/_src/filtering_test.py haiku/_src/initializers_test.py haiku/_src/mixed_precision_test.py "
    "haiku/_src/moving_averages_test.py haiku/_src/stateful_test.py haiku/_src/basic_test.py",
    "e3nn-jax": "tests/_src/irreps_test.py tests/_src/irreps_array_test.py tests/_src/perm_test.py",
    "einops": "einops/tests/test_einsum.py einops/tests/test_ops.py einops/tests/test_packing.py einops/tests/test_parsing.py",
    "flax": "tests/nnx/mutable_array_test.py tests/nnx/spmd_test.py tests/linen/linen_recurrent_test.py "
    "tests/linen/partitioning_test.py tests/core/core_lift_test.py tests/core/core_scope_test.py",
    "jaxopt": "",
    "jraph": "jraph/_src/models_test.py",
    "keras": "keras/src/activations keras/src/regularizers keras/src/initializers/initializer_test.py "
    "keras/src/layers/activations keras/src/ops/core_test.py",
    "mctx": "mctx/_src/tests/qtransforms_test.py mctx/_src/tests/seq_halving_test.py",
    "numpyro": "",
    "optax": "optax/tree_utils optax/projections",
    "orbax-checkpoint": "",
    "penzai": "tests/core",
    "quax": "",
    "tinygp": "tests/test_noise.py tests/test_transforms.py tests/test_kernels/test_distance.py",
}
# Environment variables of the suites: the backend to test, and the devices that Flax's tests of sharding need.
ENVIRONMENT = {"EINOPS_TEST_BACKENDS": "numpy,jax", "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
DEVICES = {"flax": 4}
LIMIT = 1800  # seconds of one file
# Folders of a source distribution that have no tests of the library.
NOT_THE_LIBRARY = {"examples", "docs", "docs_nnx", "benchmarks", "build"}
_WORDS = "the wording of an error that is also raised here"
# (Distribution, part of the name of a test): the reason of its failure here.
KNOWN: dict[tuple[str, str], str] = {
    ("chex", "test_hard_with_stop_gradient1"): (
        "the function has jumps, and the differences of check_grads cross one with its step (with eps=1e-3 none does)"
    ),
    ("flax", "test_vmap_and_cond_passthrough_error"): _WORDS,
    **dict.fromkeys([("dm-haiku", "branch_structure_error"), ("dm-haiku", "test_vmap_in_axes_different_size")], _WORDS),
    **dict.fromkeys([("keras", "test_associative_scan_invalid"), ("keras", "test_scan_invalid")], _WORDS),
}


def source(name: str, version: str, folder: Path) -> Path:
    """The unpacked source distribution of a library. It is downloaded from PyPI if `folder` does not have it."""
    stem = f"{name.replace('-', '_')}-{version}"
    if not (folder / stem).exists():
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--no-deps", "--no-binary=:all:", f"--dest={folder}", f"{name}=={version}"]
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", *options], check=True)
        (archive,) = (
            p for p in folder.glob("*.tar.gz") if p.name.replace("-", "_") == f"{stem}.tar.gz".replace("-", "_")
        )
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    return folder / stem


def files(root: Path, share: str | None = None) -> list[str]:
    """The files with tests under the files and folders of a share; those of the whole library if it is None."""
    places = [root / part for part in share.split()] if share is not None else [root]
    found = {p for place in places for p in ([place] if place.is_file() else place.rglob("*.py"))}
    named = [p.relative_to(root) for p in found if p.stem.endswith("_test") or p.stem.startswith("test_")]
    return sorted(p.as_posix() for p in named if p.parts[0] not in NOT_THE_LIBRARY)


def run(python: str, root: Path, file: str, limit: float = LIMIT, devices: int = 1) -> dict:
    """The result of a file of tests: `{"passed": number, "skipped": number, "failed": {test: first line}}`, without
    zeros."""
    with tempfile.TemporaryDirectory() as work:
        report = Path(work, "report.xml")
        # pytest must not read the settings or the conftest.py of a folder above.
        places = ["-c", os.devnull, f"--rootdir={root}", f"--confcutdir={root}", f"--basetemp={work}/tests"]
        options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", f"--junitxml={report}", *places]
        environment = {**os.environ, **ENVIRONMENT}
        if devices > 1:
            environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
        if python != sys.executable:  # PYTHONPATH names our packages
            environment.pop("PYTHONPATH", None)
        process = subprocess.Popen(
            [python, "-m", "pytest", *options, file],
            cwd=root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # processes that a test leaves behind end with it
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            return {"failed": {"the whole file": f"no end after {limit:.0f} s"}}
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        if not report.exists():
            return {"failed": {"the whole file": f"pytest wrote no report and ended with status {status}"}}
        return results(report.read_text(encoding="utf-8"))


def results(report: str) -> dict:
    """The result of `run`, from the JUnit report of pytest."""
    counts, failed = Counter(), {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        if bad is not None:
            failed[f"{case.get('classname')}.{case.get('name')}"] = first_line(bad.get("message", ""))
        else:
            counts["skipped" if case.find("skipped") is not None else "passed"] += 1
    return {**counts, **({"failed": failed} if failed else {})}


def first_line(message: str) -> str:
    """The first line of a message, at most 160 characters, without folders and addresses of this machine."""
    line = re.sub(r"(?<![\w./])/(?:[\w.+@-]+/)+", "", message.split("\n")[0])
    return re.sub(r"\b0x[0-9a-f]{6,}", "0x...", line)[:160]


def counts(results: list[dict]) -> str:
    """The sums of results as text, such as `12 passed, 1 failed`."""
    sums = Counter()
    for result in results:
        sums.update({state: len(n) if state == "failed" else n for state, n in result.items()})
    return ", ".join(f"{sums[state]} {state}" for state in ("passed", "failed", "skipped") if sums[state])


def alone(file: dict) -> dict[str, str]:
    """{test that fails here and not upstream: first line} of a file's record; all that fail here without upstream's
    result."""
    there = file.get("upstream", {}).get("failed", {})
    if "the whole file" in there:  # no test of it runs upstream
        return {}
    return {test: why for test, why in file.get("here", {}).get("failed", {}).items() if test not in there}


def reason(name: str, test: str) -> str:
    """The reason of a test's failure here, or `open`."""
    return next((why for (of, part), why in KNOWN.items() if of == name and part in test), "open")


def read(path: Path = RECORD) -> dict:
    """The record: `{library: {versions of Python and jaxlib: {"version", "upstream", "of", "files"}}}`. "of" is the
    number of files in the whole suite; "files" is `{file: {"here": result, "upstream": result}}`."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(record: dict, path: Path = RECORD) -> None:
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def recorded(record: dict, name: str, python: str, about: dict) -> dict:
    """The results of the files of one library on one Python in the record. Those of another version are removed, and
    `about` (version, upstream, of) is written."""
    suite = record.setdefault(name, {}).setdefault(python, {})
    if suite.get("version") != about["version"]:
        suite.clear()
    suite |= about
    return suite.setdefault("files", {})


def rows(record: dict) -> list[str]:
    """The lines of the table: one for each library and Python."""
    lines = []
    for name, versions in sorted(record.items()):
        for python, suite in sorted(versions.items()):
            each = list(suite["files"].values())
            here, there = ([file[side] for file in each if side in file] for side in ("here", "upstream"))
            whys = Counter(reason(name, test) for file in each for test in alone(file))
            size = f"all {suite['of']}" if len(here) == suite["of"] else f"{len(here)} of {suite['of']}"
            upstream = f"{suite['upstream']}: {counts(there)}" if there else ""
            if len(there) not in (0, len(here)):
                upstream += f" ({len(there)} files)"
            notes = "; ".join(f"{n}: {why}" for why, n in whys.items())
            lines.append(f"| {name} | {python} | {suite['version']} | {size} | {counts(here)} | {upstream} | {notes} |")
    return lines
