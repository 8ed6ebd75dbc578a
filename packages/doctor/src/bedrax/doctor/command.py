"""The command `bedrax doctor`, which is also `python -m jax`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bedrax.doctor.report import diagnose


def main(argv: Sequence[str], prog: str = "bedrax doctor") -> int:
    """Print a report about the installation. Returns 1 if something is wrong, else 0.

    Examples:

      >>> import contextlib, io, json
      >>> from bedrax import doctor
      >>> with contextlib.redirect_stdout(io.StringIO()) as out:
      ...     status = doctor.main(["--json"])
      >>> json.loads(out.getvalue())["ok"] == (status == 0)
      True
    """
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Check the installation: versions, conflicts, options, devices, caches, and a self-test of at most"
        " ten seconds. The status is 1 if something is wrong.",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    given = parser.parse_args(argv)
    report = diagnose()
    print(report.to_json() if given.json else report.to_text(), flush=True)
    return 0 if report.ok else 1
