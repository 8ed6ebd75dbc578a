"""The time to run a compiled program: a slower program would undo the gain of a faster trace."""

from ..case import Case

SETUP = "import jax\nfrom benchmarks.programs import STEPS\nstep, args = STEPS[{!r}]()\njax.block_until_ready(step(*args))\n"

CASES = [
    Case(f"run/{name} train step", "jax.block_until_ready(step(*args))", SETUP.format(name), target=1.0)
    for name in ("cnn", "transformer")
]
