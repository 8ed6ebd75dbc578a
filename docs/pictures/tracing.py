"""A function and its traced program: the boxes are the equations of the jaxpr, found by `make_jaxpr`."""

import jax
import jax.numpy as jnp
from sketch import arrow, box, canvas

SOURCE = "def f(x, y):\n    z = jnp.sin(x) * y\n    if z.ndim == 1:\n        z = z.sum()\n    return z + 1"


def f(x, y):
    z = jnp.sin(x) * y
    if z.ndim == 1:
        z = z.sum()
    return z + 1


def draw(palette):
    """Text on the left, the graph of the program on the right."""
    program = jax.make_jaxpr(f)(jnp.ones(3), jnp.ones(3)).jaxpr
    figure, axes = canvas(11, 4.4)
    axes.text(0.1, 4.15, "the function, run once with tracers", fontsize=11, weight="bold")
    axes.text(0.1, 3.8, SOURCE, family="DejaVu Sans Mono", va="top", fontsize=11, linespacing=1.5)
    axes.text(0.1, 1.45, "x, y: ShapedArray(float32[3])", family="DejaVu Sans Mono", color=palette["colours"][1])
    axes.text(
        0.1, 1.0, "`if` sees the rank, which is known:\nit leaves no trace in the program.", va="top", fontsize=10
    )
    arrow(axes, (3.7, 2.6), (4.7, 2.6), palette, "trace", colour=0)

    axes.text(5.0, 4.15, "the program that is recorded", fontsize=11, weight="bold")
    depth, place = {}, {}
    for number, variable in enumerate(program.invars):
        depth[variable], place[variable] = 0, (5.55, 2.9 - 1.3 * number)
        box(
            axes, place[variable], f"{'xy'[number]}\n{variable.aval.str_short()}", palette, size=(1.0, 0.75), fontsize=9
        )
    for equation in program.eqns:
        known = [v for v in equation.invars if v in depth]
        level = 1 + max(depth[v] for v in known)
        row = sum(place[v][1] for v in known) / len(known)
        at = (5.55 + 1.2 * level, row)
        (result,) = equation.outvars
        depth[result], place[result] = level, at
        size = (1.0, 0.75)
        for v in known:
            arrow(axes, (place[v][0] + size[0] / 2, place[v][1]), (at[0] - size[0] / 2, at[1]), palette)
        name = equation.primitive.name.replace("reduce_", "reduce\n")
        box(axes, at, f"{name}\n{result.aval.str_short()}", palette, colour=0, size=size, fontsize=9)
    return figure
