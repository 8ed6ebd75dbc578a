"""Imports: CPU time and growth of the peak memory, in a new process each time.

Lazy imports run at the first use, so the first use is measured as well.
"""

from ..case import Case

STATEMENTS = {
    "import jax": ("import jax", 0.35, 0.35),
    "import jax, first operation": ("import jax\njax.block_until_ready(jax.numpy.add(1.0, 2.0))", None, 0.6),
    "import jax, first jit": (
        "import jax\njax.block_until_ready(jax.jit(lambda x: jax.numpy.sin(x) + 1)(1.0))",
        None,
        0.6,
    ),
    "import flax.linen": ("import flax.linen", None, None),
}

CASES = [
    Case(f"imports/{name}, {what}", statement, target=target, unit=unit, fresh=True)
    for name, (statement, time, memory) in STATEMENTS.items()
    for what, unit, target in (("time", "s", time), ("memory", "MB", memory))
]
