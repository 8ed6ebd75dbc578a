"""The records on eight CPU devices, with a leading axis that is sharded over them.

Runs a sample of the records, or all with the environment variable BEDRAX_ALL_RECORDS=1 (minutes).
"""

import os
import subprocess
import sys
import zlib

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

PROGRAM = """
import sys
import numpy as np
import bedrax.xla_backend as xla
from bedrax.testing import checks
from bedrax.testing.records import all_cases
from bedrax.xla_backend.sharding import Mesh, NamedSharding, PartitionSpec as P

where = NamedSharding(Mesh(np.array(xla.devices()), ("x",)), P("x"))
assert where.num_devices == 8
chosen = set(sys.stdin.read().split("\\n"))
for case in all_cases():
    if case.id in chosen:
        try:
            other = checks.check_devices(case, where)
        except Exception as error:
            other = f"raised {type(error).__name__}: {error}"
        if other is not None:
            print(case.id, case.primitive, other.replace("\\n", " "), sep="\\t")
"""


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
        [sys.executable, "-c", PROGRAM],
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
