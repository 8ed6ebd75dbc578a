"""Imports: CPU time and growth of the peak memory, in a new process each time.

Lazy imports run at the first use, so the first use is measured as well.
"""

from ..case import Case

STATEMENTS = {
    "import jax": ("import jax", 0.35),
    "import jax, first operation": ("import jax\njax.block_until_ready(jax.numpy.add(1.0, 2.0))", None),
    "import jax, first jit": ("import jax\njax.block_until_ready(jax.jit(lambda x: jax.numpy.sin(x) + 1)(1.0))", None),
    "import flax.linen": ("import flax.linen", None),
}

CASES = [
    Case(f"imports/{name}, {what}", statement, target=target, unit=unit, fresh=True)
    for name, (statement, target) in STATEMENTS.items()
    for what, unit in (("time", "s"), ("memory", "MB"))
]
