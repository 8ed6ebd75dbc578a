"""The libraries' own tests, from their source distributions: the files, the record of results, the known failures and
their reasons.

Each file runs in its own process with a time limit, here and upstream. `suites.json` has the results of each file; the
table of README.md is written from it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

RECORD = Path(__file__).with_name("suites.json")
# Distribution: the files and folders that run without --whole, about two minutes of a library at most. A library without
# a share runs with --whole only.
SHARES = {
    "array-api-compat": "",
    "blackjax": "",
    "brax": "brax/base_test.py brax/math_test.py brax/training/types_test.py",
    "chex": "chex/_src/asserts_test.py chex/_src/asserts_chexify_test.py chex/_src/dataclass_test.py "
    "chex/_src/dimensions_test.py chex/_src/fake_test.py chex/_src/warnings_test.py",
    "distrax": "distrax/_src/bijectors/block_test.py distrax/_src/utils/math_test.py",
    "diffrax": "",
    "dm-haiku": "haiku/_src/filtering_test.py haiku/_src/initializers_test.py haiku/_src/mixed_precision_test.py "
    "haiku/_src/moving_averages_test.py haiku/_src/stateful_test.py haiku/_src/basic_test.py",
    "dynamiqs": "",
    "e3nn-jax": "tests/_src/irreps_test.py tests/_src/irreps_array_test.py tests/_src/perm_test.py",
    "einops": "einops/tests/test_einsum.py einops/tests/test_ops.py einops/tests/test_packing.py einops/tests/test_parsing.py",
    "equinox": "",
    "flax": "tests/nnx/mutable_array_test.py tests/nnx/spmd_test.py tests/linen/linen_recurrent_test.py "
    "tests/linen/partitioning_test.py tests/core/core_lift_test.py tests/core/core_scope_test.py",
    "jax-md": "",
    "jaxopt": "",
    "jaxtyping": "",
    "jraph": "jraph/_src/models_test.py",
    "keras": "keras/src/activations keras/src/regularizers keras/src/initializers/initializer_test.py "
    "keras/src/layers/activations keras/src/ops/core_test.py",
    "lineax": "",
    "mctx": "mctx/_src/tests/qtransforms_test.py mctx/_src/tests/seq_halving_test.py",
    "netket": "",
    "numpyro": "",
    "optax": "optax/tree_utils optax/projections",
    "optimistix": "",
    "orbax-checkpoint": "",
    "ott-jax": "",
    "penzai": "tests/core",
    "quax": "",
    "tinygp": "tests/test_noise.py tests/test_transforms.py tests/test_kernels/test_distance.py",
    "treescope": "",
    "xarray-einstats": "",
}
# Libraries whose source distributions have no tests, or a part: the repository, the tag of a version, the folder in it.
REPOSITORIES = {
    "diffrax": ("patrick-kidger/diffrax", "v{}", ""),
    "dynamiqs": ("dynamiqs/dynamiqs", "v{}", ""),
    "equinox": ("patrick-kidger/equinox", "v{}", ""),
    "jaxtyping": ("patrick-kidger/jaxtyping", "v{}", ""),
    "keras": ("keras-team/keras", "v{}", ""),
    "lineax": ("patrick-kidger/lineax", "v{}", ""),
    "netket": ("netket/netket", "v{}", ""),
    "optimistix": ("patrick-kidger/optimistix", "v{}", ""),
    "orbax-checkpoint": ("google/orbax", "v{}", "checkpoint"),
    "ott-jax": ("ott-jax/ott", "{}", ""),
    "treescope": ("google-deepmind/treescope", "v{}", ""),
    "xarray-einstats": ("arviz-devs/xarray-einstats", "v{}", ""),
}
# Environment variables of the suites: the backend to test, and the devices that Flax's tests of sharding need.
ENVIRONMENT = {"EINOPS_TEST_BACKENDS": "numpy,jax", "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
DEVICES = {"flax": 4}
LIMIT, LIMIT_OF_A_TEST = 1800, 300  # seconds of one file, and of one test
GRACE = 60  # seconds until a file is killed that did not end with its last test
# Folders of a source distribution that have no tests of the library.
NOT_THE_LIBRARY = {"examples", "docs", "docs_nnx", "benchmark", "benchmarks", "build", "integration_tests"}
_WORDS = "the wording of an error that is also raised here"
# (Distribution, part of the name of a test): the reason of its failure here.
KNOWN: dict[tuple[str, str], str] = {
    ("chex", "test_hard_with_stop_gradient1"): (
        "the function has jumps, and the differences of check_grads cross one with its step (with eps=1e-3 none does)"
    ),
    ("flax", "test_vmap_and_cond_passthrough_error"): _WORDS,
    **dict.fromkeys([("dm-haiku", "branch_structure_error"), ("dm-haiku", "test_vmap_in_axes_different_size")], _WORDS),
    **dict.fromkeys([("keras", "test_associative_scan_invalid"), ("keras", "test_scan_invalid")], _WORDS),
    ("dm-haiku", "test_rank_promotion_exception"): _WORDS,
    ("quax", "test_negative_integer_pow_rejects_integer_dtype"): _WORDS,
    ("quax", "test_while_vmap"): (
        "vmap of a loop with a mapped condition chooses the new values in the body; there is no rule for this choice"
    ),
    ("treescope", "test_build_qualified_type_name"): "the text has the module in which a class is defined, not `jax`",
    ("optimistix", "test_compare"): (
        "the line search of minimize visits other points; its approximation of the inverse Hessian differs by 2 %"
    ),
}


def source(name: str, version: str, folder: Path) -> Path:
    """The folder with the sources of a library: its source distribution from PyPI, or its repository from GitHub. They
    are downloaded if `folder` does not have them."""
    stem = f"{name.replace('-', '_')}-{version}"
    if (folder / stem).exists():
        return folder / stem
    folder.mkdir(parents=True, exist_ok=True)
    if name in REPOSITORIES:
        repository, tag, part = REPOSITORIES[name]
        with tempfile.TemporaryDirectory(dir=folder) as work:
            address = f"https://github.com/{repository}.git"
            clone = ["git", "clone", "-q", "--depth=1", f"--branch={tag.format(version)}", address, work]
            subprocess.run(clone, check=True)
            shutil.copytree(Path(work, part), folder / stem, ignore=shutil.ignore_patterns(".git"))
    else:
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
    return sorted(p.as_posix() for p in named if NOT_THE_LIBRARY.isdisjoint(p.parts))


def identifiers(file: str, failed: Iterable[str]) -> list[str]:
    """The names of a file's tests in the record, as pytest takes them on its command line. The whole file, if it could
    not be collected."""
    module, found = file.removesuffix(".py").replace("/", ".") + ".", []
    for test in failed:
        if not test.startswith(module):
            return [file]
        name, bracket, parameters = test.removeprefix(module).partition("[")
        found.append(f"{file}::{name.replace('.', '::')}{bracket}{parameters}")
    return found


def run(
    python: str, root: Path, file: str, limit: float = LIMIT, devices: int = 1, only: Iterable[str] | None = None
) -> dict:
    """The result of a file of tests, or of some tests in it:
    `{"passed": number, "skipped": number, "failed": {test: first line}}`, without zeros. `"part": 1` is there if the
    limit of the file ended it before its last test."""
    wanted = [file] if only is None else identifiers(file, only)
    with tempfile.TemporaryDirectory() as work:
        report = Path(work, "report.xml")
        # pytest must not read the settings or the conftest.py of a folder above.
        places = ["-c", os.devnull, f"--rootdir={root}", f"--confcutdir={root}", f"--basetemp={work}/tests"]
        options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", f"--junitxml={report}", *places]
        options += [f"--timeout={min(limit, LIMIT_OF_A_TEST)}", f"--session-timeout={limit}"]
        environment = {**os.environ, **ENVIRONMENT}
        if devices > 1:
            environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
        if python != sys.executable:  # PYTHONPATH names our packages
            environment.pop("PYTHONPATH", None)
        start = time.perf_counter()
        process = subprocess.Popen(
            [python, "-m", "pytest", *options, *wanted],
            cwd=root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # processes that a test leaves behind end with it
        )
        try:
            status = process.wait(limit + GRACE)
        except subprocess.TimeoutExpired:
            return {"failed": {"the whole file": f"no end after {limit + GRACE:.0f} s"}}
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        if not report.exists():
            return {"failed": {"the whole file": f"pytest wrote no report and ended with status {status}"}}
        found = results(report.read_text(encoding="utf-8"))
        if only is not None and not found:  # names with dots or spaces: pytest did not find one of them
            return run(python, root, file, limit, devices)
        return found | ({"part": 1} if time.perf_counter() - start > limit else {})


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
    text = ", ".join(f"{sums[state]} {state}" for state in ("passed", "failed", "skipped") if sums[state])
    return text + (" (in part)" if sums["part"] else "")


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
            here = [file["here"] for file in suite["files"].values()]
            both, whys = 0, Counter()
            for file in suite["files"].values():
                only = alone(file)
                both += len(file["here"].get("failed", {})) - len(only)
                whys.update(reason(name, test) if "upstream" in file else "upstream has no result yet" for test in only)
            sums = Counter()
            for result in here:
                sums.update({state: n for state, n in result.items() if state != "failed"})
            cells = [
                name,
                python,
                suite["version"],
                (f"all {suite['of']}" if len(here) == suite["of"] else f"{len(here)} of {suite['of']}")
                + (f", {sums['part']} in part" if sums["part"] else ""),
                *(str(sums[state]) for state in ("passed", "skipped")),
                str(both),
                "; ".join(f"{n}: {why}" for why, n in whys.items()),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines
