"""Arrays have their arithmetic, indices and methods after any first call that follows `import jax`."""

import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")

PROGRAM = PROGRAMS / "first_calls.py"


def test_any_function_may_be_called_first():
    done = subprocess.run([sys.executable, "-W", "ignore", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wrong = [line for line in done.stdout.splitlines() if not line.endswith(" returned 9.0")]
    assert not wrong, wrong
