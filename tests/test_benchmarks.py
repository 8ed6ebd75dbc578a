"""The history of the benchmarks: regressions are found, and drawn."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
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


@pytest.fixture(scope="module")
def tables():
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks import measure, report
    finally:
        sys.path.remove(str(ROOT))
    return measure, report


def test_compiled_operations_and_models_are_sixty_and_eight(benchmarks):
    cases, _, _ = benchmarks
    table = cases.load()["compiled"]
    assert len({case.name for case in table}) == len(table)
    rows = {case.name.partition("/")[0]: set() for case in table}
    for case in table:
        rows[case.name.partition("/")[0]].add(case.cell[0])
    assert {group: len(found) for group, found in rows.items()} == {"compiled": 60, "compiled models": 8}


def test_cases_with_cells_are_one_table_of_ratios(benchmarks, tables):
    _, _, Case = benchmarks
    _, report = tables
    case = lambda row, column: Case(f"g/{row}, {column}", "", cell=(row, column))
    every = [case(row, column) for row in ("sin", "sort") for column in ("run", "compile")] + [Case("eager/add", "")]
    ratio = lambda value: {"ours": {"value": value}, "upstream": {"value": 1.0}}
    first = report.markdown([(every[0], ratio(0.5)), (every[4], ratio(0.9))], {}, "", every)
    text = report.markdown([(every[1], ratio(2.0)), (every[2], ratio(2.0))], {}, first, every)
    assert "| `g/sin` | 0.50 | 2.00 |" in text and "| `g/sort` | 2.00 |  |" in text
    assert "| geometric mean | 1.00 | 2.00 |" in text and text.count("\n| `eager/add`") == 1


def test_results_may_differ_by_rounding_of_the_largest_number(tables):
    measure, _ = tables
    x = np.array([1.0, 1000.0], np.float32)
    assert measure.difference([x, x * 0], [x * np.float32(1 + 1e-6), x * 0 + 1e-4]) == ""
    assert "array 0 differs at 1 of 2 elements" in measure.difference([x], [x + np.float32([0, 1])])
    assert "float32[2], not float64[2]" in measure.difference([x], [x.astype(np.float64)])
    assert measure.difference([np.array([np.nan, np.inf])], [np.array([np.nan, np.inf])]) == ""
    assert measure.difference([np.arange(3)], [np.arange(3) + 1]) and measure.difference([x], []) == "1 arrays, not 0"


def test_means_and_targets_of_both_peers_are_reported(benchmarks, tables):
    _, _, Case = benchmarks
    _, report = tables
    every = [
        Case("second start/a, CPU", "", peers=("upstream", "upstream:kept"), target=(0.4, 0.7)),
        Case("second start/b, CPU", "", peers=("upstream", "upstream:kept"), target=(0.4, 0.7)),
        Case("compiled/sin, forward", "", target=1.03, cell=("sin", "forward")),
    ]
    results = lambda *values: dict(zip(("ours", "upstream", "upstream:kept"), ({"value": v} for v in values)))
    measured = list(zip(every, (results(1, 10, 2), results(4, 10, 5), results(1.2, 1))))
    verdicts = [report.verdict(case, found) for case, found in measured[:2]]
    assert verdicts == ["met", "missed"]  # 0.8 of the second peer
    text = report.markdown(measured, {}, "", every)
    assert "| second start, to upstream's default | 0.20 | ≤ 0.22 | met | 0.40 | `second start/b, CPU` |" in text
    assert "| second start, to upstream's with its cache | 0.63 | ≤ 0.45 | missed | 0.80 |" in text
    late = text.partition("Above the target:")[2].partition("| case")[0]
    assert "`second start/b, CPU` 0.40, 0.80" in late and "`compiled/sin, forward` 1.20" in late
    assert "`second start/a" not in late
    assert report.markdown([], {}, text, every) == text  # a later run keeps what it does not measure


@pytest.mark.parametrize("page", ["README.md", "newest.md"])
def test_every_case_above_its_target_has_a_reason(tables, page):
    _, report = tables
    assert report.UNKNOWN not in (ROOT / "benchmarks" / page).read_text(encoding="utf-8")


def test_programs_that_differ_by_names_are_the_same_program(benchmarks):
    import jax
    import jax.numpy as jnp

    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.paired import body_of
    finally:
        sys.path.remove(str(ROOT))

    def one(x):
        return jnp.sum(jnp.sin(x) * 2)

    def renamed(operand):
        with jax.named_scope("layer"):
            return jnp.sum(jnp.sin(operand) * 2)

    x = np.ones((64, 8), np.float32)
    first, second, other = (
        body_of(jax.jit(f).lower(x).compile()) for f in (one, renamed, lambda x: jnp.sum(jnp.cos(x) * 2))
    )
    assert first == second != other and "sine" in first
