"""The aims for whole groups of cases, and why a case or a group is above its target."""

from typing import NamedTuple


class Aim(NamedTuple):
    """The geometric mean of a set of ratios.

    title: the row in the table of aims.
    pattern: a regular expression for the names of the cases.
    limit: the upper limit of the geometric mean.
    peer: the position of the peer among the peers of a case.
    """

    title: str
    pattern: str
    limit: float
    peer: int = 0


AIMS = (
    Aim("first start", "^first start/", 0.45),
    Aim("second start, to upstream's default", "^second start/", 0.22),
    Aim("second start, to upstream's with its cache", "^second start/", 0.45, 1),
    Aim("eager operations", "^eager/", 0.40),
    Aim("eager transformations", "^eager transformations/", 0.15),
    Aim("calls of compiled functions", "^jit dispatch/", 0.85),
    Aim("traces of gradients", "^trace/.*gradient", 0.12),
    Aim("lowering", "^lower/", 0.20),
    Aim("run of compiled operations", "^compiled/(?!.*compile)", 0.85),
    Aim("run of compiled Flax models", "^compiled models/(?!.*compile)", 0.85),
    Aim("compilation of operations", "^compiled/.*compile", 0.85),
    Aim("compilation of Flax models", "^compiled models/.*compile", 0.85),
    Aim("gradients on NumPy, to autograd", "^NumPy-only gradients/", 1.0),
    Aim("jitted gradients on NumPy, to autograd", "^NumPy-only jitted gradients/", 0.35),
    Aim("pytrees without jaxlib, to optree", "^NumPy-only pytrees/", 1.5),
)

# By a regular expression for names of cases or titles of aims. The first entry that matches holds.
REASONS: dict[str, str] = {}
