"""State as a value: a step takes it and returns the next one. The losses are those of a run."""

import jax
import jax.numpy as jnp
from sketch import arrow, box, canvas

X = jnp.linspace(-1, 1, 32)


def loss(w):
    return jnp.mean((w[0] * X + w[1] - (2 * X + 1)) ** 2)


@jax.jit
def step(w):
    value, gradient = jax.value_and_grad(loss)(w)
    return w - 0.4 * gradient, value


def draw(palette):
    """A chain of steps above, a reference that is written in place below."""
    figure, axes = canvas(11, 4.5)
    axes.text(0.1, 4.25, "state as a value: the step returns the next one", weight="bold")
    w = jnp.zeros(2)
    for n in range(4):
        x = 0.95 + 3.0 * n
        box(
            axes,
            (x, 3.3),
            f"w{n}\n[{float(w[0]):.2f}, {float(w[1]):.2f}]",
            palette,
            colour=n,
            size=(1.5, 0.72),
            mono=True,
            fontsize=10,
        )
        if n < 3:
            w, value = step(w)
            arrow(axes, (x + 0.78, 3.3), (x + 2.22, 3.3), palette, f"step\nloss {float(value):.2f}")
    axes.text(0.1, 2.1, "state as a reference: new_ref, writes in place, freeze", weight="bold")
    reference = jax.new_ref(jnp.zeros(3))
    contents = [reference[...]]
    for i in range(3):
        reference[i] = 1.0 + i
        contents.append(reference[...])
    for n, content in enumerate(contents):
        x = 0.95 + 3.0 * n
        text = "ref\n[" + " ".join(f"{float(v):.0f}" for v in content) + "]"
        box(axes, (x, 1.15), text, palette, colour=4, size=(1.5, 0.72), mono=True, fontsize=10)
        if n < 3:
            arrow(axes, (x + 0.78, 1.15), (x + 2.22, 1.15), palette, f"ref[{n}] = {n + 1}")
    axes.text(
        0.1,
        0.3,
        "a jitted function may write to a reference: the compiler turns the writes into values again",
        fontsize=10,
    )
    return figure
