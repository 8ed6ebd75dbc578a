"""Exported programs that other implementations wrote (`exported/programs.py` says how) are read, and compute the same.

`nox -s exports` has the other implementation read ours.
"""

import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent / "exported"


@pytest.mark.parametrize("written", sorted(HERE.glob("*.json")), ids=lambda path: path.stem)
def test_programs_of_others(written):
    command = [sys.executable, str(HERE / "programs.py"), "read", str(written)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
