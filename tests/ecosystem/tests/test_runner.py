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


def test_every_program_has_a_row_with_its_purpose():
    page = (runner.HERE / "README.md").read_text(encoding="utf-8")
    for name in runner.names():
        assert f"| {name} |" in page and f"| {runner.purpose(name)} |" in page, name
    assert set(runner.DISTRIBUTION) <= set(runner.names())


def test_a_row_replaces_the_former_row_of_its_name():
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
    (here,) = suites.run(sys.executable, tmp_path, ["test_it.py"], 120).values()
    bad = {"test_bad": "ValueError: of shape (3,)"}
    assert here == {"passed": 1, "skipped": 1, "failed": bad | {"test_known": "assert 0"}}
    assert suites.counts([here, here]) == "2 passed, 4 failed, 2 skipped"
    there = {"passed": 2, "failed": {"test_known": "another message"}}
    assert suites.alone({"here": here, "upstream": there}) == bad
    assert suites.alone({"here": here}) == here["failed"]
    assert suites.alone({"here": here, "upstream": {"failed": {"the whole file": "no end"}}}) == {}
    monkeypatch.setattr(suites, "KNOWN", {("optax", "test_known"): "a reason"})
    assert [suites.reason("optax", test) for test in here["failed"]] == ["open", "a reason"]
    assert (
        suites.reason("optax", "test_it", "Failed: Timeout (>1.0s) from pytest-timeout.") == "the time limit of a test"
    )


@pytest.mark.parametrize(
    "body, state",
    [
        ("import os; os.abort()", "the process ended with status -6"),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM}); time.sleep(60)", "no end after 4 s"),
    ],
)
@pytest.mark.parametrize("inside", [True, False])
def test_a_file_of_a_suite_that_aborts_or_hangs(tmp_path, monkeypatch, body, state, inside):
    monkeypatch.setattr(suites, "GRACE", 1)
    text = f"import signal, time\ndef test_good(): pass\ndef test_it(): {body}\ndef test_last(): pass"
    (tmp_path / "test_it.py").write_text(text if inside else f"import signal, time\n{body}", encoding="utf-8")
    limit = 3 if "sleep" in body else 60
    (here,) = suites.run(sys.executable, tmp_path, ["test_it.py"], limit).values()
    whole = {"failed": {"the whole file": state}}
    assert here == ({"passed": 1, "failed": {"test_it": state}, "part": 1} if inside else whole)


def test_files_of_a_process_that_a_crash_ended_run_again(tmp_path):
    for name, body in [("a", "assert 0"), ("b", "import os; os.abort()"), ("c", "pass"), ("d", "pass")]:
        (tmp_path / f"test_{name}.py").write_text(f"def test_it(): {body}", encoding="utf-8")
    (tmp_path / "test_e.py").write_text("import os; os.abort()", encoding="utf-8")
    (tmp_path / "test_f.py").write_text("import no_such_module", encoding="utf-8")
    crash = "the process ended with status -6"
    states = [
        {"failed": {"test_it": "assert 0"}},
        {"failed": {"test_it": crash}},
        {"passed": 1},
        {"passed": 1},
        {"failed": {"the whole file": crash}},
        {"failed": {"the whole file": "ModuleNotFoundError: No module named 'no_such_module'"}},
    ]
    names = [f"test_{name}.py" for name in "abcdef"]
    for some in ("abcd", "ef", "abcdef"):
        wanted = {name: state for name, state in zip(names, states, strict=True) if name[5] in some}
        assert suites.run(sys.executable, tmp_path, wanted, 60) == wanted


