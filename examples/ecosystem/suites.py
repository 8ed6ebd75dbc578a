"""Shares of the libraries' own tests, from their source distributions: the files, the known failures, and the
reasons."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

# Distribution: the files and folders of its source distribution that are run, about two minutes of a library at most.
SHARES = {
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
    "jraph": "jraph/_src/models_test.py",
    "keras": "keras/src/activations keras/src/regularizers keras/src/initializers/initializer_test.py "
    "keras/src/layers/activations keras/src/ops/core_test.py",
    "mctx": "mctx/_src/tests/qtransforms_test.py mctx/_src/tests/seq_halving_test.py",
    "optax": "optax/tree_utils optax/projections",
    "penzai": "tests/core",
    "tinygp": "tests/test_noise.py tests/test_transforms.py tests/test_kernels/test_distance.py",
}
# Environment variables of the suites: the backend to test.
ENVIRONMENT = {"EINOPS_TEST_BACKENDS": "numpy,jax", "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
_WORDS = "the wording of an error that is also raised here"
# (Distribution, part of the name of a test): the reason of its failure here.
KNOWN: dict[tuple[str, str], str] = {
    ("chex", "test_hard_with_stop_gradient1"): (
        "the function has jumps, and the differences of check_grads cross one with its step (with eps=1e-3 none does)"
    ),
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


def run(python: str, root: Path, share: str, limit: float = 600) -> tuple[Counter[str], dict[str, str]]:
    """(how many tests passed, failed, were skipped; {name of one that failed: its first line}) of a share of a
    suite."""
    with tempfile.TemporaryDirectory() as work:
        report = Path(work, "report.xml")
        # pytest must not read the settings or the conftest.py of a folder above.
        places = ["-c", os.devnull, f"--rootdir={root}", f"--confcutdir={root}"]
        options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", f"--junitxml={report}", *places]
        options += ["--continue-on-collection-errors"]
        try:
            subprocess.run(
                [python, "-m", "pytest", *options, *share.split()],
                cwd=root,
                env={**os.environ, **ENVIRONMENT},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            return Counter(failed=1), {"the whole": f"no end after {limit:.0f} s"}
        if not report.exists():
            return Counter(failed=1), {"the whole": "pytest wrote no report"}
        return results(report.read_text())


def results(report: str) -> tuple[Counter[str], dict[str, str]]:
    """The results of `run`, from the JUnit report of pytest."""
    counts, failed = Counter(), {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        state = "failed" if bad is not None else "skipped" if case.find("skipped") is not None else "passed"
        counts[state] += 1
        if bad is not None:
            failed[f"{case.get('classname')}.{case.get('name')}"] = bad.get("message", "").split("\n")[0][:160]
    return counts, failed


def explained(name: str, failed: dict[str, str]) -> tuple[Counter[str], dict[str, str]]:
    """({reason: number of failures that it explains}, the unexplained failures)."""
    reasons, rest = Counter(), {}
    for test, message in failed.items():
        reason = next((why for (of, part), why in KNOWN.items() if of == name and part in test), None)
        if reason is None:
            rest[test] = message
        else:
            reasons[reason] += 1
    return reasons, rest
