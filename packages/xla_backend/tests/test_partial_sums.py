"""Arrays that are partial sums over explicit axes. Runs on eight CPU devices in one process.

The records run as a sample, or all with the environment variable BEDRAX_ALL_RECORDS=1.
"""

import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

pytest.importorskip("bedrax.numpy")  # above this package

PROGRAMS = Path(__file__).with_name("programs")
ENVIRONMENT = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "TF_CPP_MIN_LOG_LEVEL": "3"}


@pytest.mark.parametrize(
    "name",
    [
        "arrays",
        "moves",
        "operations",
        "results",
        "blocks",
        "exported_programs",
        "a_rule_of_its_own",
        "cotangents",
        "training",
    ],
)
def test_eight_cpu_devices(name):
    command = [sys.executable, PROGRAMS / "partial_sums.py", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr


# Operations that round, so that rounded parts are not the parts of the rounded sum, and those whose records have them.
ROUNDED = {"reduce_precision"}


def test_records():
    """Every record with operands that are partial sums is refused, or has the value and derivatives of the sum."""
    from bedrax.core.tables import programs
    from bedrax.parallel.explicit import sum_rules
    from bedrax.testing.records import all_cases

    cases = [c for c in all_cases() if c.xla is True and c.needs is None and c.primitive.name not in ROUNDED]
    if not os.environ.get("BEDRAX_ALL_RECORDS"):
        first = {c.primitive.family: c for c in reversed(cases)}
        cases = [c for c in cases if c is first[c.primitive.family] or zlib.crc32(c.id.encode()) % 32 == 1]
    names = "\n".join(c.id for c in cases)
    command = [sys.executable, PROGRAMS / "partial_records.py"]
    done = subprocess.run(command, input=names, capture_output=True, text=True, timeout=3000, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    found = {line.split("\t")[0]: line.split("\t")[2] for line in done.stdout.splitlines()}
    assert len(found) == len(cases)
    wrong = [f"{name}  {verdict}" for name, verdict in found.items() if verdict.startswith("raised ")]
    assert not wrong, "\n".join(wrong)
    alone = [c for c in cases if not programs.states(c.primitive)]  # those with programs pass on what these do
    linear = {c.id for c in alone if sum_rules.find(c.primitive) is None and found[c.id] == "passed on"}
    assert not linear, linear