def test_a_file_of_a_suite_that_is_ended_keeps_its_results(tmp_path):
    body = "import time, pytest\ndef test_good(): pass\n@pytest.mark.parametrize('n', range(60))\ndef test_it(n): time.sleep(n)"
    (tmp_path / "test_it.py").write_text(body, encoding="utf-8")
    (tmp_path / "test_next.py").write_text("def test_it(): pass", encoding="utf-8")
    found = suites.run(sys.executable, tmp_path, ["test_it.py", "test_next.py"], 5, limit_of_a_test=1)
    assert [*found] == ["test_it.py"]
    result = found["test_it.py"]
    assert result["part"] == 1 and result["passed"] == 2 and 3 < len(result["failed"]) < 50
    assert set(result["failed"].values()) == {"Failed: Timeout (>1.0s) from pytest-timeout."}
    assert suites.counts([result]).endswith("failed (in part)")


def test_a_share_of_each_file(tmp_path):
    body = "import pytest\n@pytest.mark.parametrize('n', range(10))\ndef test_it(n): assert n % 2 == 0"
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text(body, encoding="utf-8")
    (tmp_path / "test_c.py").write_text("def test_it(): pass", encoding="utf-8")
    (tmp_path / "test_d.py").write_text("def helper(): pass", encoding="utf-8")
    files = [f"test_{name}.py" for name in "abcd"]
    some = {"passed": 2, "failed": {"test_it[3]": "assert (3 % 2) == 0", "test_it[9]": "assert (9 % 2) == 0"}, "of": 10}
    here = suites.run(sys.executable, tmp_path, files, 60, share=4)
    assert here == {"test_a.py": some, "test_b.py": some, "test_c.py": {"passed": 1}, "test_d.py": {}}
    assert suites.counts([some]) == "2 passed, 2 failed"


def test_failed_tests_run_alone(tmp_path):
    (tmp_path / "of").mkdir()
    (tmp_path / "of/test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', ['a', 'b.c'])\ndef test_one(n): assert n == 'a'\n"
        "class TestAll:\n    def test_two(self): assert 0\n",
        encoding="utf-8",
    )
    (whole,) = suites.run(sys.executable, tmp_path, ["of/test_it.py"], 60).values()
    assert whole["passed"] == 1 and [*whole["failed"]] == ["test_one[b.c]", "TestAll::test_two"]
    for only, result in [
        (whole["failed"], {"failed": whole["failed"]}),
        ({"the whole file": ""}, whole),
        ({"TestAll::test_two": "", "an unknown test": ""}, {"failed": {"TestAll::test_two": "assert 0"}}),
        ({"an unknown test": ""}, {}),
    ]:
        assert suites.run(sys.executable, tmp_path, ["of/test_it.py"], 60, only={"of/test_it.py": only}) == {
            "of/test_it.py": result
        }


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
    both = {"here": {"passed": 2, "part": 1, "failed": {"b": "it", "c": "it"}}}
    suites.recorded(record, "a", "3.11 / 0.8", about)["b_test.py"] = both
    assert suites.rows(record) == [f"{row} all 2, 1 in part | 3 | 0 | 0 | 2: upstream has no result yet |"]
    both["upstream"] = {"passed": 1, "failed": {"b": "it"}}
    assert suites.rows(record) == [f"{row} all 2, 1 in part | 3 | 0 | 1 | 1: open |"]
    both["here"]["of"] = 9
    assert suites.rows(record) == [f"{row} all 2, 1 by a share, 1 in part | 3 | 0 | 1 | 1: open |"]
    assert suites.recorded(record, "a", "3.11 / 0.8", about | {"version": "1.1"}) == {}


def test_the_table_of_suites_is_written_from_the_record():
    page = (runner.HERE / "README.md").read_text(encoding="utf-8").split(runner.SUITES_MARK)[1]
    record = suites.read()
    assert page.strip().split("\n")[2:] == suites.rows(record)
    assert {*record, *(name for name, _ in suites.KNOWN)} <= set(suites.SHARES)
    for name, part in suites.KNOWN:  # each known failure of a library in the record is there
        each = [file for suite in record.get(name, {}).values() for file in suite["files"].values()]
        assert not each or any(part in test for file in each for test in suites.alone(file)), (name, part)
