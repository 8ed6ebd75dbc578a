"""The history of the benchmarks: regressions are found, and drawn."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def benchmarks():
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks import cases, history
        from benchmarks.case import Case
    finally:
        sys.path.remove(str(ROOT))
    return cases, history, Case


PAST = [
    {"commit": "1111111", "cases": {"eager/add": 0.8, "eager/sin": 1.0, "trace/mlp": 0.2}},
    {"commit": "2222222", "cases": {"eager/add": 0.7}},
]


def test_a_case_is_compared_with_its_last_number(benchmarks):
    _, history, _ = benchmarks
    now = {"eager/add": 0.74, "eager/sin": 1.04, "trace/mlp": 0.25, "eager/new": 3.0}
    assert history.regressions(now, PAST) == [("eager/add", 0.7, 0.74, "2222222"), ("trace/mlp", 0.2, 0.25, "1111111")]


def test_the_number_of_a_case_is_its_ratio_to_the_first_peer(benchmarks):
    _, history, Case = benchmarks
    alone, failed = Case("a/alone", "", peers=()), Case("a/failed", "")
    measured = [
        (
            Case("a/pair", "", peers=("upstream", "optree")),
            {k: {"value": v} for k, v in zip(("ours", "upstream", "optree"), (1.0, 4.0, 8.0))},
        ),
        (alone, {"ours": {"value": 3.0}}),
        (failed, {"ours": {"error": "no"}, "upstream": {"value": 1.0}}),
    ]
    assert history.numbers(measured) == {"a/pair": 0.25, "a/alone": 3.0}


def test_the_picture_has_a_line_for_each_group(benchmarks):
    _, history, _ = benchmarks
    root = ElementTree.fromstring(history.draw(PAST))
    lines = [e.attrib["points"].split() for e in root.iter("{http://www.w3.org/2000/svg}polyline")]
    assert sorted(map(len, lines)) == [1, 2]  # trace is in one file, eager in both
    assert {"eager: 0.70", "trace: 0.20"} <= {e.text for e in root.iter("{http://www.w3.org/2000/svg}text")}


def test_every_start_is_a_case(benchmarks):
    cases, _, _ = benchmarks
    programs = {path.stem.replace("_", " ") for path in (ROOT / "benchmarks" / "starts").glob("[a-z]*.py")}
    names = {case.name for case in cases.load()["starts"]}
    assert names == {f"{w} start/{p}, {m}" for w in ("first", "second") for p in programs for m in ("CPU", "clock")}
