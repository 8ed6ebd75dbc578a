"""The table of all benchmarks: every module of this package holds `CASES`. The cases of one module share a process."""

from importlib import import_module

from ..case import Case

GROUPS = (
    "imports",
    "starts",
    "pytrees",
    "eager",
    "dispatch",
    "tracing",
    "running",
    "compiled",
    "transformations",
    "tensorflow",
    "numpy_only",
)


def load() -> dict[str, list[Case]]:
    """All cases by group."""
    return {group: import_module(f".{group}", __package__).CASES for group in GROUPS}
