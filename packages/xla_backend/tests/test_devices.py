"""The records on eight CPU devices, with a leading axis that is sharded over them.

Runs a sample of the records, or all with the environment variable BEDRAX_ALL_RECORDS=1 (minutes).
"""

import os
import subprocess
import sys
import zlib
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")

# Results whose batch is not sharded, by primitive, with the reason.
_GATHERED = "XLA's partitioner does not split it over a batch, and gathers the operands"
ELSEWHERE = {
    "rng_bit_generator": _GATHERED,
    **dict.fromkeys(("pure_callback", "io_callback"), "called once, with whole arrays, and so on all devices after"),
    "conv_general_dilated": "the batch is a group, which the partitioner splits only where sizes allow",
    **dict.fromkeys(("jit", "integer_pow", "scan"), "the result does not depend on the operand"),
    **dict.fromkeys(
        ("split", "reduce_window", "select_and_scatter"), "the partitioner's choice of one of several operands"
    ),
}

PROGRAM = PROGRAMS / "batched_records.py"


def sample(cases):
    """All records, or a sample by their names with at least one of each family."""
    cases = [case for case in cases if case.xla is True and case.needs is None]
    if os.environ.get("BEDRAX_ALL_RECORDS"):
        return cases
    first = {case.primitive.family: case for case in reversed(cases)}
    return [c for c in cases if c is first[c.primitive.family] or zlib.crc32(c.id.encode()) % 16 == 0]


def test_batches_stay_spread():
    from bedrax.testing.records import all_cases

    chosen = sample(all_cases())
    assert len(chosen) > 50
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, PROGRAM],
        input="\n".join(c.id for c in chosen),
        capture_output=True,
        text=True,
        timeout=1500,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    found = [line.split("\t") for line in done.stdout.splitlines()]
    # For operands without elements, the result is a constant.
    wrong = [
        line
        for line in found
        if line[2].startswith("raised ") or not (line[1] in ELSEWHERE or line[0].endswith("-empty"))
    ]
    assert not wrong, "\n".join("  ".join(line) for line in wrong)
