"""Facts and findings: the results of a check."""

from __future__ import annotations

from typing import Any, NamedTuple


class Finding(NamedTuple):
    """One sentence of a report about the installation.

    Attributes:
      level: "error" if something is wrong, "note" if it is only worth knowing.
      code: a short name of the kind of finding, for programs that read the report.
      message: what was found, and what was expected.
      remedy: what to do, or "".
    """

    level: str
    code: str
    message: str
    remedy: str = ""


class Result(NamedTuple):
    """The result of one check: facts, which JSON can represent, and findings."""

    facts: dict[str, Any]
    findings: list[Finding]


def error(code: str, message: str, remedy: str = "") -> Finding:
    """Return a finding that makes the report fail."""
    return Finding("error", code, message, remedy)


def note(code: str, message: str, remedy: str = "") -> Finding:
    """Return a finding that does not make the report fail."""
    return Finding("note", code, message, remedy)


def one_line(problem: BaseException) -> str:
    """Return an exception as one line."""
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"
