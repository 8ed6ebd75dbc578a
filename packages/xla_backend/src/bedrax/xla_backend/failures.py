"""Notes on errors of the runtime, from packages above.

The runtime's error for a failed collective does not name the process that ended. `bedrax.processes` appends a function
that finds it. The functions are called where this package raises such an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bedrax.xla_backend.door.runtime import JaxRuntimeError

explanations: Final[list[Callable[[JaxRuntimeError], str]]] = []
"""Functions that return a note for an error, or an empty text. A package appends its own, and removes it again."""


def add_notes(error: JaxRuntimeError) -> None:
    """Add the notes of all explanations that the error does not have yet."""
    for explain in tuple(explanations):
        note = explain(error)
        if note and note not in getattr(error, "__notes__", ()):
            error.add_note(note)
