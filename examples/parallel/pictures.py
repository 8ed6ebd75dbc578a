"""The pictures of docs/parallel.md. `python -m examples.parallel.pictures` writes them. They follow light and dark themes."""

from pathlib import Path

COLOURS = ("#4269d0", "#d1761f", "#3a9a5c", "#b0548f")
STYLE = """<style>
text { fill: #24292f; font: 13px sans-serif } .weak { fill: #6e7781 } .empty { fill: none; stroke: #8c959f }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .weak { fill: #8d96a0 } .empty { stroke: #6e7681 } }
</style>"""


def rectangle(x, y, width, height, colour=None):
    """A filled rectangle, or an empty one."""
    look = 'class="empty"' if colour is None else f'fill="{colour}"'
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="2" {look}/>'


def text(x, y, words, kind=""):
    return f'<text x="{x}" y="{y}" text-anchor="middle" class="{kind}">{words}</text>'


def svg(width, height, parts):
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return "\n".join([start, STYLE, *parts, "</svg>\n"])


def partial_sums(devices=4):
    """The types of a parameter and its gradient in a step, and what each device holds."""
    steps = (  # type, what it is, and whether a device holds a slice; None: everything in its own colour
        ("f32[8@data,4]", "parameter: slices", True),
        ("f32[8,4]{R:data}", "gathered", False),
        ("f32[8,4]{U:data}", "gradient: parts of a sum", None),
        ("f32[8@data,4]", "summed: slices", True),
    )
    between = ("all-gather", "forward, backward", "reduce-scatter")
    parts = []
    for i, (type_, what, sliced) in enumerate(steps):
        x = 90 + 200 * i
        parts += [text(x + 40, 20, type_), text(x + 40, 38, what, "weak")]
        if i < len(between):
            parts.append(text(x + 140, 130, between[i] + " &#8594;", "weak"))
        for device in range(devices):
            for row in range(devices):
                held = row == device or not sliced
                colour = COLOURS[device if sliced is None else row] if held else None
                parts.append(rectangle(x, 52 + 48 * device + 10 * row, 80, 9, colour))
    parts += [text(42, 75 + 48 * device, f"device {device}", "weak") for device in range(devices)]
    return svg(790, 52 + 48 * devices, parts)


def pipeline(stages=4, pieces=8):
    """The micro-batch of each stage in each round: forward, then the transposed loop backward."""
    rounds = pieces + stages - 1
    parts, size = [], 26
    for stage in range(stages):
        parts.append(text(40, 58 + 30 * stage, f"stage {stage}", "weak"))
        for number in range(2 * rounds):
            back = number >= rounds
            piece = (2 * rounds - 1 - number if back else number) - stage
            x, y = 76 + size * number + (14 if back else 0), 40 + 30 * stage
            if 0 <= piece < pieces:
                parts.append(rectangle(x, y, size - 3, 26, COLOURS[2 if back else 0]))
                parts.append(text(x + 11, y + 18, piece))
            else:
                parts.append(rectangle(x, y, size - 3, 26))
    middle = 76 + size * rounds
    parts += [text((76 + middle) / 2, 24, "forward: ppermute to the next stage")]
    parts += [text(middle + 14 + size * rounds / 2, 24, "backward: its transpose, to the one before")]
    return svg(middle + size * rounds + 24, 48 + 30 * stages, parts)


PICTURES = {"partial_sums.svg": partial_sums, "pipeline.svg": pipeline}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (Path(__file__).parent / name).write_text(draw(), encoding="utf-8")
