"""Interval arithmetic: an interpreter of programs.

A program is a list of operations. This interpreter gives each operation bounds of its operands, and gets bounds of its result.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np


def product(a, b):
    corners = [x * y for x in a for y in b]
    return jnp.minimum(*map(jnp.minimum, corners[:2], corners[2:])), jnp.maximum(
        *map(jnp.maximum, corners[:2], corners[2:])
    )


RULES = {  # operation -> bounds of its result from bounds (lower, upper) of its operands
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": product,
    "neg": lambda a: (-a[1], -a[0]),
    "exp": lambda a: (jnp.exp(a[0]), jnp.exp(a[1])),
    "tanh": lambda a: (jnp.tanh(a[0]), jnp.tanh(a[1])),
}


def bounds(f):
    """A function from intervals to an interval: each value of `f` is in it."""

    def bounded(*intervals):
        program = jax.make_jaxpr(f)(*(low for low, _ in intervals))
        values = dict(zip(program.jaxpr.invars, intervals, strict=True))
        read = lambda v: (v.val, v.val) if hasattr(v, "val") else values[v]
        for equation in program.eqns:
            values[equation.outvars[0]] = RULES[equation.primitive.name](*map(read, equation.invars))
        return read(program.jaxpr.outvars[0])

    return bounded


def f(x):
    return jnp.tanh(x * x - 0.5 * x) + 0.3 * jnp.exp(-x)


def main(parts=24):
    edges = np.linspace(-1.5, 2, parts + 1, dtype=np.float32)
    low, high = map(np.asarray, jax.vmap(bounds(f))((edges[:-1], edges[1:])))
    inside = [f(edges[:-1] + share * np.diff(edges)) for share in np.linspace(0, 1, 21, dtype=np.float32)]
    assert all(((low - 1e-6 <= y) & (y <= high + 1e-6)).all() for y in inside)
    print(f"{parts} intervals; the widest bound is {np.max(high - low):.2f}")
    return edges, low, high


def picture(data):
    from matplotlib.figure import Figure

    edges, low, high = data
    axes = (figure := Figure(figsize=(5, 4))).subplots()
    axes.bar(edges[:-1], high - low, np.diff(edges), low, align="edge", color="C0", alpha=0.35, label="bounds")
    x = np.linspace(edges[0], edges[-1], 300)
    axes.plot(x, f(x), color="C1", lw=2, label="f")
    axes.legend(fontsize=9)
    return figure


if __name__ == "__main__":
    result = main()
    if len(sys.argv) > 1:
        picture(result).savefig(sys.argv[1])
