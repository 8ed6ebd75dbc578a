"""The pages and pictures of the manual that are made from the code."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import stage

# The colours of a picture: of text and lines, of weak lines, of the page, and of what is drawn.
PALETTES = {
    "light": {
        "ink": "#22272e",
        "weak": "#8b949e",
        "page": "#ffffff",
        "fill": "#eef2f6",
        "colours": ["#1f5f8b", "#c2571a", "#2f7d4f", "#8a3ffc", "#b8325f", "#7a6a00", "#00727a", "#555f6b"],
    },
    "dark": {
        "ink": "#e6edf3",
        "weak": "#8b949e",
        "page": "#14181e",
        "fill": "#252c35",
        "colours": ["#6cb6e8", "#f0925a", "#6fcf97", "#c39bff", "#f283a7", "#e0cf5a", "#5fd0d8", "#aab4c0"],
    },
}


def pages() -> dict[str, str]:
    """Path without suffix -> Markdown of each generated page."""
    import coverage
    import reference
    import surface
    import tensorflow_page

    coverage.import_everything()
    evidence = {"coverage": coverage.page(), "surface": surface.page(), "ignored": surface.ignored_page()}
    evidence["tensorflow"] = tensorflow_page.page()
    return {**reference.pages(), **evidence, "lookup/options": options(), **dict(gallery())}


def options() -> str:
    """The page of all options, from their declarations."""
    from bedrax.core import config

    flags = sorted(config.all_flags(), key=lambda flag: flag.name)
    acting = [flag for flag in flags if not flag.inert]
    lines = ["# Options\n", f"There are {len(acting)} options that act. Set one in any of these ways:\n"]
    lines += [
        "- for a process, before it starts: the environment variable is the name in capitals, `JAX_ENABLE_X64=1`;"
    ]
    lines += ['- for all threads: `jax.config.update("jax_enable_x64", True)`;']
    lines += [
        "- for a block, in this thread: `with jax.enable_x64(True): ...`, for options that have such a function.\n"
    ]
    lines += ["A wrong name or value is an error that names the right ones. [](../ignored.md) has the options that are"]
    lines += ["accepted and change nothing. After a change of an option with a star, functions are traced again.\n"]
    lines += ["| option | default | meaning |", "|---|---|---|"]
    for flag in acting:
        choices = "" if flag.choices is None else "; one of " + ", ".join(f"`{c!r}`" for c in flag.choices)
        meaning = stage.escaped(flag.help) + choices
        star = " \\*" if flag.keyed else ""
        lines += [f"| `{flag.name}`{star} | `{flag.default!r}` | {meaning} |"]
    return "\n".join(lines) + "\n"


def gallery() -> Iterator[tuple[str, str]]:
    """A page for each example, and one with all their pictures."""
    names = sorted(path.stem for path in stage.GALLERY.glob("[a-z]*.py"))
    about = {}
    for name in names:
        text = (stage.GALLERY / f"{name}.py").read_text(encoding="utf-8")
        title, _, rest = (ast.get_docstring(ast.parse(text)) or "").partition("\n")
        about[name] = title.rstrip("."), rest.strip()
        code = text.split('"""', 2)[2].lstrip()
        picture = f"```{{picture}} gallery-{name}\nThe picture of the example: {about[name][0]}.\n```\n"
        run = f"    python examples/gallery/{name}.py\n"
        yield f"gallery/{name}", f"# {about[name][0]}\n\n{about[name][1]}\n\n{picture}\n```python\n{code}```\n\n{run}"
    lines = ["# Gallery\n", "Each example is one file of 20 to 60 lines, which a test runs. Copy one and change it."]
    lines += [
        "The picture is made by the example itself: `python examples/gallery/NAME.py picture.svg` (needs matplotlib).\n"
    ]
    lines += ["```{toctree}", ":hidden:", "", *names, "```\n", "````{grid} 1 2 2 3", ":gutter: 3\n"]
    for name in names:
        lines += ["```{grid-item-card} " + about[name][0], f":link: {name}", ":link-type: doc\n"]
        lines += [":::{picture} gallery-" + name, f"{about[name][0]}.", ":::", "```\n"]
    yield "gallery/index", "\n".join([*lines, "````"]) + "\n"


def opened(folder: Path) -> list[str]:
    """The pages that the browser opens: all pages that are written by hand, and some of each generated kind."""
    few = {"reference": 6, "errors": 3, "packages": 3, "files": 2, "launchers": 1}
    taken = []
    for path in sorted(folder.glob("**/*.html")):
        name = path.relative_to(folder).as_posix()
        kind = name.partition("/")[0]
        few[kind] = few.get(kind, 1000) - 1
        if few[kind] >= 0 and not name.startswith("_") and name not in ("genindex.html", "py-modindex.html"):
            taken.append(name)
    return taken


# ---- pictures ----


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settings(palette: dict[str, Any]) -> dict[str, Any]:
    """Settings of matplotlib for one palette. The same drawing gives the same file."""
    import matplotlib

    ink, weak = palette["ink"], palette["weak"]
    return {
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.edgecolor": weak,
        "axes.titlecolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": matplotlib.cycler(color=palette["colours"]),
        "font.size": 11,
        "font.family": "DejaVu Sans",
        "svg.hashsalt": "bedrax",
    }


def draw(folder: Path) -> None:
    """Draw docs/pictures and the pictures of the gallery into a folder, for light and for dark pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((stage.DOCS / "pictures").glob("[a-z]*.py")):
        _save(path.stem, _module(path).draw, folder)
    for path in sorted(stage.GALLERY.glob("[a-z]*.py")):  # each in its own process: they choose devices and executors
        subprocess.run([sys.executable, "-W", "ignore", __file__, path.stem, str(folder)], check=True)


def draw_example(name: str, folder: Path) -> None:
    """Run an example of the gallery, and draw its picture."""
    module = _module(stage.GALLERY / f"{name}.py")
    data = module.main()
    _save(f"gallery-{name}", lambda palette: module.picture(data), folder)


def _save(name: str, make: Callable[[dict[str, Any]], Any], folder: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    for scheme, palette in PALETTES.items():
        with matplotlib.rc_context(settings(palette)):
            where = folder / f"{name}-{scheme}.svg"
            make(palette).savefig(where, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    draw_example(sys.argv[1], Path(sys.argv[2]))
