"""The history of results: a file for each measured commit, a comparison with the last one, and a picture.

A file holds the ratios of ours to the peers, which were measured in the same run. They depend less on the machine than
times do. Ours alone stands for cases without a peer.
"""

import datetime
import json
import math
import subprocess
from pathlib import Path
from xml.sax.saxutils import escape

FOLDER = Path(__file__).parent / "history"
WORSE = 0.05  # a ratio that grew by more is a regression


def numbers(measured) -> dict[str, float]:
    """By case, ours over the first peer, or ours alone. Cases that failed are missing."""
    found = {}
    for case, results in measured:
        values = [results.get(name, {}).get("value") for name in ("ours", *case.peers[:1])]
        if all(values):
            found[case.name] = values[0] / (values[1] if len(values) > 1 else 1)
    return found


def record(measured, versions, root: Path) -> Path:
    """Write the file of the commit that is checked out.

    Raises:
      ValueError: files of the project differ from the commit.
    """
    git = ["git", "-C", str(root)]
    if subprocess.run([*git, "status", "--porcelain", "--untracked-files=no"], check=True, capture_output=True).stdout:
        raise ValueError("--record: commit the changes first, a file of the history is named after a commit")
    shown = subprocess.run([*git, "show", "-s", "--format=%h %ct"], check=True, capture_output=True, text=True).stdout
    commit, seconds = shown.split()
    day = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
    path = FOLDER / f"{day:%Y-%m-%d-%H%M%S}-{commit}.json"
    FOLDER.mkdir(exist_ok=True)
    old = json.loads(path.read_text())["cases"] if path.exists() else {}  # of other cases
    cases = {name: round(value, 4) for name, value in {**old, **numbers(measured)}.items()}
    path.write_text(json.dumps({"commit": commit, "versions": versions, "cases": cases}, indent=1) + "\n")
    return path


def load() -> list[dict]:
    """The files, from the oldest to the newest."""
    return [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]


def before(history: list[dict]) -> dict[str, tuple[float, str]]:
    """By case, the newest recorded number and its commit."""
    return {name: (value, entry["commit"]) for entry in history for name, value in entry["cases"].items()}


def regressions(now: dict[str, float], history: list[dict]) -> list[tuple[str, float, float, str]]:
    """Cases that became slower: name, the number before, the number now, and the commit of the former."""
    old = before(history)
    return [
        (name, *old[name][:1], value, old[name][1])
        for name, value in now.items()
        if name in old and value > old[name][0] * (1 + WORSE)
    ]


# ---- the picture ----

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 900, 420, 60, 20, 240, 60
_COLORS = ("#1b6ca8", "#c0392b", "#27803b", "#8e44ad", "#b9770e", "#117a65", "#7f4f24", "#566573", "#d35490", "#2c3e50")


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def draw(history: list[dict]) -> str:
    """A picture (SVG): the geometric mean of each group of cases, over the commits. The scale is logarithmic."""
    groups: dict[str, list[float | None]] = {}
    for i, entry in enumerate(history):
        for name in entry["cases"]:
            groups.setdefault(name.partition("/")[0], [None] * len(history))
        for group, line in groups.items():
            values = [v for name, v in entry["cases"].items() if name.partition("/")[0] == group and v > 0]
            line[i] = _mean(values) if values else None
    found = [v for line in groups.values() for v in line if v is not None] or [1.0]
    low, high = math.log(min(*found, 0.1)), math.log(max(*found, 1.0) * 1.1)
    across = (_WIDTH - _LEFT - _RIGHT) / max(1, len(history) - 1)

    def place(i, value):
        share = (math.log(value) - low) / (high - low)
        return _LEFT + i * across, _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for value in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0):
        if low <= math.log(value) <= high:
            _, y = place(0, value)
            parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for i, entry in enumerate(history):
        x, _ = place(i, 1.0)
        where = f'transform="translate({x:.1f},{_HEIGHT - _BOTTOM + 12}) rotate(40)"'
        parts.append(f"<text {where}>{escape(entry['commit'])}</text>")
    for number, (group, line) in enumerate(sorted(groups.items())):
        color = _COLORS[number % len(_COLORS)]
        points = [place(i, v) for i, v in enumerate(line) if v is not None]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{color}"/>' for x, y in points]
        last = next(v for v in reversed(line) if v is not None)
        y = _TOP + 14 * number + 10
        parts.append(f'<text x="{_WIDTH - _RIGHT + 20}" y="{y}" fill="{color}">{escape(group)}: {last:.2f}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
