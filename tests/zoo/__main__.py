"""Measure all models and write the page: ``python -m tests.zoo``."""

from __future__ import annotations

import pathlib
import sys

from tests.zoo.measure import Result, in_javascript, measure
from tests.zoo.models import ZOO

START = "<!-- measured -->\n"
HEAD = """| model | plain graph | native | nodes | saved, kB | converted, s | TFLite | quantized | TF.js | TFLite's operations |
|---|---|---|---|---|---|---|---|---|---|
"""


def row(result: Result, javascript: str) -> str:
    """A row of the table."""
    number = lambda x: "no" if x is None else f"{x:.0e}"
    return (
        f"| {result.name} | {number(result.plain)} | {number(result.native)} | {result.operations} |"
        f" {result.kilobytes:.0f} | {result.seconds:.2f} | {number(result.mobile_error)} |"
        f" {number(result.quantized_error)} | {javascript} | {result.mobile} |\n"
    )


def main() -> None:
    page = pathlib.Path(__file__).parent / "README.md"
    rows = []
    for record, javascript in zip(ZOO, in_javascript(ZOO), strict=True):
        rows.append(row(measure(record), javascript))
        sys.stdout.write(rows[-1])
    text = page.read_text(encoding="utf-8").split(START)[0]
    page.write_text(text + START + HEAD + "".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
