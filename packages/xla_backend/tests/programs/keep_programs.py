"""Compile a few programs, which are kept on disk. Prints the events of the cache; the argument repeats the programs."""

import collections
import sys

import numpy as np

import bedrax.xla_backend as xla
from bedrax import lax
from bedrax.core import monitoring

events = collections.Counter()
monitoring.register_event_listener(lambda name, **_: events.update([name.rpartition("/")[2]]))

x = np.arange(6, dtype=np.float32).reshape(2, 3)
programs = {
    "sine": lambda x: lax.sin(x),
    "loop": lambda x: lax.fori_loop(0, 3, lambda _, y: lax.mul(y, x), x),
    "choice": lambda x: lax.cond(
        lax.lt(lax.reduce_max(x, (0, 1)), np.float32(1)), lambda y: lax.neg(y), lambda y: lax.exp(y), x
    ),
    "constant": lambda x: lax.add(x, np.full((2, 3), 7, np.float32)),
}
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
    for name, program in programs.items():
        print(name, np.asarray(xla.jit(program)(x)).tolist())
print(dict(sorted(events.items())))
