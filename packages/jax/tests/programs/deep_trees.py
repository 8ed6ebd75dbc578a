"""Trees that are too deep: prints a line for each function that raises RecursionError."""

import jax

tree = 1.0
for _ in range(100_000):
    tree = [tree]
of_tree = (jax.tree.leaves, jax.tree.structure, lambda t: jax.tree.map(abs, t))
jitted = jax.jit(lambda t: 1)
static = jax.jit(lambda t, s: 1, static_argnames="s")
compiled = jitted.lower(1.0).compile()
transformed = (jax.grad(jitted), jax.vmap(jitted), jax.pmap(lambda t: 1), jax.checkpoint(jitted))
traced = (
    jitted.lower,
    jax.make_jaxpr(jitted),
    lambda t: jax.eval_shape(jitted, t),
    jax.device_put,
    jax.block_until_ready,
)
of_arguments = (
    compiled,
    compiled,
    jitted,
    jitted,
    lambda t: jitted(t=t),
    lambda t: static(t, s=1),
    lambda t: static(t, s=(True,)),
)
for f in (*of_tree, *of_arguments, *transformed, *traced, lambda t: jax.jit(lambda x: t)(0.0)):
    try:
        f(tree)
    except RecursionError:
        print("raised")
inner = tree  # taken apart by hand: its destructor, too, would be deep
while type(inner) is list:
    inner = inner.pop()
