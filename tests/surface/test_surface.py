"""Each public function, in each mode; a sample of them by default, all with BEDRAX_SURFACE=all (`nox -s surface`)."""

import os
import warnings
import zlib

import modes
import pytest
import records
from known_gaps import KNOWN_GAPS

FUNCTIONS = dict(records.public_functions())
SHARE = 1 if os.environ.get("BEDRAX_SURFACE") == "all" else 160


def pairs():
    for name in FUNCTIONS:
        if name not in records.ELSEWHERE:
            for mode in modes.MODES:
                if zlib.crc32(f"{name} {mode}".encode()) % SHARE == 0:
                    needs = [pytest.mark.needs("tensorflow")] if modes.MODES[mode] is modes.tensorflow else ()
                    yield pytest.param(name, mode, marks=needs)


def test_every_public_function_has_a_record():
    missing = [n for n, f in FUNCTIONS.items() if n not in records.ELSEWHERE and records.record(n, f) is None]
    assert not missing, f"give their arguments in records.CALLS, or their test in records.ELSEWHERE: {missing}"


def test_every_record_names_a_function():
    known = {*records.CALLS, *records.ELSEWHERE, *(name for name, _ in KNOWN_GAPS)}
    assert not known - FUNCTIONS.keys(), sorted(known - FUNCTIONS.keys())
    assert not {mode for _, mode in KNOWN_GAPS} - modes.MODES.keys()


def test_the_named_tests_exist(absent_tests):
    assert not absent_tests(records.ELSEWHERE.values())


@pytest.mark.parametrize(("name", "mode"), list(pairs()))
def test_surface(name, mode):
    record = records.record(name, FUNCTIONS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            modes.MODES[mode](record)
        except modes.Skip as why:
            assert (name, mode) not in KNOWN_GAPS, f"the mode does not apply ({why}); remove the entry"
            return
        except Exception:
            if (name, mode) in KNOWN_GAPS:
                return
            raise
    assert (name, mode) not in KNOWN_GAPS, "this holds now; remove the entry"
