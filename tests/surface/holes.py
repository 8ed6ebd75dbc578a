"""Where a function of the surface does not hold in a mode, and why. The test fails for a hole that holds."""

_BETAINC = "the regularized incomplete beta function has no derivative in its parameters, as upstream"

HOLES: dict[tuple[str, str], str] = {}
