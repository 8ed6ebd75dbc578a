"""The command `bedrax`. Its subcommands are entry points of installed packages, in the group `bedrax.commands`.

An entry point is a function `main(argv: list[str]) -> int`. It gets the arguments after its name, and returns the status.
"""

from __future__ import annotations

import difflib
import importlib.metadata
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from typing import Final

__all__ = ["GROUP", "commands", "main"]

GROUP: Final = "bedrax.commands"
_USAGE = "usage: bedrax [--help | --version] COMMAND ..."


def commands() -> dict[str, EntryPoint]:
    """Return the subcommands of the installed packages by name.

    Examples:

      >>> from bedrax.command import commands
      >>> "doctor" in commands()
      True
    """
    return {entry.name: entry for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda e: e.name)}


def _listed() -> str:
    lines = [_USAGE, "", "commands:"]
    for name, entry in commands().items():
        lines.append(f"  {name:12} of {entry.dist.name if entry.dist else entry.module}")
    return "\n".join([*lines, "", "`bedrax COMMAND --help` describes a command."])


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand. Returns its status; 2 if there is no such command, or if it cannot be imported.

    Examples:

      >>> from bedrax.command import main
      >>> main(["--version"])
      bedrax ...
      0
    """
    given = list(sys.argv[1:] if argv is None else argv)
    match given:
        case [] | ["-h" | "--help", *_]:
            print(_listed())
            return 0 if given else 2
        case ["--version", *_]:
            print(f"bedrax {importlib.metadata.version('bedrax')}")
            return 0
        case [name, *rest]:
            found = commands()
    if name not in found:
        near = difflib.get_close_matches(name, found, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        print(f"bedrax: there is no command {name!r}.{hint}\n{_listed()}", file=sys.stderr)
        return 2
    entry = found[name]
    try:
        run = entry.load()
    except Exception as error:  # a damaged installation
        where = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module
        print(
            f"bedrax: the command {name!r} of {where} cannot be imported: {type(error).__name__}: {error}",
            file=sys.stderr,
        )
        return 2
    return run(rest)
