"""A plugin of pytest for the suites of libraries: it runs a share of each file's tests, and writes a line of JSON for
each event.

The process of a suite loads it with `-p suite_results`. `SUITE_EVENTS` names the file of events; results that were
written stay when the process crashes. `SUITE_SHARE` is the largest number of tests of one file; 0 is all of them. `SUITE_ONLY` names a file with a list of the
tests to run, as far as they are collected.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

WHOLE = "the whole file"


def event(**fields: object) -> None:
    """Append an event to the file of events."""
    with open(os.environ["SUITE_EVENTS"], "a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")


def spread(tests: list, share: int) -> list:
    """At most `share` of the tests, with equal distances between them."""
    return tests[:: -(-len(tests) // share)] if share and tests else tests


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    share = int(os.environ.get("SUITE_SHARE", "0"))
    only = os.environ.get("SUITE_ONLY")
    names = None if only is None else set(json.loads(Path(only).read_text(encoding="utf-8")))
    of: dict[str, list[pytest.Item]] = {}
    for item in items:
        of.setdefault(item.nodeid.partition("::")[0], []).append(item)
    chosen = []
    for file, tests in of.items():
        if names is None or f"{file}::{WHOLE}" in names:
            some = spread(tests, share)
        else:
            some = [test for test in tests if test.nodeid in names]
        event(file=file, collected=len(tests), chosen=len(some))
        chosen += some
    event(collection="ended")
    kept = {item.nodeid for item in chosen}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = chosen


def pytest_runtest_logstart(nodeid: str) -> None:
    event(start=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        event(test=report.nodeid, outcome=report.outcome, message=message(report))


def pytest_runtest_logfinish(nodeid: str) -> None:
    event(end=nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    file, _, inside = report.nodeid.partition("::")
    if report.outcome != "passed" and file and not inside:
        event(whole=file, outcome=report.outcome, message=message(report))


def message(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The message of a failure, without its traceback."""
    if report.outcome != "failed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return crash.message
    lines = [line[1:].strip() for line in str(report.longrepr).splitlines() if line.startswith("E ")]
    return (lines or [str(report.longrepr)])[-1]
