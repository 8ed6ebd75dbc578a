"""The page about TensorFlow has all promises and limitations, and the tests that it names exist."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import tensorflow_page


def _tree(path):
    return ast.parse((ROOT / "packages" / path).read_text(encoding="utf-8"))


def test_the_page_has_a_row_for_each_promise_and_limitation():
    rows = {line for line in tensorflow_page.page().splitlines() if line.startswith("| ")}
    promises = [
        f"| {promise} | {state} | `{test}` |" for r in tensorflow_page.PROMISES.values() for promise, state, test in r
    ]
    limits = [f"| {what} | {advice} | {case} |" for case, (what, advice) in tensorflow_page.LIMITATIONS.items()]
    assert rows >= {*promises, *limits}


def test_the_named_tests_exist(absent_tests):
    named = [f"packages/{test}" for rows in tensorflow_page.PROMISES.values() for _, _, test in rows]
    assert len(named) > 40 and not absent_tests(named)


def test_every_limitation_is_tested():
    (table,) = [
        n.value
        for n in _tree(tensorflow_page.LIMITS).body
        if isinstance(n, ast.Assign) and n.targets[0].id == "LIMITATIONS"
    ]
    assert {key.value for key in table.keys} == set(tensorflow_page.LIMITATIONS)
