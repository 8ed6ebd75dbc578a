"""The picture of a curve (SVG): time and memory per operation over the size, with logarithmic scales."""

import math
from xml.sax.saxutils import escape

from benchmarks.scale.curves import Curve

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 860, 300, 70, 34, 46, 90
PANEL = (WIDTH - 2 * LEFT - GAP) / 2
COLORS = {"ours": "#1b6ca8", "upstream": "#c0392b"}
LEAST = 0.05  # megabytes: smaller growth is that of the measurement itself


def per_unit(points: dict[str, dict], quantity: str) -> list[tuple[int, float]]:
    """`(size, value per operation)` in microseconds or kilobytes, of the sizes with a value."""
    scale, least = (1e6, 0.0) if quantity == "seconds" else (1024.0, LEAST)
    return [
        (int(size), value * scale / int(size))
        for size, point in points.items()
        if (value := point.get(quantity, 0.0)) > least
    ]


def draw(curve: Curve, found: dict[str, dict]) -> str:
    """The picture: a panel for time and one for memory, with a line for each environment."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="16" font-size="13">{escape(curve.name)}</text>',
    ]
    for i, (name, color) in enumerate(COLORS.items()):
        parts.append(f'<text x="{WIDTH - 180 + 60 * i}" y="16" fill="{color}">{name}</text>')
    for number, (quantity, symbol) in enumerate((("seconds", "µs"), ("megabytes", "KB"))):
        lines = {name: per_unit(points, quantity) for name, points in found.items()}
        left = LEFT + number * (PANEL + GAP)
        parts += panel(left, lines, curve, f"{symbol} per {curve.unit}")
    return "\n".join([*parts, "</svg>"]) + "\n"


def panel(left: float, lines: dict[str, list[tuple[int, float]]], curve: Curve, title: str) -> list[str]:
    """The axes and lines of one quantity."""
    values = [value for line in lines.values() for _, value in line]
    parts = [f'<text x="{left}" y="{TOP - 4}">{escape(title)}</text>']
    if not values:
        return [*parts, f'<text x="{left + 20}" y="{HEIGHT / 2}" fill="#888">too little to measure</text>']
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values) * 1.001))
    first, last = math.log10(curve.sizes[0]), math.log10(curve.sizes[-1])

    def place(size: float, value: float) -> tuple[float, float]:
        across = (math.log10(size) - first) / (last - first)
        up = (math.log10(value) - low) / max(1, high - low)
        return left + across * PANEL, HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    for power in range(low, high + 1):
        _, y = place(curve.sizes[0], 10.0**power)
        parts.append(f'<line x1="{left:.1f}" x2="{left + PANEL:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for size in curve.sizes:
        x, _ = place(size, 10.0**low)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{size:,}</text>')
    parts.append(
        f'<text x="{left + PANEL / 2:.1f}" y="{HEIGHT - BOTTOM + 34}" text-anchor="middle">{escape(curve.unit)}s</text>'
    )
    for name, line in lines.items():
        places = [place(size, value) for size, value in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLORS[name]}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{COLORS[name]}"/>' for x, y in places]
    return parts
