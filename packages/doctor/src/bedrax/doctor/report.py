"""The report: all checks, as data and as text."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from bedrax.doctor import installation, options
from bedrax.doctor.findings import Finding, Result, error, one_line

_LIMIT = 120  # seconds for the process of the probe; its watchdog is earlier
_TITLES: Final = {
    "versions": "Versions",
    "installation": "Installation",
    "extras": "Extras",
    "options": "Options that are set",
    "devices": "Devices",
    "caches": "Caches",
    "self-test": "Self-test",
}


class Report(NamedTuple):
    """The results of all checks.

    Attributes:
      facts: name of the check -> its facts.
      findings: what is wrong, or worth knowing.
    """

    facts: dict[str, dict[str, Any]]
    findings: list[Finding]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return all(finding.level != "error" for finding in self.findings)

    def to_json(self) -> str:
        """Return the report as JSON: `ok`, `findings`, `facts`.

        Examples:

          >>> from bedrax.doctor import Finding, Report
          >>> report = Report({}, [Finding("note", "upstream", "...")])
          >>> import json
          >>> json.loads(report.to_json())["ok"]
          True
        """
        found = [finding._asdict() for finding in self.findings]
        return json.dumps({"ok": self.ok, "findings": found, "facts": self.facts}, indent=2)

    def to_text(self) -> str:
        """Return the report as text for a person."""
        lines: list[str] = []
        for name, facts in self.facts.items():
            lines += [_TITLES[name], *(f"  {line}" for line in _lines(facts)), ""]
        for level, title in (("note", "Worth knowing"), ("error", "Wrong")):
            some = [finding for finding in self.findings if finding.level == level]
            if some:
                lines.append(title)
                for finding in some:
                    lines.append(f"  [{finding.code}] {finding.message}")
                    lines += [f"      {finding.remedy}"] * bool(finding.remedy)
                lines.append("")
        count = sum(finding.level == "error" for finding in self.findings)
        lines.append(
            "Nothing is wrong."
            if self.ok
            else f"{count} thing{'s' * (count > 1)} {'are' if count > 1 else 'is'} wrong."
        )
        return "\n".join(lines)


def _lines(facts: Any) -> Iterator[str]:
    """The lines of facts, which are nested dictionaries and lists."""
    if not facts:
        yield "none"
    elif isinstance(facts, dict):
        for name, value in facts.items():
            if isinstance(value, dict) and not _is_flat(value):
                yield f"{name}:"
                yield from (f"  {line}" for line in _lines(value))
            elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
                yield f"{name}:"
                yield from (f"  {_row(each)}" for each in value)
            else:
                yield f"{name}: {_row(value)}"


def _is_flat(value: dict[str, Any]) -> bool:
    return len(value) <= 3 and not any(isinstance(each, dict | list) for each in value.values())


def _row(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_row(each)}" for name, each in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_row, value)) or "none"
    return str(value)


def diagnose() -> Report:
    """Check the installation. Checks that load jaxlib run in a new process, with the options of this one.

    Examples:

      >>> from bedrax import doctor
      >>> report = doctor.diagnose()
      >>> report.facts["versions"]["implementation"]
      'CPython'
    """
    facts: dict[str, dict[str, Any]] = {}
    findings: list[Finding] = []
    here = {"versions": installation.versions, "installation": installation.installation, "extras": installation.extras}
    if options.may_be_set():
        here["options"] = options.options
    for name, check in here.items():
        try:
            result = check()
        except Exception as problem:  # a damaged installation may raise anything
            result = Result({}, [error("broken", f"The check {name!r} failed: {one_line(problem)}")])
        facts[name] = result.facts
        findings += result.findings
    for name, result in _in_a_process().items():
        if name not in facts:  # options that code has set are variables of the new process
            facts[name] = result.facts
            findings += result.findings
    return Report(facts, findings)


def _in_a_process() -> dict[str, Result]:
    """The results of the checks of `probe`."""
    if not sys.executable:
        return {"devices": Result({}, [error("no-process", "This Python has no command that starts another one.")])}
    path = os.pathsep.join(os.path.abspath(place) for place in sys.path)
    environment = {
        **os.environ,
        **options.for_a_child(),
        "PYTHONPATH": path,  # with -P: the path of this process, and nothing before it
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # this process may hold the memory of a device
    }
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder, "results")
        command = [sys.executable, "-P", "-m", __name__.rpartition(".")[0] + ".probe", str(file)]
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, errors="replace", timeout=_LIMIT, check=False
            )
            end, output = _end(done.returncode), done.stderr
        except subprocess.TimeoutExpired as problem:
            output = problem.stderr or b""
            end, output = (
                f"was ended after {_LIMIT} s",
                output.decode(errors="replace") if isinstance(output, bytes) else output,
            )
        except OSError as problem:
            return {"devices": Result({}, [error("no-process", f"No process can be started: {one_line(problem)}.")])}
        text = file.read_text(encoding="utf-8") if file.exists() else ""
    return _read(text, end, output)


def _end(code: int) -> str:
    if code >= 0:
        return f"ended with status {code}"
    try:
        return f"was ended by the signal {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by the signal {-code}"


def _read(text: str, end: str, output: str) -> dict[str, Result]:
    """The results in the lines that the probe has written. A check without a result ended the process."""
    results: dict[str, Result] = {}
    running = None
    for line in text.splitlines():
        entry = json.loads(line)
        if "started" in entry:
            running = entry["started"]
        else:
            facts, findings = entry["result"]
            results[entry["ended"]] = Result(facts, [Finding(*each) for each in findings])
            running = None
    if running is not None or not results:
        name = running or "devices"
        last = [line.strip() for line in output.strip().splitlines() if line.strip()]
        shown = f" Its last lines: {' | '.join(last[-3:])}" if last else ""
        why = "took too long, and its process" if any("Timeout (" in line for line in last) else "failed: its process"
        results[name] = Result({}, [error("ended", f"The check {name!r} {why} {end}.{shown}")])
    return results
