"""The record of one benchmark."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One measurement: the same code in several environments.

    name: `group/what`, unique.
    statement: the measured code, or one per environment.
    setup: code that runs once before, in the namespace of `statement`; one text, or one per environment.
    prepare: code that runs before every single execution of `statement`, not measured.
    peers: environments to compare with. The ratio is "ours" over the first of them. `ours:what` is another statement
        in the environment "ours".
    target: the upper limit of the ratio, if there is one; or a tuple with one for each peer.
    allowance: the amount that ours may need more than `target` times the peer's, in the unit.
    unit: "s" for CPU seconds; "MB" for growth of the peak memory (always in a new process); any other unit is that of
        the number that the expression `statement` returns.
    fresh: run every sample in a new process.
    result: an expression for a list of arrays. Those of ours must agree with those of the first peer.
    cell: the row and the column of this case in the table of ratios of its group, which replaces a row of its own.
    """

    name: str
    statement: str | dict[str, str]
    setup: str | dict[str, str] = ""
    prepare: str = ""
    peers: tuple[str, ...] = ("upstream",)
    target: float | tuple[float, ...] | None = None
    allowance: float = 0.0
    unit: str = "s"
    fresh: bool = False
    result: str = ""
    cell: tuple[str, str] | None = None

    @property
    def targets(self) -> tuple[float, ...]:
        """The limits of the ratios to the first peers."""
        if self.target is None:
            return ()
        return self.target if isinstance(self.target, tuple) else (self.target,)

    def code(self, environment: str) -> dict:
        """The request to the worker in that environment."""

        def pick(text):
            return text if isinstance(text, str) else text[environment]

        return {
            "statement": pick(self.statement),
            "setup": pick(self.setup),
            "prepare": self.prepare,
            "unit": self.unit,
        }
