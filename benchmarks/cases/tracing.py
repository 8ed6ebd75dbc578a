"""Tracing (function to jaxpr) and lowering (jaxpr to StableHLO), measured separately.

Every repetition takes a new function object, or a new trace of one, so no cache has an entry.
"""

from dataclasses import replace

from ..case import Case

TRACE, LOWER = 0.3, 0.6


def cases_of(program: str, what: str, make: str) -> list[Case]:
    setup = (
        "import jax\n"
        "from benchmarks.programs import PROGRAMS, gradient\n"
        f"make, args = PROGRAMS[{program!r}]()\n"
        f"make = {make}"
    )
    trace = "jax.jit(make()).trace(*args)"
    return [
        Case(f"trace/{program}, {what}", trace, setup, target=TRACE),
        Case(f"lower/{program}, {what}", "traced.lower()", setup, f"traced = {trace}", target=LOWER),
    ]


CASES = [
    case
    for program in ("chain", "mlp", "cnn", "transformer")
    for what, make in (("forward", "make"), ("gradient", "gradient(make)"))
    for case in cases_of(program, what, make)
] + [
    # The first trace of a process, with empty caches.
    replace(cases_of(program, "gradient", "gradient(make)")[0], name=f"first trace/{program}", fresh=True, target=None)
    for program in ("cnn", "transformer")
]
