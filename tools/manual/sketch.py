"""Boxes and arrows for the pictures of the manual, in the colours of a palette."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

Point = tuple[float, float]


def canvas(width: float, height: float, size: Point | None = None) -> tuple[Figure, Axes]:
    """A figure with one empty area from (0, 0) to (width, height). `size` is in inches."""
    figure = Figure(figsize=size or (width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return figure, axes


def box(
    axes: Axes,
    at: Point,
    text: str,
    palette: dict[str, Any],
    colour: int | None = None,
    size: Point = (1.6, 0.6),
    mono: bool = False,
    fontsize: float = 11,
) -> None:
    """A rounded box with a text, centred at a point. `colour` is a number of the palette; None is a plain box."""
    edge = palette["weak"] if colour is None else palette["colours"][colour]
    corner = at[0] - size[0] / 2, at[1] - size[1] / 2
    style = "round,pad=0,rounding_size=0.09"
    axes.add_patch(FancyBboxPatch(corner, *size, boxstyle=style, fc=palette["fill"], ec=edge, lw=1.6, zorder=2))
    family = "DejaVu Sans Mono" if mono else "DejaVu Sans"
    axes.text(*at, text, ha="center", va="center", color=palette["ink"], family=family, fontsize=fontsize, zorder=3)


def arrow(
    axes: Axes,
    start: Point,
    end: Point,
    palette: dict[str, Any],
    text: str = "",
    colour: int | None = None,
    bend: float = 0.0,
    shift: Point = (0.0, 0.1),
) -> None:
    """An arrow between two points, with a text above its middle."""
    line = palette["weak"] if colour is None else palette["colours"][colour]
    way = f"arc3,rad={bend}"
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=13, color=line, lw=1.4, connectionstyle=way, zorder=1
        )
    )
    if text:
        middle = (start[0] + end[0]) / 2 + shift[0], (start[1] + end[1]) / 2 + shift[1]
        axes.text(*middle, text, ha="center", va="bottom", color=palette["ink"], fontsize=9.5, zorder=3)
