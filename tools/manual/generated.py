"""The pages and pictures that are made from the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import stage

SCHEMES = ("light", "dark")


def pages() -> dict[str, str]:
    """Path without suffix -> Markdown of each generated page."""
    import reference

    made = reference.pages()
    return made


def opened(folder: Path) -> list[str]:
    """The pages that the browser opens: all that people wrote, and some of each generated kind."""
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.glob("**/*.html"))]
    few = {"reference": 6, "errors": 3, "packages": 3, "files": 2}
    taken = []
    for name in names:
        kind = name.partition("/")[0]
        if "/" in name and kind in few:
            few[kind] -= 1
            if few[kind] < 0:
                continue
        if not name.startswith("_"):
            taken.append(name)
    return taken


def draw(folder: Path) -> None:
    """Draw the pictures of docs/pictures into a folder, each for light and for dark pages."""
    import matplotlib

    matplotlib.use("svg")
    for path in sorted((stage.DOCS / "pictures").glob("[a-z]*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
