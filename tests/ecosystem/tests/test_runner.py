"""The runner's report on a program that works, fails, or does not end; the table has a row for each program."""

import sys

import pytest

from tests.ecosystem import __main__ as runner
from tests.ecosystem import suites


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
    (tmp_path / "optax.py").write_text(body, encoding="utf-8")
    limit = 1 if "sleep" in body else 60
    assert runner.run(sys.executable, "optax", limit)[0] == state


def test_every_program_has_a_row_that_says_what_it_does():
    page = (runner.HERE / "README.md").read_text(encoding="utf-8")
    for name in runner.names():
        assert f"| {name} |" in page and f"| {runner.purpose(name)} |" in page, name
    assert set(runner.DISTRIBUTION) <= set(runner.names())


def test_a_row_replaces_the_one_of_its_name():
    page = f"a\n{runner.MARK}\n\n| n | p | x |\n|---|---|---|\n| b | 3.11 | 1 |\n| d | 3.11 | 2 |\n\n{runner.MARK}\nz"
    new = page
    for row in ("| b | 3.11 | 3 |", "| c | 3.11 | 4 |", "| b | 3.13 | 5 |"):
        new = runner.replaced(new, row)
    assert new == page.replace("| b | 3.11 | 1 |", "| b | 3.11 | 3 |\n| b | 3.13 | 5 |\n| c | 3.11 | 4 |")


def test_results_of_a_file_of_a_suite(tmp_path, monkeypatch):
    (tmp_path / "conftest.py").write_text("", encoding="utf-8")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): raise ValueError('of shape (3,)')\n"
        "def test_known(): assert 0\n"
        "@pytest.mark.skip\ndef test_other(): pass\n",
        encoding="utf-8",
    )
    here = suites.run(sys.executable, tmp_path, "test_it.py", 120)
    bad = {"test_it.test_bad": "ValueError: of shape (3,)"}
    assert here == {"passed": 1, "skipped": 1, "failed": bad | {"test_it.test_known": "assert 0"}}
    assert suites.counts([here, here]) == "2 passed, 4 failed, 2 skipped"
    there = {"passed": 2, "failed": {"test_it.test_known": "another message"}}
    assert suites.alone({"here": here, "upstream": there}) == bad
    assert suites.alone({"here": here}) == here["failed"]
    assert suites.alone({"here": here, "upstream": {"failed": {"the whole file": "no end"}}}) == {}
    monkeypatch.setattr(suites, "KNOWN", {("optax", "test_known"): "a reason"})
    assert [suites.reason("optax", test) for test in here["failed"]] == ["open", "a reason"]


@pytest.mark.parametrize(
    "body, state",
    [
        ("import os; os.abort()", "pytest wrote no report and ended with status -6"),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM}); time.sleep(60)", "no end after 4 s"),
    ],
)
def test_a_file_of_a_suite_that_does_not_end_well(tmp_path, monkeypatch, body, state):
    monkeypatch.setattr(suites, "GRACE", 1)
    (tmp_path / "test_it.py").write_text(f"import signal, time\ndef test_it(): {body}", encoding="utf-8")
    limit = 3 if "sleep" in body else 60
    assert suites.run(sys.executable, tmp_path, "test_it.py", limit) == {"failed": {"the whole file": state}}


def test_a_file_of_a_suite_that_is_ended_keeps_its_results(tmp_path, monkeypatch):
    monkeypatch.setattr(suites, "LIMIT_OF_A_TEST", 1)
    body = "import time, pytest\ndef test_good(): pass\n@pytest.mark.parametrize('n', range(60))\ndef test_it(n): time.sleep(n)"
    (tmp_path / "test_it.py").write_text(body, encoding="utf-8")
    result = suites.run(sys.executable, tmp_path, "test_it.py", 5)
    assert result["part"] == 1 and result["passed"] == 2 and 3 < len(result["failed"]) < 50
    assert set(result["failed"].values()) == {"Failed: Timeout (>1.0s) from pytest-timeout."}
    assert suites.counts([result]).endswith("failed (in part)")


def test_failed_tests_run_alone(tmp_path):
    (tmp_path / "of").mkdir()
    (tmp_path / "of/test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', ['a', 'b.c'])\ndef test_one(n): assert n == 'a'\n"
        "class TestAll:\n    def test_two(self): assert 0\n",
        encoding="utf-8",
    )
    whole = suites.run(sys.executable, tmp_path, "of/test_it.py", 60)
    assert whole["passed"] == 1 and [*whole["failed"]] == ["of.test_it.test_one[b.c]", "of.test_it.TestAll.test_two"]
    assert suites.run(sys.executable, tmp_path, "of/test_it.py", 60, only=whole["failed"]) == {
        "failed": whole["failed"]
    }
    unknown = {"of.test_it.test.with.dots": ""}
    assert suites.run(sys.executable, tmp_path, "of/test_it.py", 60, only=unknown) == whole
    assert suites.identifiers("of/test_it.py", {"the whole file": ""}) == ["of/test_it.py"]


def test_files_of_a_suite(tmp_path):
    for name in ("conftest.py", "of/a_test.py", "of/b.py", "of/c/test_d.py", "e_test.py", "docs/f_test.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    assert suites.files(tmp_path) == ["e_test.py", "of/a_test.py", "of/c/test_d.py"]
    assert suites.files(tmp_path, "of/c e_test.py") == ["e_test.py", "of/c/test_d.py"]


def test_a_message_names_no_folder_of_this_machine():
    line = "No such file: '/home/me/x-1/y.py' <f at 0x7f00aabb1122> of a/b\nmore"
    assert suites.first_line(line) == "No such file: 'y.py' <f at 0x...> of a/b"


def test_the_record_keeps_results_of_one_version():
    about = {"version": "1.0", "of": 2, "upstream": "0.9"}
    record = {}
    suites.recorded(record, "a", "3.11 / 0.8", about)["a_test.py"] = {"here": {"passed": 1}, "upstream": {"passed": 1}}
    assert suites.recorded(record, "a", "3.11 / 0.8", about) == {
        "a_test.py": {"here": {"passed": 1}, "upstream": {"passed": 1}}
    }
    row = "| a | 3.11 / 0.8 | 1.0 |"
    assert suites.rows(record) == [f"{row} 1 of 2 | 1 | 0 | 0 |  |"]
    both = {"here": {"passed": 2, "part": 1, "failed": {"b_test.b": "it", "b_test.c": "it"}}}
    suites.recorded(record, "a", "3.11 / 0.8", about)["b_test.py"] = both
    assert suites.rows(record) == [f"{row} all 2, 1 in part | 3 | 0 | 0 | 2: upstream has no result yet |"]
    both["upstream"] = {"passed": 1, "failed": {"b_test.b": "it"}}
    assert suites.rows(record) == [f"{row} all 2, 1 in part | 3 | 0 | 1 | 1: open |"]
    assert suites.recorded(record, "a", "3.11 / 0.8", about | {"version": "1.1"}) == {}


def test_the_table_of_suites_is_written_from_the_record():
    page = (runner.HERE / "README.md").read_text(encoding="utf-8").split(runner.SUITES_MARK)[1]
    record = suites.read()
    assert page.strip().split("\n")[2:] == suites.rows(record)
    assert {*record, *(name for name, _ in suites.KNOWN)} <= set(suites.SHARES)
    for name, part in suites.KNOWN:  # each known failure of a library in the record is there
        each = [file for suite in record.get(name, {}).values() for file in suite["files"].values()]
        assert not each or any(part in test for file in each for test in suites.alone(file)), (name, part)
