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
PLUGIN = Path(__file__).parent / "plugin" / "suite_results.py"
ENDS_OF_PYTEST = range(6)  # the statuses of a pytest that was not killed
WHOLE = "the whole file"  # the name of the failure of a file that could not be collected
# Folders of a source distribution that have no tests of the library.
NOT_THE_LIBRARY = {"examples", "docs", "docs_nnx", "benchmark", "benchmarks", "build", "integration_tests"}
_WORDS = "the wording of an error that is also raised here"
# (Distribution, part of the name of a test): the reason of its failure here.
KNOWN: dict[tuple[str, str], str] = {
    ("chex", "test_hard_with_stop_gradient1"): (
        "the function has jumps, and the differences of check_grads cross one with its step (with eps=1e-3 none does)"
    ),
    **dict.fromkeys(
        [("equinox", "test_basic"), ("equinox", "test_struct")],
        "the count of equations: operands of an elementwise primitive have one shape or rank 0 here",
    ),
    ("flax", "test_vmap_and_cond_passthrough_error"): _WORDS,
    **dict.fromkeys([("dm-haiku", "branch_structure_error"), ("dm-haiku", "test_vmap_in_axes_different_size")], _WORDS),
    **dict.fromkeys([("keras", "test_associative_scan_invalid"), ("keras", "test_scan_invalid")], _WORDS),
    ("dm-haiku", "test_rank_promotion_exception"): _WORDS,
    ("quax", "test_negative_integer_pow_rejects_integer_dtype"): _WORDS,
    ("quax", "test_while_vmap"): (
        "vmap of a loop with a mapped condition chooses the new values in the body; there is no rule for this choice"
    ),
    **dict.fromkeys(
        [("treescope", "test_build_qualified_type_name"), ("penzai", "test_object_rendering_deprecated_v1")],
        "the text has the module in which a class is defined, not `jax`",
    ),
    ("penzai", "test_object_rendering_named_array"): (
        "arrays have a form for notebooks, `_repr_html_`, which the text names"
    ),
    ("netket", "test_pnc"): (
        "a negative number times False is -0.0, as in NumPy; the compiled product of upstream is 0.0"
    ),
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


def run(
    python: str,
    root: Path,
    files: Iterable[str],
    limit: float = LIMIT,
    devices: int = 1,
    *,
    share: int = 0,
    limit_of_a_test: float = LIMIT_OF_A_TEST,
    only: dict[str, Iterable[str]] | None = None,
) -> dict[str, dict]:
    """The results of files of tests that run in one process: `{file: {"passed": number, "skipped": number, "failed":
    {test: first line}}}`, without zeros.

    `share` is the largest number of tests of a file; `"of"` is there if the file has more. `only` names the tests of each
    file. `"part": 1` is there if the process ended before the last test of the file. A file without a result is absent:
    the limit ended the process before its first test. The files that a crash left without a result run again, without
    the file of the crash.
    """
    files = list(files)
    with tempfile.TemporaryDirectory() as work:
        events, names = Path(work, "events"), Path(work, "only")
        events.touch()
        # pytest must not read the settings or the conftest.py of a folder above.
        places = ["-c", os.devnull, f"--rootdir={root}", f"--confcutdir={root}", f"--basetemp={work}/tests"]
        options = ["-q", "-p", "no:cacheprovider", "-p", PLUGIN.stem, "-W", "ignore", *places]
        options += ["--continue-on-collection-errors", f"--session-timeout={limit}"]
        options += [f"--timeout={min(limit, limit_of_a_test)}"]
        environment = {**os.environ, **ENVIRONMENT, "SUITE_EVENTS": str(events), "SUITE_SHARE": str(share)}
        if only is not None:
            names.write_text(json.dumps([f"{file}::{test}" for file in files for test in only[file]]), encoding="utf-8")
            environment["SUITE_ONLY"] = str(names)
        if devices > 1:
            environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
        # PYTHONPATH names our packages, which upstream must not find.
        paths = [str(PLUGIN.parent), *([os.environ.get("PYTHONPATH")] if python == sys.executable else [])]
        environment["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
        process = subprocess.Popen(
            [python, "-m", "pytest", *options, *files],
            cwd=root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # processes that a test leaves behind end with it
        )
        ended = f"no end after {limit + GRACE:.0f} s"
        try:
            ended = f"the process ended with status {process.wait(limit + GRACE)}"
        except subprocess.TimeoutExpired:
            pass
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        lines = events.read_text(encoding="utf-8").splitlines()
        found, crashed = results([json.loads(line) for line in lines], files, ended, only is not None)
    if process.returncode in ENDS_OF_PYTEST and not crashed:
        return found
    if not crashed and len(files) == 1:  # before the first test
        return found or {files[0]: {"failed": {WHOLE: ended}}}
    for some in [[f for f in files if f not in found]] if crashed else [[f] for f in files if f not in found]:
        if some:
            found |= run(python, root, some, limit, devices, share=share, limit_of_a_test=limit_of_a_test, only=only)
    return found


def results(events: list[dict], files: list[str], ended: str, named: bool = False) -> tuple[dict[str, dict], bool]:
    """The results of each file, from the events of the plugin. Whether the process ended within a test, which has the
    message `ended` then. `named`: whether tests were chosen by name."""
    tests: dict[str, dict[str, tuple[str, str]]] = {}
    numbers = {event["file"]: event for event in events if "collected" in event}
    finished = {event["end"] for event in events if "end" in event}
    started = [event["start"] for event in events if "start" in event]
    crashed = [test for test in started if test not in finished]
    events = events + [{"test": test, "outcome": "failed", "message": ended} for test in crashed]
    for event in events:
        if "whole" in event:
            outcome = (event["outcome"], event["message"])
            tests.setdefault(event["whole"], {})[WHOLE] = outcome
        elif "test" in event:
            file, _, test = event["test"].partition("::")
            of = tests.setdefault(file, {})
            if of.get(test, ("",))[0] != "failed":  # a test that passed may fail when it is torn down
                of[test] = (event["outcome"], event["message"])
    found = {}
    for file, outcomes in tests.items():
        failed = {test: first_line(message) for test, (state, message) in outcomes.items() if state == "failed"}
        result = dict(Counter(state for state, _ in outcomes.values() if state != "failed"))
        result |= {"failed": failed} if failed else {}
        collected, chosen = (numbers.get(file, {}).get(n, 0) for n in ("collected", "chosen"))
        result |= {"of": collected} if collected > chosen and not named else {}
        result |= {"part": 1} if chosen > len(outcomes) else {}
        found[file] = result
    if any("collection" in event for event in events):  # a file of no tests has its result
        found |= {file: {} for file in files if file not in found and not numbers.get(file, {}).get("chosen")}
    return found, bool(crashed)


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
    if WHOLE in there:  # no test of it runs upstream
        return {}
    return {test: why for test, why in file.get("here", {}).get("failed", {}).items() if test not in there}


def reason(name: str, test: str, message: str = "") -> str:
    """The reason of a test's failure here, or `open`. `message` is the first line of the failure."""
    otherwise = "the time limit of a test" if "from pytest-timeout" in message else "open"
    return next((why for (of, part), why in KNOWN.items() if of == name and part in test), otherwise)


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
                whys.update(
                    reason(name, test, message) if "upstream" in file else "upstream has no result yet"
                    for test, message in only.items()
                )
            sums, shares = Counter(), 0
            for result in here:
                sums.update({state: n for state, n in result.items() if state not in ("failed", "of")})
                shares += "of" in result
            cells = [
                name,
                python,
                suite["version"],
                (f"all {suite['of']}" if len(here) == suite["of"] else f"{len(here)} of {suite['of']}")
                + (f", {shares} by a share" if shares else "")
                + (f", {sums['part']} in part" if sums["part"] else ""),
                *(str(sums[state]) for state in ("passed", "skipped")),
                str(both),
                "; ".join(f"{n}: {why}" for why, n in whys.items()),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines
