"""Trees that are too deep: prints a line for each function that raises RecursionError."""

import jax

tree = 1.0
for _ in range(100_000):
    tree = [tree]
of_tree = (jax.tree.leaves, jax.tree.structure, lambda t: jax.tree.map(abs, t))
jitted = jax.jit(lambda t: 1)
static = jax.jit(lambda t, s: 1, static_argnames="s")
of_arguments = (jitted, jitted, lambda t: jitted(t=t), lambda t: static(t, s=1), lambda t: static(t, s=(True,)))
for f in (*of_tree, *of_arguments, lambda t: jax.jit(lambda x: t)(0.0)):
    try:
        f(tree)
    except RecursionError:
        print("raised")
inner = tree  # taken apart by hand: its destructor, too, would be deep
while type(inner) is list:
    inner = inner.pop()
