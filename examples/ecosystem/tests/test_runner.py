"""What the runner says of a program that works, fails, or does not end; the table has a row for each."""

import sys

import pytest

from examples.ecosystem import __main__ as runner


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
