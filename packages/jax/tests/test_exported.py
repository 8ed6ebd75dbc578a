"""Exported programs that other implementations wrote (`exported/programs.py` says how) are read, and compute the same.

`nox -s exports` has the other implementation read ours.
"""

import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent / "exported"


@pytest.mark.parametrize("written", sorted(HERE.glob("*.json")), ids=lambda path: path.stem)
def test_programs_of_others(written):
    command = [sys.executable, str(HERE / "programs.py"), "read", str(written)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr


def test_functions_of_the_library_are_exported_as_they_are():
    exported = jax.export.export(jnp.sin)(np.arange(4, dtype=np.float32))
    assert exported.fun_name == "sin"
    np.testing.assert_allclose(exported.call(np.ones(4, np.float32)), np.sin(np.ones(4)), rtol=1e-6)
