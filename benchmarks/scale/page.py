"""The page with the table of growth and the pictures."""

from pathlib import Path

from benchmarks.scale.curves import Curve
from benchmarks.scale.drawing import per_unit

TEXT = """# Scale

    python -m benchmarks.scale                  # every curve, about half an hour
    python -m benchmarks.scale --only chain
    python -m benchmarks.scale --draw           # the pictures and this page again, from results.json

measures programs from small to large: chains of operations, many parameters, nested transformations, many shapes of one
function, and programs over many pretended CPU devices. Each point is a new process, which runs a small program of the
kind first. The least of the rounds counts. The time is CPU time, with Python's garbage collector off as in the other
benchmarks, unless the name has it on. The memory is the growth of the peak; below 50 KB it is not shown.

*Growth* is the cost per operation at the largest size, over the least cost per operation at a smaller one. It is 1 if
the cost per operation is constant, and below 1 where fixed costs matter more.
`tests/test_scale.py` counts the work of our curves instead: calls of Python functions per operation, and objects that
stay.

"""
HEADER = ("curve", "ours", "upstream", "ratio", "growth, ours", "growth, upstream", "memory, ours", "memory, upstream")


def growth(line: list[tuple[int, float]]) -> float | None:
    """The value at the last size, over the least at smaller sizes."""
    return line[-1][1] / min(value for _, value in line[:-1]) if len(line) > 1 else None


def _number(value: float | None, symbol: str = "") -> str:
    return "-" if value is None else f"{value:.3g}{symbol}"


def row(curve: Curve, found: dict[str, dict]) -> tuple[str, ...]:
    """The cells of one curve, as in HEADER; costs per operation at the largest size that both have."""
    times = {name: per_unit(points, "seconds") for name, points in found.items()}
    memory = {name: per_unit(points, "megabytes") for name, points in found.items()}
    at = {name: dict(line) for name, line in times.items()}
    shared = [size for size in curve.sizes if all(size in line for line in at.values())]
    ours, theirs = (at[name][shared[-1]] if shared else None for name in ("ours", "upstream"))
    kept = (dict(memory[name]).get(curve.sizes[-1]) for name in ("ours", "upstream"))
    return (
        f"`{curve.name}`",
        _number(ours, f" µs per {curve.unit}"),
        _number(theirs, " µs"),
        _number(ours / theirs if ours and theirs else None),
        _number(growth(times["ours"])),
        _number(growth(times["upstream"])),
        *(_number(value, " KB") for value in kept),
    )


def write(path: Path, curves: list[Curve], results: dict) -> None:
    """Write the page."""
    rows = [row(curve, results["curves"][curve.name]) for curve in curves]
    versions = "; ".join(
        f"*{name}*: " + ", ".join(f"{package} {version}" for package, version in found.items())
        for name, found in results["versions"].items()
    )
    table = ["| " + " | ".join(HEADER) + " |", "|---" + "|---:" * (len(HEADER) - 1) + "|"]
    table += ["| " + " | ".join(cells) + " |" for cells in rows]
    pictures = []
    for curve in curves:
        pictures += [f"![{curve.name}: time and memory per {curve.unit}]({curve.file})", ""]
        if curve.note:
            pictures += [curve.note, ""]
    text = TEXT + "\n".join([versions, "", *table, "", "## Pictures", "", *pictures]).rstrip() + "\n"
    path.write_text(text, encoding="utf-8")
