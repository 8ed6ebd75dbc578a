"""Pictures of shardings, in characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax.lax.primitives.placement import inspect_array_sharding

__all__ = ["visualize_array_sharding", "visualize_sharding"]

_COLORS = (41, 42, 43, 44, 45, 46, 101, 102, 103, 104, 105, 106)


def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Callable[[int], int] | None = None,
) -> None:
    """Print the devices that hold each shard of an array of one or two dimensions.

    Args:
      shape: the shape of the array.
      sharding: the sharding of the array.
      use_color: fill the shards with colors, if the output is a terminal.
      scale: characters per element. A shard is never drawn smaller than its text.
      min_width, max_width: the least width of a shard's picture, and the greatest width of the whole.
      color_map: the ANSI code of the background of the i-th shard; by default from a list of twelve.

    Raises:
      ValueError: the array has neither one nor two dimensions.
    """
    if len(shape) not in (1, 2):
        raise ValueError(f"visualize_sharding draws arrays of one or two dimensions, got shape {tuple(shape)}")
    print(picture(tuple(shape), sharding, scale, min_width, max_width, _painter(use_color, color_map)))


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print the devices that hold each shard of an array. Inside `jit`, prints when the program is compiled.

    Args: see `visualize_sharding`.
    """
    shape = arr.shape
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(shape, sharding, **kwargs))


def _painter(use_color: bool, color_map: Callable[[int], int] | None) -> Callable[[str, int], str]:
    import sys

    if not (use_color and sys.stdout.isatty()):
        return lambda text, i: text
    code = color_map or (lambda i: _COLORS[i % len(_COLORS)])
    return lambda text, i: f"\x1b[{code(i)}m{text}\x1b[0m"


def picture(
    shape: tuple[int, ...],
    sharding: Any,
    scale: float,
    min_width: int,
    max_width: int,
    paint: Callable[[str, int], str],
) -> str:
    """The grid of shards, each with the numbers of its devices."""
    rows, columns = (1, *shape) if len(shape) == 1 else shape
    parts: dict[tuple[int, int], list[Any]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        starts = tuple([s.start or 0 for s in index])
        parts.setdefault((0, *starts) if len(shape) == 1 else starts, []).append(device)
    tops, lefts = (sorted({key[i] for key in parts}) for i in range(2))
    texts = {key: f"{found[0].platform.upper()} {','.join(str(d.id) for d in found)}" for key, found in parts.items()}
    widest = max(map(len, texts.values()))
    width = max(widest, min(int(np.ceil(columns / len(lefts) * scale * 2)), max(max_width // len(lefts) - 1, 1)))
    width = max(width, min_width - 2)
    height = max(int(np.ceil(rows / len(tops) * scale / 2)), 1)
    line = lambda a, b, c: a + b.join(["─" * width] * len(lefts)) + c
    out = [line("┌", "┬", "┐")]
    for r, top in enumerate(tops):
        for i in range(height):
            cells = [
                paint((texts[top, left] if i == height // 2 else "").center(width), r * len(lefts) + c)
                for c, left in enumerate(lefts)
            ]
            out.append("│" + "│".join(cells) + "│")
        out.append(line("├", "┼", "┤") if r + 1 < len(tops) else line("└", "┴", "┘"))
    return "\n".join(out)
