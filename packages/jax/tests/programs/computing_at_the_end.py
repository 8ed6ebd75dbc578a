"""An `atexit` function of a program with a daemon thread runs known and new programs. The exit code is 3."""

import atexit
import sys
import threading


@atexit.register
def last():
    print(f(x).sum() + jax.jit(lambda x: x * 2)(x).sum() + jnp.linalg.norm(x[:1]) + x[0])


import jax
import jax.numpy as jnp

x = jnp.ones(4)
f = jax.jit(lambda x: x + 0)
begun = threading.Event()


def work():
    y = x
    while True:
        y = f(y)
        begun.set()


threading.Thread(target=work, daemon=True).start()
begun.wait()
sys.exit(3)
