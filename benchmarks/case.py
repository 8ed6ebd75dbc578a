"""The record that one benchmark is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One measurement, the same code in several environments.

    name: `group/what`, unique.
    statement: what is measured, or one per environment.
    setup: run once before, in the namespace of `statement`; one text, or one per environment.
    prepare: run before every single execution of `statement`, not measured.
    peers: environments to compare with; the ratio is "ours" over the first of them. `ours:what` is another statement
        in ours.
    target: the ratio to stay below, if there is one.
    allowance: what ours may need more than `target` times the peer's, in the unit.
    unit: "s" for CPU seconds; "MB" for growth of the peak memory (always in a fresh process); any other is that of the
        number that `statement`, an expression, has for value.
    fresh: run every sample in a new process.
    """

    name: str
    statement: str | dict[str, str]
    setup: str | dict[str, str] = ""
    prepare: str = ""
    peers: tuple[str, ...] = ("upstream",)
    target: float | None = None
    allowance: float = 0.0
    unit: str = "s"
    fresh: bool = False

    def code(self, environment: str) -> dict:
        """What the worker in that environment is told."""

        def pick(text):
            return text if isinstance(text, str) else text[environment]

        return {
            "statement": pick(self.statement),
            "setup": pick(self.setup),
            "prepare": self.prepare,
            "unit": self.unit,
        }
