"""Exported programs written by other implementations (with `exported/programs.py`) load, and compute the same.

`nox -s exports` loads our programs with the other implementation.
"""

import base64
import json
import pathlib
import re
import subprocess
import sys

import jax
import jax.experimental.serialize_executable
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent / "exported"


# Programs of upstream 0.12.0.1 with custom calls, or calling convention 9, have a later StableHLO than jaxlib 0.10.2.
NEWER = {"jax_0_12_0_1": ["symbolic", "dimensions", "platforms", "lapack", "convention 9", "effects of any size"]}


@pytest.mark.parametrize("written", sorted(HERE.glob("*.json")), ids=lambda path: path.stem)
def test_programs_of_others(written):
    command = [sys.executable, str(HERE / "programs.py"), "read", str(written)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    refused = json.loads(result.stdout.splitlines()[-1].removeprefix("refused: "))
    assert refused == (NEWER.get(written.stem, []) if jaxlib.__version__ == "0.10.2" else []), refused


def test_a_later_version_of_the_format_is_refused_with_both_versions():
    blob = bytearray(
        base64.b64decode(json.loads((HERE / "jax_0_12_0_1.json").read_text(encoding="utf-8"))["plain"]["blob"])
    )
    root = int.from_bytes(blob[:4], "little")
    table = root - int.from_bytes(blob[root : root + 4], "little", signed=True)
    at = root + int.from_bytes(blob[table + 4 : table + 6], "little")  # its first field
    assert int.from_bytes(blob[at : at + 2], "little") == 12
    blob[at : at + 2] = (99).to_bytes(2, "little")
    with pytest.raises(ValueError, match=rf"version 99 .* jaxlib 0\.12\.0\.1, .* with jaxlib {jaxlib.__version__}"):
        jax.export.deserialize(blob)


def test_library_functions_are_exported_without_jit():
    exported = jax.export.export(jnp.sin)(np.arange(4, dtype=np.float32))
    assert exported.fun_name == "sin"
    np.testing.assert_allclose(exported.call(np.ones(4, np.float32)), np.sin(np.ones(4)), rtol=1e-6)


@pytest.mark.parametrize("written", sorted(HERE.glob("compiled_*.bin")), ids=lambda path: path.stem)
def test_compiled_code_of_another_jaxlib_is_refused_with_both_versions(written):
    """`nox -s exports` loads the code of each version of jaxlib with each version; each runs its own."""
    writer = written.stem.removeprefix("compiled_jaxlib_").replace("_", ".")
    if writer == jaxlib.__version__:
        pytest.skip("the installed jaxlib wrote it, for the processor of another machine")
    tree = jax.tree.structure(((0,), {})), jax.tree.structure(0)
    with pytest.raises(
        ValueError, match=rf"with jaxlib {re.escape(writer)}, and jaxlib {re.escape(jaxlib.__version__)}"
    ):
        jax.experimental.serialize_executable.deserialize_and_load(written.read_bytes(), *tree)
