"""Each public function gives the same trace as the first action of a process and after many others."""

import pathlib
import pickle
import re
import subprocess
import sys
import zlib

import jax
import numpy as np
import records
from test_surface import FUNCTIONS, SHARE

PROGRAMS = pathlib.Path(__file__).parents[1] / "programs"
sys.path.insert(0, str(PROGRAMS))

from first_use import outcome

PLAIN = (np.ndarray, np.generic, bool, int, float, complex, str, type(None))


def calls():
    """``(module, name, args, kwargs)`` of the records whose arguments need only NumPy."""
    for path, function in FUNCTIONS.items():
        record = records.record(path, function)
        module, _, name = f"jax.{path}".rpartition(".")
        if record is None or record.function is not function or path in records.AT or path.startswith("Array."):
            continue
        if all(isinstance(x, PLAIN) for x in jax.tree.leaves((record.args, record.kwargs))):
            yield module, name, record.args, record.kwargs


def comparable(text):
    """The text without the parts that differ between processes: addresses."""
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def test_each_function_may_be_used_first(tmp_path):
    chosen = [c for c in calls() if zlib.crc32(f"{c[0]} {c[1]}".encode()) % min(SHARE, 8) == 0]
    assert len(chosen) > (600 if SHARE == 1 else 60)
    file = tmp_path / "calls"
    file.write_bytes(pickle.dumps(chosen))
    command = [sys.executable, str(PROGRAMS / "first_use.py"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        module, name, result = line.split(" ", 2)
        found[module, name] = result
    wrong = {}
    for module, name, args, kwargs in chosen:
        expected = outcome(module, name, args, kwargs)
        if comparable(found.get((module, name), "nothing")) != comparable(expected):
            wrong[f"{module}.{name}"] = found.get((module, name)), expected
    assert not wrong, wrong
