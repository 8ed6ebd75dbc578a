"""End while daemon threads compute: `end_of_daemons.py KIND [THREADS]`. Prints the number of threads that had begun.

Each thread does the same again and again, in a way of its own if the kind is "mixed".
"""

import queue
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np

for option in ("jax_warn_jit_in_loop", "jax_warn_eager_loop"):  # some kinds compile again and again
    jax.config.update(option, False)
x = jnp.ones((100, 100))
f = jax.jit(lambda x: jnp.sin(x) @ x)
batches = queue.Queue(2)


def prefetch(y):
    batches.put(jax.device_put(np.ones((100, 100))) + 1)
    if batches.full():
        batches.get()
    return y


def differentiate(y):
    jax.vmap(jax.grad(lambda x: f(x[None] * y)[0, 0]))(y)
    return y


def call_back(y):
    jax.debug.callback(lambda y: None, y)
    return jax.pure_callback(lambda y: y, y, y)


def compute_in_a_callback(y):
    """The end begins while the callback runs, which then computes."""

    def compute(y):
        begun[0].set()
        time.sleep(0.2)
        return np.asarray(jnp.asarray(y) + 1)

    return jax.pure_callback(compute, y, y).block_until_ready()


KINDS = {
    "known": f,
    "eager": lambda y: y * 0.5 + 1,
    "put": prefetch,
    "trace": lambda y: jax.jit(lambda y: jnp.tanh(y) * 2)(y),
    "derivative": differentiate,
    "read": lambda y: y * float(f(x)[0, 0] > 0),
    "block": lambda y: f(y).block_until_ready(),
    "callback": call_back,
    "in callback": compute_in_a_callback,
    "random": lambda y: jax.random.normal(jax.random.key(0), y.shape),
}

kind = sys.argv[1]
count = int(sys.argv[2]) if len(sys.argv) > 2 else 1
begun = [threading.Event() for _ in range(count)]


def work(i):
    step = [*KINDS.values()][i % len(KINDS)] if kind == "mixed" else KINDS[kind]
    y = x
    while True:
        y = step(y)
        begun[i].set()


for i in range(count):
    threading.Thread(target=work, args=(i,), daemon=True).start()
for event in begun:
    event.wait()
print(len(begun))
