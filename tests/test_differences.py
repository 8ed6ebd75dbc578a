"""The differential run fails on differences that its table does not list; the documentation shows the table."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tests" / "programs" / "differential.py"


def _run(*args):
    return subprocess.run([sys.executable, PROGRAM, *args], capture_output=True, text=True, cwd=ROOT)


def _array(dtype, value, weak=False):
    return "ok", "*", [("array", dtype, weak, (), np.asarray(value, dtype))]


SAME = _array("float32", 1.0)
REFUSED = ("error", "ValueError", "no", ["ValueError", "Exception"])


@pytest.mark.parametrize(
    ("theirs", "ours", "fails"),
    [
        (SAME, SAME, False),
        (SAME, _array("float32", 2.0), True),
        (SAME, _array("int32", 1), True),
        (SAME, REFUSED, True),
        (_array("float32", 1.0), _array("float32", 1.0, True), False),
        (_array("float32", 1.0, True), SAME, True),
        (REFUSED, ("error", "AxisError", "no", ["AxisError", "ValueError"]), False),
        (REFUSED, ("error", "TypeError", "no", ["TypeError"]), True),
        (SAME, None, True),
    ],
)
def test_only_unexpected_differences_fail(tmp_path, theirs, ours, fails):
    for name, result in (("theirs", theirs), ("ours", ours)):
        with open(tmp_path / name, "wb") as file:
            if result is not None:
                pickle.dump((("numpy.f", "float"), result), file)
    done = _run("compare", tmp_path / "theirs", tmp_path / "ours")
    assert (done.returncode, done.stderr) == (int(fails), "")
    assert ("numpy.f (float)" in done.stdout) == fails


GIVEN = ("numpy.f", "given")


@pytest.mark.parametrize(
    ("kind", "theirs", "ours", "given", "fails"),
    [
        ("object", REFUSED, SAME, SAME, False),
        ("object", REFUSED, SAME, _array("float32", 2.0), True),
        ("object", REFUSED, SAME, None, True),
        ("object", _array("float32", 2.0), SAME, SAME, True),
        ("none", REFUSED, ("error", "TypeError", "no", ["TypeError"]), SAME, False),
        ("none", REFUSED, SAME, SAME, True),
    ],
)
def test_an_expected_difference_has_a_property(tmp_path, kind, theirs, ours, given, fails):
    for name, result in (("theirs", theirs), ("ours", ours)):
        with open(tmp_path / name, "wb") as file:
            pickle.dump((("numpy.f", kind), result), file)
            if given is not None:
                pickle.dump((GIVEN, given), file)
    done = _run("compare", tmp_path / "theirs", tmp_path / "ours")
    assert (done.returncode, done.stderr) == (int(fails), "")


NAN = ("ok", "*", [("array", "float32", False, (), np.float32("nan"))])


@pytest.mark.parametrize(
    ("key", "theirs", "ours", "number", "fails"),
    [
        (("numpy.f", "list"), SAME, _array("float32", 1.0, True), _array("float32", 1.0, True), False),
        (("numpy.f", "list"), SAME, _array("float32", 1.0, True), SAME, True),  # not the result of the number
        (("numpy.f", "list"), SAME, _array("float32", 2.0, True), _array("float32", 2.0, True), True),  # another value
        (("numpy.median", "empty"), REFUSED, NAN, None, False),
        (("numpy.median", "empty"), REFUSED, SAME, None, True),
        (("numpy.f", "empty"), REFUSED, NAN, None, True),
    ],
)
def test_results_of_lists_and_medians_of_nothing(tmp_path, key, theirs, ours, number, fails):
    for name, result in (("theirs", theirs), ("ours", ours)):
        with open(tmp_path / name, "wb") as file:
            pickle.dump((key, result), file)
            if number is not None:
                pickle.dump(((key[0], "float"), number), file)
    done = _run("compare", tmp_path / "theirs", tmp_path / "ours")
    assert (done.returncode, done.stderr) == (int(fails), "")


def test_the_page_shows_the_table():
    table = _run("page").stdout
    assert table in (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    assert {row.count("|") for row in table.strip().split("\n")} == {5}  # no cell has a bar of its own
