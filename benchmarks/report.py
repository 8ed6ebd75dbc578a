"""The output: a rich table, a JSON file, and the same table as Markdown in the README."""

import json
import math
import re
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .case import Case

NOISE = 0.05  # nearly all ratios of one implementation to itself are as close to 1 as this
HEADER = ("case", "ours", "peer", "ratio", "target", "")
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def quantity(result: dict, unit: str) -> str:
    """A measured value in a readable unit."""
    if "error" in result:
        return "fails"
    value = result["value"]
    if unit != "s":
        return f"{value:.0f} {unit}"
    scale, symbol = next(((s, n) for s, n in ((1, "s"), (1e3, "ms"), (1e6, "µs")) if value * s >= 1), (1e9, "ns"))
    return f"{value * scale:.3g} {symbol}"


def ratio(results: dict[str, dict], peer: str) -> float | None:
    """Ours over the peer's, or None if one is missing."""
    pair = results.get("ours", {}), results.get(peer, {})
    if any("value" not in result for result in pair) or pair[1]["value"] <= 0:
        return None
    return pair[0]["value"] / pair[1]["value"]


def verdict(case: Case, results: dict[str, dict]) -> str:
    """`met`, `noise` (missed, by no more than equal programs differ), `missed`, `fails` (ours raises), or "" without a
    target."""
    if "error" in results.get("ours", {}):
        return "fails"
    value = ratio(results, case.peers[0]) if case.peers else None
    if case.target is None or value is None:
        return ""
    limit = case.target + case.allowance / results[case.peers[0]]["value"]
    return "met" if value <= limit else "noise" if case.unit == "s" and value <= limit * (1 + NOISE) else "missed"


def target(case: Case) -> str:
    """The target as text."""
    if case.target is None:
        return ""
    return f"≤ {case.target:g}" + (f" + {quantity({'value': case.allowance}, case.unit)}" if case.allowance else "")


def row(case: Case, results: dict[str, dict]) -> tuple[str, ...]:
    """The cells of one case, as in HEADER."""
    ratios = [ratio(results, peer) for peer in case.peers]
    peers = [f"{quantity(results[peer], case.unit)} ({peer})" for peer in case.peers if peer in results]
    return (
        case.name,
        quantity(results["ours"], case.unit) if "ours" in results else "-",
        ", ".join(peers) or "-",
        ", ".join("-" if value is None else f"{value:.2f}" for value in ratios) or "-",
        target(case),
        verdict(case, results),
    )


COLORS = {"met": "green", "noise": "yellow", "missed": "red", "fails": "bold red", "": ""}


def print_row(console: Console, case: Case, results: dict[str, dict]) -> None:
    """Print the line of a case when its results exist."""
    name, ours, peers, ratios, target, result = row(case, results)
    color = COLORS[result]
    text = escape(f"{name:<50} {ours:>8}  {peers:<36} {ratios:>10}  {target:<7}")
    console.print(text + (f"[{color}]{result}[/]" if color else ""), soft_wrap=True, highlight=False)
    for environment, answer in results.items():
        if "error" in answer:
            first_line = answer["error"].splitlines()[0][:300]
            console.print(f"    {environment}: {escape(first_line)}", style="red", soft_wrap=True)


def print_table(console: Console, measured: list[tuple[Case, dict]]) -> None:
    table = Table(*HEADER, title="CPU time and memory, smallest of all rounds; ratio = ours / peer")
    for case, results in measured:
        cells = row(case, results)
        table.add_row(*map(escape, cells), style=COLORS[cells[-1]])
    console.print(table)


def save_json(path: Path, measured, versions) -> None:
    records = [
        {"name": case.name, "unit": case.unit, "target": target(case), "verdict": verdict(case, results)}
        | {"ratios": {peer: ratio(results, peer) for peer in case.peers}, "results": results}
        for case, results in measured
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"versions": versions, "cases": records}, indent=1), encoding="utf-8")


def markdown(measured, versions, former: str, cases: list[Case]) -> str:
    """The results as Markdown: one line on the environments, the table, and a table of ratios for each group with cells.

    Args:
      former: the text of an earlier run. Its results stay for cases that are not measured now.
      cases: all cases, in order.
    """
    environments = dict(re.findall(r"\*([^*]+)\*: ([^;\n]*)", former))
    rows = dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", former, re.MULTILINE))
    environments.update(
        (name, ", ".join(f"{package} {version}" for package, version in found.items()))
        for name, found in versions.items()
    )
    rows.update((case.name, " | ".join(row(case, results)[1:])) for case, results in measured if not case.cell)
    lines = [
        "; ".join(f"*{name}*: {found}" for name, found in environments.items()),
        "",
        "| " + " | ".join(HEADER) + " |",
        "|---|---:|---|---:|---|---|",
        *(f"| `{case.name}` | {rows[case.name]} |" for case in cases if case.name in rows and not case.cell),
    ]
    for group in dict.fromkeys(case.name.partition("/")[0] for case in cases if case.cell):
        lines += grid(group, measured, rows, [case for case in cases if case.name.startswith(f"{group}/")])
    return "\n".join(lines)


def grid(group: str, measured, rows: dict[str, str], cases: list[Case]) -> list[str]:
    """The table of the ratios of a group: a line for each row of its cells, and the geometric mean of each column."""
    columns = list(dict.fromkeys(case.cell[1] for case in cases))
    table = {
        name: dict(zip(columns, rows.get(f"{group}/{name}", "").split(" | "), strict=False))
        for name in dict.fromkeys(case.cell[0] for case in cases)
    }
    for case, results in measured:
        if case in cases:
            value = ratio(results, case.peers[0])
            table[case.cell[0]][case.cell[1]] = "fails" if value is None else f"{value:.2f}"
    table = {name: cells for name, cells in table.items() if any(cells.values())}
    if not table:
        return []
    numbers = [[float(text) for cells in table.values() if _is_number(text := cells.get(c, ""))] for c in columns]
    means = [f"{math.exp(sum(map(math.log, found)) / len(found)):.2f}" if found else "" for found in numbers]
    return [
        "",
        f"| {group}: ratios | " + " | ".join(columns) + " |",
        "|---|" + "---:|" * len(columns),
        *(
            " | ".join([f"| `{group}/{name}`", *(cells.get(c, "") for c in columns)]) + " |"
            for name, cells in table.items()
        ),
        "| geometric mean | " + " | ".join(means) + " |",
    ]


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+\.\d+", text) is not None and float(text) > 0


def update_readme(path: Path, measured, versions, cases: list[Case]) -> None:
    """Write the results between the markers of the README."""
    before, found, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    former, also_found, after = rest.partition(END)
    if not (found and also_found):
        raise ValueError(f"{path} lacks the markers {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n{markdown(measured, versions, former, cases)}\n{END}{after}", encoding="utf-8")
