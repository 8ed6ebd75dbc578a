"""The result type of `x + y` for each pair of dtypes, from `jnp.promote_types`."""

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

NAMES = ["bool", "uint8", "int8", "int16", "int32", "float16", "bfloat16", "float32", "complex64"]
SHORT = {"uint": "u", "bfloat": "bf", "float": "f", "complex": "c", "int": "i"}


def short(name):
    """``f32`` for ``float32``."""
    kind = name.rstrip("0123456789")
    return SHORT.get(kind, kind) + name[len(kind) :]


def draw(palette):
    """A table; the colour of a cell is the kind of its result."""
    rows = [*NAMES, "Python int", "Python float"]
    value = {name: jnp.zeros((), name) for name in NAMES} | {"Python int": 1, "Python float": 1.0}
    figure = Figure(figsize=(8.4, 5.4))
    axes = figure.add_axes((0.16, 0.02, 0.83, 0.88))
    kinds = {"b": 7, "u": 5, "i": 0, "f": 2, "c": 3}
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            result = jnp.result_type(value[a], value[b])
            kind = "f" if jnp.issubdtype(result, np.floating) else result.kind
            axes.add_patch(
                Rectangle(
                    (j + 0.04, i + 0.04), 0.92, 0.92, fc=palette["fill"], ec=palette["colours"][kinds[kind]], lw=1.3
                )
            )
            axes.text(j + 0.5, i + 0.5, short(result.name), ha="center", va="center", fontsize=9)
    axes.set(
        xlim=(0, len(rows)), ylim=(len(rows), 0), xticks=np.arange(len(rows)) + 0.5, yticks=np.arange(len(rows)) + 0.5
    )
    axes.set_xticklabels([n.replace("Python ", "Python\n") for n in map(str, rows)], fontsize=8.5, rotation=0)
    axes.set_yticklabels(rows, fontsize=9)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    return figure
