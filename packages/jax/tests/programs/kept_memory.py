"""Prints the bytes that each call keeps, in 24 threads: python kept_memory.py COUNT"""

import gc
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np


def resident():
    gc.collect()
    return int(open("/proc/self/statm", encoding="utf-8").read().split()[1]) * 4096


x = jnp.ones(64)
f, g = jax.jit(lambda x: jnp.sin(x) * 2), jax.jit(jax.grad(lambda x: (x**2).sum()))


def fails():
    def bad(x):
        raise ValueError

    try:
        jax.jit(jax.vmap(bad))(x)
    except ValueError:
        pass


USES = [
    lambda: f(x),
    lambda: g(x),
    lambda: jnp.dot(x, x),
    lambda: jax.device_put(np.ones(8)),
    lambda: float(x[0]),
    lambda: x[2:5],
    lambda: jax.vmap(jnp.cos)(x),
    lambda: jax.grad(lambda x: x.sum())(x),
    fails,
    lambda: jax.eval_shape(jnp.sin, x),
]


def load(count):
    def work(i):
        for k in range(count):
            USES[(i + k) % len(USES)]()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(24)]
    [t.start() for t in threads], [t.join() for t in threads]


count = int(sys.argv[1])
load(count)
before = resident()
load(count)
print((resident() - before) / (24 * count))
