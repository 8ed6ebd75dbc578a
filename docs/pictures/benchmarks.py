"""The ratios of the benchmarks' table to upstream, by group, and their medians over the commits that wrote the table."""

import re
import statistics
import subprocess
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

TABLE = "benchmarks/README.md"
ROOT = next(p for p in Path(__file__).resolve().parents if (p / TABLE).is_file())
ROW = re.compile(r"^\| `([^/`]+)/[^`]*` \| [^|]+ \| [^|]*\(upstream[^|]*\| ([\d.]+)[^|]*\|", re.MULTILINE)


def ratios(text):
    """Group -> ratios."""
    found = {}
    for group, ratio in ROW.findall(text):
        found.setdefault(group, []).append(float(ratio))
    return found


def history():
    """The table's ratios at each commit that changed it, the oldest first; without git, those of now."""
    git = lambda *words: subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=False).stdout
    commits = git("log", "--reverse", "--format=%h", "--", TABLE).split()
    texts = [git("show", f"{commit}:{TABLE}") for commit in commits]
    now = (ROOT / TABLE).read_text(encoding="utf-8")
    return [found for found in map(ratios, [*texts, now]) if found]


def draw(palette):
    """Points on the left, curves on the right; below 1 is faster than upstream."""
    tables = history()
    now = tables[-1]
    figure = Figure(figsize=(11, 4.6))
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    for n, (group, values) in enumerate(now.items()):
        color = palette["colours"][n % 8]
        left.scatter(values, np.full(len(values), n), s=18, alpha=0.7, color=color, marker="o" if n < 8 else "s")
        medians = [statistics.median(t[group]) if group in t else np.nan for t in tables]
        right.plot(medians, color=color, marker="o" if n < 8 else "s", ms=3, label=group)
    left.set_yticks(range(len(now)), list(now))
    left.invert_yaxis()
    left.set(xscale="log", title="the cases of the table", xlabel="time, relative to upstream")
    left.axvline(1, color=palette["weak"], lw=1)
    right.set(yscale="log", title="medians over commits", xlabel="edition of the table")
    right.axhline(1, color=palette["weak"], lw=1)
    for axis, ticks in ((left.xaxis, (0.1, 0.3, 1)), (right.yaxis, (0.1, 0.2, 0.5, 1))):
        axis.set_ticks(ticks, [f"{t:g}" for t in ticks])
        axis.set_ticks([], minor=True)
    figure.tight_layout()
    return figure
