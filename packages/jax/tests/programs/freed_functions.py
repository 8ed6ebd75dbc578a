"""Prints the uses that keep a function alive."""

import gc
import weakref

import jax
import jax.numpy as jnp
from jax import lax

x = jnp.ones(3)
USES = {
    "jit": lambda f: jax.jit(f)(x),
    "grad": lambda f: jax.grad(lambda x: f(x).sum())(x),
    "vmap": lambda f: jax.vmap(f)(x),
    "fori": lambda f: lax.fori_loop(0, 3, lambda i, x: f(x), x),
    "while": lambda f: lax.while_loop(lambda x: x[0] < 3, f, x),
    "map": lambda f: lax.map(f, x),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), x), x, x),
    "cond": lambda f: lax.cond(True, f, f, x),
    "remat": lambda f: jax.grad(lambda x: jax.checkpoint(f)(x).sum())(x),
    "pure_callback": lambda f: jax.jit(lambda x: jax.pure_callback(f, x, x))(x),
    "io_callback": lambda f: jax.jit(lambda x: jax.experimental.io_callback(f, x, x, ordered=True))(x),
    "debug.callback": lambda f: jax.jit(lambda x: (jax.debug.callback(f, x), x)[1])(x),
    "debug.callback, eager": lambda f: jax.debug.callback(f, x),
    "compiled": lambda f: jax.jit(lambda x: jax.pure_callback(f, x, x)).lower(x).compile()(x),
}
for name, use in USES.items():

    def function(x):
        return x + 1

    alive = weakref.ref(function)
    use(function)
    jax.effects_barrier()
    del function
    gc.collect(), gc.collect()
    if alive() is not None:
        print(name)
