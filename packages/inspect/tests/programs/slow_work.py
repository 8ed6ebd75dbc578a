"""Work that lasts until the standard input ends.

slow_work.py wait SECONDS          # progress is shown after so many seconds
slow_work.py compile shown|hidden  # a compilation, with or without progress
"""

import sys

import jax

from bedrax.inspect import progress
from bedrax.xla_backend import compile as compiling

kind, how = sys.argv[1:]
if kind == "wait":
    with progress.waiting("adding", after=float(how)):
        sys.stdin.read()
else:
    original = compiling.backend_compile_and_load

    def slow(*args):
        sys.stdin.read()
        return original(*args)

    compiling.backend_compile_and_load = slow
    jax.config.update("jax_show_progress", how == "shown")
    jax.jit(lambda x: x + 17)(1.0)
