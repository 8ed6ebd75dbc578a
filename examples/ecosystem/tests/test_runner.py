"""The runner's report on a program that works, fails, or does not end; the table has a row for each program."""

import sys

import pytest

from examples.ecosystem import __main__ as runner
from examples.ecosystem import suites


@pytest.mark.parametrize(
    "body, state",
    [
        ("print(1)", "works"),
        (
            "import sys\nassert 'programs' not in sys.path[0]\nraise ValueError('of shape (3,)')",
            "ValueError: of shape (3,)",
        ),
        ("raise SystemExit('no error')", "no error"),
        ("import time\ntime.sleep(60)", "no end after 1 s"),
    ],
)
def test_state(tmp_path, monkeypatch, body, state):
    monkeypatch.setattr(runner, "PROGRAMS", tmp_path)
    (tmp_path / "optax.py").write_text(body)
    limit = 1 if "sleep" in body else 60
    assert runner.run(sys.executable, "optax", limit)[0] == state


def test_every_program_has_a_row_that_says_what_it_does():
    page = (runner.HERE / "README.md").read_text()
    for name in runner.names():
        assert f"| {name} |" in page and f"| {runner.purpose(name)} |" in page, name
    assert set(runner.DISTRIBUTION) <= set(runner.names())


def test_a_row_replaces_the_one_of_its_name():
    page = f"a\n{runner.MARK}\n\n| n | p | x |\n|---|---|---|\n| b | 3.11 | 1 |\n| d | 3.11 | 2 |\n\n{runner.MARK}\nz"
    new = page
    for row in ("| b | 3.11 | 3 |", "| c | 3.11 | 4 |", "| b | 3.13 | 5 |"):
        new = runner.replaced(new, row)
    assert new == page.replace("| b | 3.11 | 1 |", "| b | 3.11 | 3 |\n| b | 3.13 | 5 |\n| c | 3.11 | 4 |")


def test_results_of_a_suite(tmp_path, monkeypatch):
    (tmp_path / "conftest.py").write_text("")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): raise ValueError('of shape (3,)')\n"
        "def test_known(): assert 0\n"
        "@pytest.mark.skip\ndef test_other(): pass\n"
    )
    counts, failed = suites.run(sys.executable, tmp_path, "test_it.py", 120)
    assert (
        counts == {"passed": 1, "failed": 2, "skipped": 1} and runner.counted(counts) == "1 passed, 2 failed, 1 skipped"
    )
    assert failed["test_it.test_bad"] == "ValueError: of shape (3,)"
    monkeypatch.setattr(suites, "KNOWN", {("optax", "test_known"): "a reason"})
    assert suites.explained("optax", failed) == ({"a reason": 1}, {"test_it.test_bad": "ValueError: of shape (3,)"})
    assert suites.run(sys.executable, tmp_path, "no_such_file.py", 120)[0]["passed"] == 0


def test_the_table_of_suites_is_of_the_shares():
    page = (runner.HERE / "README.md").read_text().split(runner.SUITES_MARK)[1]
    rows = [line.split("|")[1].strip() for line in page.strip().split("\n")[2:]]
    assert set(rows) | {name for name, _ in suites.KNOWN} <= set(suites.SHARES)
    assert rows == sorted(rows)
