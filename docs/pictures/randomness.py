"""A tree of keys, with the words of each key, and numbers drawn from its leaves."""

import jax
import numpy as np
from sketch import arrow, box, canvas


def words(key):
    """The two words of a key as text."""
    return " ".join(f"{word:08x}" for word in np.asarray(jax.random.key_data(key)))


def draw(palette):
    """Keys are split from left to right; each leaf is drawn from."""
    figure, axes = canvas(11, 4.5)
    root = jax.random.key(0)
    size, mono = (2.5, 0.62), {"mono": True, "fontsize": 8.5}
    box(axes, (1.35, 2.2), f"key(0)\n{words(root)}", palette, colour=0, size=size, **mono)
    for n, child in enumerate(jax.random.split(root)):
        y = 3.3 - 2.2 * n
        box(axes, (4.7, y), f"{('init', 'dropout')[n]}\n{words(child)}", palette, colour=1, size=size, **mono)
        arrow(axes, (2.6, 2.2), (3.45, y), palette, "split" if n == 0 else "", shift=(-0.15, 0.2))
        for m in range(2):
            leaf, z = jax.random.fold_in(child, m), y + 0.55 - 1.1 * m
            box(axes, (8.0, z), f"step {m}\n{words(leaf)}", palette, colour=2, size=size, **mono)
            arrow(axes, (5.95, y), (6.75, z), palette, "fold_in" if m == 0 and n == 0 else "", shift=(-0.15, 0.1))
            counts, _ = np.histogram(np.asarray(jax.random.normal(leaf, (400,))), np.linspace(-3, 3, 22))
            place = np.linspace(9.6, 10.8, len(counts))
            axes.bar(place, counts / 80, width=0.055, bottom=z - 0.3, color=palette["colours"][2])
    axes.text(10.2, 4.33, "normal(key, (400,))", ha="center", fontsize=9.5)
    return figure
