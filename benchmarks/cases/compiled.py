"""Compiled programs: operations at three sizes and Flax models, forward and gradient. Run time, compile time, results."""

from ..case import Case
from ..compiled import KINDS, MODELS, OPERATIONS, SIZES, WITHOUT_GRADIENT

RUN, COMPILE = 1.03, 1.03


def cases_of(group: str, name: str, column: str, make: str, compiles: bool) -> list[Case]:
    """The run time, with a comparison of the results, and the compile time."""
    setup = f"import jax\nfrom benchmarks import compiled\nmake, args = compiled.{make}\n"
    run = Case(
        f"{group}/{name}, {column}",
        "jax.block_until_ready(f(*args))",
        f"{setup}f = jax.jit(make())\njax.block_until_ready(f(*args))\n",
        target=RUN,
        result="jax.tree.leaves(f(*args))",
        cell=(name, column),
    )
    if not compiles:
        return [run]
    build = Case(
        f"{group}/{name}, compile {column}",
        "lowered.compile()",
        setup,
        "lowered = jax.jit(make()).lower(*args)",
        target=COMPILE,
        cell=(name, f"compile {column}"),
    )
    return [run, build]


CASES = [
    case
    for name in OPERATIONS
    for kind in KINDS
    if not (kind == "gradient" and name in WITHOUT_GRADIENT)
    for size in SIZES
    for make in [f"operation({name!r}, {size!r}, {kind!r})"]
    for case in cases_of("compiled", name, f"{kind}, {size}", make, size == "medium")
] + [
    case
    for name in MODELS
    for kind in KINDS
    for case in cases_of("compiled models", name, kind, f"model({name!r}, {kind!r})", True)
]
