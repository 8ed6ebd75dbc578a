"""Every record as a native program: equal to the NumPy rules; a sample by default, all with BEDRAX_NATIVE=all
(`nox -s native`)."""

import os
import subprocess
import sys
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
# TensorFlow's XLA on the CPU ignores nan in one operand of a maximum or minimum, and the signs of zeros. This option of
# XLA changes that, for its own functions and for ours.
EXACT = "--xla_cpu_enable_fast_min_max=false"
INEXACT = {
    "cumulative-cummax-nan",
    "elementwise-clamp-crossed",
    "elementwise-max-nan",
    "elementwise-max-zeros",
    "elementwise-min-nan",
    "elementwise-min-zeros",
    "reductions-reduce_max-nan",
    "reductions-reduce_min-nan",
}
CALLBACKS = ("pure_callback-sequential", "pure_callback-batches", "io_callback-unordered", "debug_callback-unordered")
# Records that are not native programs, or have other results there: the exception, and a piece of its message.
GAPS = {
    **dict.fromkeys((f"callbacks-{name}" for name in CALLBACKS), (NotImplementedError, "calls back into Python")),
    "contractions-scaled_dot-float8": (TypeError, "TensorFlow has no dtype for f8_e8m0fnu"),
    "linalg-svd-qr_algorithm": (NotImplementedError, "QR is not available"),
    "sorting-sort-int4 front": (NotImplementedError, "arrays of uint2"),
}
if EXACT not in os.environ.get("XLA_FLAGS", ""):
    GAPS |= dict.fromkeys(INEXACT, (AssertionError, "Not equal|not equal"))
CASES = [c for c in all_cases() if c.xla is True and c.primitive.family != "collectives"]
NARROW = ("int4", "uint4")  # dtypes in which elements are packed
SAMPLE = [c for c in CASES if c.id in {*GAPS, *INEXACT} or c.name in NARROW or zlib.crc32(c.id.encode()) % SHARE == 0]


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
    assert {*GAPS, *INEXACT} <= {c.id for c in CASES}


@pytest.mark.skipif(EXACT in os.environ.get("XLA_FLAGS", ""), reason="this process has the option")
def test_nan_and_signs_of_zeros_with_exact_maxima():
    """XLA reads its options once in a process."""
    tests = [f"{__file__}::test_equals_numpy[{name}]" for name in sorted(INEXACT)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    flags = " ".join((os.environ.get("XLA_FLAGS", ""), EXACT)).strip()
    out = subprocess.run(command, env={**os.environ, "XLA_FLAGS": flags}, capture_output=True, text=True, check=False)
    assert out.returncode == 0 and f"{len(INEXACT)} passed" in out.stdout, out.stdout + out.stderr
