"""Transformations of one function: the curves of its derivatives, and the sizes of the programs."""

import jax
import jax.numpy as jnp
from matplotlib.figure import Figure
from sketch import arrow, box


def f(x):
    return jnp.exp(-(x**2)) * jnp.sin(3 * x)


def draw(palette):
    """Curves on the left, boxes on the right."""
    figure = Figure(figsize=(11, 4))
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    x = jnp.linspace(-2, 2, 200)
    g, h = jax.grad(f), jax.grad(jax.grad(f))
    names = ("f", "vmap(grad(f))", "vmap(grad(grad(f)))")
    for name, function in zip(names, (f, jax.vmap(g), jax.vmap(h)), strict=True):
        left.plot(x, function(x), label=name, lw=2)
    left.set_xlabel("x")
    left.legend(loc="lower left", fontsize=9)
    right.set(xlim=(0, 6.2), ylim=(0, 4))
    right.axis("off")
    size = lambda fun, *args: f"{len(jax.make_jaxpr(fun)(*args).jaxpr.eqns)} equations"
    one, many = 1.0, jnp.ones(200)
    rows = [
        ("f", f, one, "a number to a number"),
        ("grad(f)", g, one, "a number to a slope"),
        ("vmap(grad(f))", jax.vmap(g), many, "200 numbers to 200 slopes"),
    ]
    for number, (name, function, argument, what) in enumerate(rows):
        y = 3.6 - 0.98 * number
        box(right, (1.75, y), f"{name}\n{size(function, argument)}", palette, colour=number, size=(2.9, 0.62))
        right.text(3.5, y, what, va="center", fontsize=10)
        if number:
            arrow(right, (1.75, y + 0.67), (1.75, y + 0.32), palette)
    box(right, (1.75, 0.5), "jit(vmap(grad(f)))\none compiled program", palette, colour=3, size=(2.9, 0.62))
    right.text(3.5, 0.5, "the same, as machine code", va="center", fontsize=10)
    arrow(right, (1.75, 1.32), (1.75, 0.82), palette)
    return figure
