"""Every record as a native program: equal to the NumPy rules; a sample by default, all with BEDRAX_NATIVE=all
(`nox -s native`)."""

import os
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pytest
import tensorflow as tf

from bedrax.core import staging
from bedrax.core.avals import aval_of
from bedrax.jax2tf import native
from bedrax.testing import checks
from bedrax.testing.records import all_cases, case_params
from bedrax.tf import types

SHARE = 1 if os.environ.get("BEDRAX_NATIVE") == "all" else 30
# Records that no native program can express: the exception, and a piece of its message.
GAPS = {}
CASES = [c for c in all_cases() if c.xla is True and c.primitive.family != "collectives"]
NARROW = ("int4", "uint4")  # dtypes in which elements are packed
SAMPLE = [c for c in CASES if c.id in GAPS or c.name in NARROW or zlib.crc32(c.id.encode()) % SHARE == 0]


class Program:
    """A record as the call that `native.runner` takes."""

    def __init__(self, case, args):
        self.name, self.avals = "record", [aval_of(a) for a in args]
        self.jaxpr = staging.program_of(lambda *xs: checks.as_list(case.fun(*xs)), self.avals)


def _check(case):
    args = case.make_args()
    program = Program(case, args)
    run = native.runner(program, ("cpu",), ())
    outs = tf.function(lambda *xs: run(xs), autograph=False)(*[types.constant(a) for a in args])
    for out, want, aval in zip(outs, checks.numpy_results(case, args), program.jaxpr.out_avals, strict=True):
        assert out.dtype == types.tf_dtype(aval.dtype), f"{case.id}: {out.dtype}, expected {aval.dtype}"
        checks.assert_same(out.numpy(), want, case.rtol, case.atol, case.equal_nan, what=case.id)


@pytest.mark.parametrize("case", case_params(SAMPLE))
def test_equals_numpy(case):
    with checks.x64_if_needed(case):
        if case.id in GAPS:
            kind, message = GAPS[case.id]
            with pytest.raises(kind, match=message):
                _check(case)
        else:
            _check(case)


def test_gaps_are_records():
    assert GAPS.keys() <= {c.id for c in CASES}
