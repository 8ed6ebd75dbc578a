"""The abilities of a value do not depend on the imports of the process.

Pickles are read in processes that imported nothing, one package, or two packages in either order. In each, methods,
operators, calls, programs and errors are those of the process that wrote the pickles, with `jax`. A sample by default,
everything with BEDRAX_VALUES=all (`nox -s values`).
"""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tests/programs/values.py"
ALL = os.environ.get("BEDRAX_VALUES") == "all"
KINDS = (
    "array",
    "bfloat16 array",
    "sharded array",
    "reference",
    "sparse array",
    "key",
    "keys",
    "jit",
    "grad",
    "value_and_grad",
    "jacfwd",
    "hessian",
    "vmap",
    "checkpoint",
    "custom_jvp",
    "custom_vjp",
    "linear function",
    "Partial",
    "ufunc",
    "type of elements",
    "program",
    "exported program",
    "primitive",
    "mesh",
    "PartitionSpec",
    "NamedSharding",
    "SingleDeviceSharding",
    "tree",
    "ShapeDtypeStruct",
    "symbolic size",
    "error of checkify",
    "exception",
)
BRIDGES = ("tf", "call_tf", "jax2tf") if importlib.util.find_spec("tensorflow") is None else ()
PACKAGES = ["jax", *(f"bedrax.{p.name}" for p in sorted((ROOT / "packages").glob("*/src/bedrax/*")) if p.is_dir())]
PACKAGES = [name for name in PACKAGES if name.removeprefix("bedrax.") not in (*BRIDGES, "testing")]
PAIRS = [pair for pair in itertools.permutations(PACKAGES, 2) if ALL or zlib.crc32(repr(pair).encode()) % 60 == 0]


def run(*args):
    out = subprocess.run([sys.executable, PROGRAM, *args], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


@pytest.fixture(scope="module")
def pickles(tmp_path_factory):
    """The folder of the pickles, and the results of their probes."""
    folder = tmp_path_factory.mktemp("values")
    found = run("make", str(folder))
    assert found.keys() == set(KINDS)
    return str(folder), found


def check(pickles, kinds, *packages):
    folder, expected = pickles
    found = run("use", folder, ",".join(kinds), *packages)
    assert found == {kind: expected[kind] for kind in kinds}


def kinds_for(*packages):
    """The kinds to read with some packages, all of them with ALL. Each set of packages starts with another kind."""
    start = zlib.crc32(repr(packages).encode()) % len(KINDS)
    return [*KINDS, *KINDS][start : start + (len(KINDS) if ALL else 8)]


@pytest.mark.parametrize("kind", KINDS)
def test_in_a_process_that_imported_nothing(pickles, kind):
    check(pickles, [kind])


@pytest.mark.parametrize("package", PACKAGES)
def test_after_the_import_of_a_package(pickles, package):
    check(pickles, kinds_for(package), package)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_after_the_import_of_two_packages(pickles, pair):
    check(pickles, kinds_for(*pair), *pair)


def test_most_probes_have_results(pickles):
    """The probes find what they look for: most of them have results, and few have errors."""
    texts = [text for found in pickles[1].values() for text in found.values()]
    assert sum("Error: " in text for text in texts) < len(texts) / 4
