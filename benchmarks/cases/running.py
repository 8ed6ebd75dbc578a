"""The time to run a compiled program: a slower program would undo the gain of a faster trace. The memory of training."""

from ..case import Case

SETUP = "import jax\nfrom benchmarks.programs import STEPS\nstep, args = STEPS[{!r}]()\njax.block_until_ready(step(*args))\n"

CASES = [
    Case(f"run/{name} train step", "jax.block_until_ready(step(*args))", SETUP.format(name), target=1.0)
    for name in ("cnn", "transformer")
] + [
    # From the start of a process: the import, the initial values, and 20 steps.
    Case(
        f"memory/{name}, 20 train steps",
        "from benchmarks.programs import STEPS\n"
        f"step, (params, state, *data) = STEPS[{name!r}]()\n"
        "for _ in range(20):\n"
        "    params, state, loss = step(params, state, *data)\n"
        "loss.block_until_ready()",
        target=1.0,
        unit="MB",
        fresh=True,
    )
    for name in ("cnn", "transformer")
]
