"""The output: a rich table, a JSON file, and the same table as Markdown in the README."""

import json
import math
import re
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .case import Case
from .cases.aims import AIMS, REASONS

NOISE = 0.05  # nearly all ratios of one implementation to itself are as close to 1 as this
HEADER = ("case", "ours", "peer", "ratio", "target", "")
UNKNOWN = "The reason is not known."
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
    found = [
        (value, limit + case.allowance / results[peer]["value"])
        for peer, limit in zip(case.peers, case.targets, strict=False)
        if (value := ratio(results, peer)) is not None
    ]
    if not found:
        return ""
    noise = NOISE if case.unit == "s" else 0.0
    if all(value <= limit for value, limit in found):
        return "met"
    return "noise" if all(value <= limit * (1 + noise) for value, limit in found) else "missed"


def target(case: Case) -> str:
    """The targets as text."""
    more = f" + {quantity({'value': case.allowance}, case.unit)}" if case.allowance else ""
    return ", ".join(f"≤ {limit:g}{more}" for limit in case.targets)


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
    text = escape(f"{name:<50} {ours:>8}  {peers:<36} {ratios:>10}  {target:<14}")
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
    """The results as Markdown: one line on the environments, the aims for groups, what is above its target and why, the
    table of cases, and a table of ratios for each group with cells.

    Args:
      former: the text of an earlier run. Its results stay for cases that are not measured now.
      cases: all cases, in order.
    """
    environments = dict(re.findall(r"\*([^*|]+)\*: ([^;\n]*)", former.partition("\n\n")[0]))
    rows = dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", former, re.MULTILINE))
    environments.update(
        (name, ", ".join(f"{package} {version}" for package, version in found.items()))
        for name, found in versions.items()
    )
    rows.update((case.name, " | ".join(row(case, results)[1:])) for case, results in measured if not case.cell)
    groups = dict.fromkeys(case.name.partition("/")[0] for case in cases if case.cell)
    grids = {
        group: grid(group, measured, rows, [case for case in cases if case.name.startswith(f"{group}/")])
        for group in groups
    }
    ratios = {case.name: _numbers(rows[case.name].split(" | ")[2]) for case in cases if case.name in rows}
    ratios |= {
        case.name: _numbers(grids[group].get(case.cell[0], {}).get(case.cell[1], ""))
        for case in cases
        if case.cell
        for group in [case.name.partition("/")[0]]
    }
    lines = ["; ".join(f"*{name}*: {found}" for name, found in environments.items()), "", *aims(ratios), ""]
    lines += above(cases, rows, ratios)
    lines += [
        "| " + " | ".join(HEADER) + " |",
        "|---|---:|---|---:|---|---|",
        *(f"| `{case.name}` | {rows[case.name]} |" for case in cases if case.name in rows and not case.cell),
    ]
    for group, table in grids.items():
        lines += _grid_lines(group, table)
    return "\n".join(lines)


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def aims(ratios: dict[str, list[float]]) -> list[str]:
    """The table of the geometric means, with their limits and the largest ratio of each."""
    lines = ["| geometric mean | ratio | aim | | largest | of |", "|---|---:|---|---|---:|---|"]
    for title, pattern, limit, peer in AIMS:
        found = {n: v[peer] for n, v in ratios.items() if re.search(pattern, n) and len(v) > peer and v[peer] > 0}
        if not found:
            continue
        value, worst = mean(list(found.values())), max(found, key=found.get)
        met = "met" if round(value, 2) <= limit else "missed"
        lines.append(f"| {title} | {value:.2f} | ≤ {limit:g} | {met} | {found[worst]:.2f} | `{worst}` |")
    return lines


def above(cases: list[Case], rows: dict[str, str], ratios: dict[str, list[float]]) -> list[str]:
    """The cases and means that are above their targets by more than noise, each with its reason."""
    late = {
        case.name: ratios[case.name] for case in cases if case.name in rows and rows[case.name].endswith("| missed")
    }
    for case in cases:
        if case.cell and any(
            value > limit * (1 + NOISE) for value, limit in zip(ratios[case.name], case.targets, strict=False)
        ):
            late[case.name] = ratios[case.name]
    for title, pattern, limit, peer in AIMS:
        found = [v[peer] for n, v in ratios.items() if re.search(pattern, n) and len(v) > peer and v[peer] > 0]
        if found and round(mean(found), 2) > limit:
            late[title] = [mean(found)]
    if not late:
        return []
    why = {}
    for name, values in late.items():
        reason = next((reason for pattern, reason in REASONS.items() if re.search(pattern, name)), UNKNOWN)
        why.setdefault(reason, []).append(f"`{name}` {', '.join(f'{value:.2f}' for value in values)}")
    return ["Above the target:", "", *(f"- {'; '.join(names)}. {reason}" for reason, names in why.items()), ""]


def grid(group: str, measured, rows: dict[str, str], cases: list[Case]) -> dict[str, dict[str, str]]:
    """The ratios of a group as text, by row and by column."""
    columns = list(dict.fromkeys(case.cell[1] for case in cases))
    table = {
        name: dict(zip(columns, rows.get(f"{group}/{name}", "").split(" | "), strict=False))
        for name in dict.fromkeys(case.cell[0] for case in cases)
    }
    for case, results in measured:
        if case in cases:
            value = ratio(results, case.peers[0])
            table[case.cell[0]][case.cell[1]] = "fails" if value is None else f"{value:.2f}"
    return {
        name: {column: cells.get(column, "") for column in columns}
        for name, cells in table.items()
        if any(cells.values())
    }


def _grid_lines(group: str, table: dict[str, dict[str, str]]) -> list[str]:
    """The table of a group: a line for each row, and the geometric mean of each column."""
    if not table:
        return []
    columns = list(next(iter(table.values())))
    numbers = [[value for cells in table.values() for value in _numbers(cells[column])] for column in columns]
    means = [f"{mean(found):.2f}" if found else "" for found in numbers]
    return [
        "",
        f"| {group}: ratios | " + " | ".join(columns) + " |",
        "|---|" + "---:|" * len(columns),
        *(" | ".join([f"| `{group}/{name}`", *cells.values()]) + " |" for name, cells in table.items()),
        "| geometric mean | " + " | ".join(means) + " |",
    ]


def _numbers(text: str) -> list[float]:
    """The positive numbers of a cell."""
    found = re.split(r",\s*", text.strip())
    return [float(part) for part in found if re.fullmatch(r"\d+\.\d+", part) and float(part) > 0]


def update_readme(path: Path, measured, versions, cases: list[Case]) -> None:
    """Write the results between the markers of the README."""
    before, found, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    former, also_found, after = rest.partition(END)
    if not (found and also_found):
        raise ValueError(f"{path} lacks the markers {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n{markdown(measured, versions, former, cases)}\n{END}{after}", encoding="utf-8")
