"""The sources of the manual in one folder: pages of this repository at their places, and generated pages.

Links between files of the repository become links between pages. A linked file that is not a page becomes one, with its
text, so the manual has no link that leads out of it.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GALLERY = ROOT / "examples" / "gallery"  # its pages are generated
PICTURES = (".png", ".svg")
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
LANGUAGES = {
    ".py": "python",
    ".sh": "bash",
    ".js": "javascript",
    ".cjs": "javascript",
    ".json": "json",
    ".yaml": "yaml",
}
LANGUAGES |= {".toml": "toml", ".pyi": "python", ".md": "markdown", ".html": "html", ".css": "css"}

# Patterns of pages outside of docs/, and the folder of each in the manual. Some exist only in a later edition.
OUTSIDE = {
    "packages/*/README.md": "packages",
    "examples/*/README.md": "examples",
    "examples/*/*/README.md": "examples",
    "benchmarks/README.md": "",
    "README.md": "",
    "packages/inspect/src/bedrax/inspect/errors/*.md": "errors",
    "CONTRIBUTING.md": "",
    "SECURITY.md": "",
    "CODE_OF_CONDUCT.md": "",
    "CHANGELOG.md": "",
}


def places() -> dict[Path, str]:
    """File -> path of its page, without suffix."""
    found = {path: path.relative_to(DOCS).with_suffix("").as_posix() for path in sorted(DOCS.glob("**/*.md"))}
    for pattern, folder in OUTSIDE.items():
        for path in sorted(ROOT.glob(pattern)):
            relative = path.relative_to(ROOT)
            if path.name == "README.md":
                name = "-".join(relative.parent.parts[1:]) or relative.parent.name or "readme"
            else:
                name = path.stem if folder == "errors" else path.stem.lower()
            found[path] = f"{folder}/{name}".lstrip("/")
    found[GALLERY] = "gallery/index"
    return found | {path: f"gallery/{path.stem}" for path in GALLERY.glob("[a-z]*.py")}


class Sources:
    """The folder that Sphinx reads."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.places = places()
        self.shown: set[Path] = set()  # files that are linked and no pages
        self.wrong: list[str] = []

    def write(self, generated: dict[str, str]) -> None:
        """Write all pages; `generated` maps paths without suffixes to texts, with links that hold already."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(DOCS, self.folder, ignore=shutil.ignore_patterns("*.md", "__pycache__"))
        pages = {*self.places.values(), *generated}
        for file, page in self.places.items():
            if page not in generated:
                text = self.rewritten(file.read_text(encoding="utf-8"), file, page, generated)
                self._write(page, self.without_empty_globs(page, text, pages))
        for page, text in generated.items():
            self._write(page, text)
        while self.shown:
            file = self.shown.pop()
            if file not in self.places:
                self.places[file] = page = self._page_of_file(file)
                self._write(page, self._text_of_file(file))

    def without_empty_globs(self, page: str, text: str, pages: set[str]) -> str:
        """The text without the patterns of tables of contents that match no page: some pages come later."""

        def kept(toctree: re.Match) -> str:
            lines = toctree[0].split("\n")
            full = lambda line: os.path.normpath(Path(page).parent / line)
            return "\n".join(x for x in lines if "*" not in x or fnmatch.filter(pages, full(x)))

        return re.sub(r"^```\{toctree\}.*?^```$", kept, text, flags=re.MULTILINE | re.DOTALL)

    def _write(self, page: str, text: str) -> None:
        path = self.folder / f"{page}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    @staticmethod
    def _page_of_file(file: Path) -> str:
        return f"files/{file.relative_to(ROOT).as_posix()}".rstrip("/")

    def _text_of_file(self, file: Path) -> str:
        name = file.relative_to(ROOT).as_posix()
        head = f"---\norphan: true\n---\n\n# `{name}`\n\n"
        if file.is_dir():
            inside = sorted(p.name + "/" * p.is_dir() for p in file.iterdir() if p.name[0] not in "._")
            return head + "\n".join(f"- `{n}`" for n in inside) + "\n"
        text = file.read_text(encoding="utf-8")
        return f"{head}``````{LANGUAGES.get(file.suffix, 'text')}\n{text}\n``````\n"

    def rewritten(self, text: str, file: Path, page: str, generated: dict[str, str]) -> str:
        """The text of a page whose links lead to pages."""
        ends, last = [], 0
        for fence in FENCE.finditer(text):
            ends += [self._links(text[last : fence.start()], file, page, generated), fence[0]]
            last = fence.end()
        return "".join([*ends, self._links(text[last:], file, page, generated)])

    def _links(self, text: str, file: Path, page: str, generated: dict[str, str]) -> str:
        return LINK.sub(lambda match: f"{match[1]}({self._target(match[2], file, page, generated)})", text)

    def _target(self, target: str, file: Path, page: str, generated: dict[str, str]) -> str:
        where, mark, anchor = target.partition("#")
        if "://" in target or not where or target.startswith("mailto:"):
            return target
        path = Path(os.path.normpath(file.parent / where))
        if path.is_dir() and (path / "README.md") in self.places:
            path = path / "README.md"
        if path.suffix in PICTURES and path.is_file():
            place = Path("files") / path.relative_to(ROOT)
            (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, self.folder / place)
            return os.path.relpath(place, Path(page).parent)
        made = path.relative_to(DOCS).with_suffix("").as_posix() if path.is_relative_to(DOCS) else ""
        if path in self.places:
            made = self.places[path]
        elif made not in generated:
            if not path.exists() or not path.is_relative_to(ROOT):
                self.wrong.append(f"{file.relative_to(ROOT)}: no such file: {target}")
                return target
            self.shown.add(path)
            made = self._page_of_file(path)
        return os.path.relpath(f"{made}.md", Path(page).parent) + mark + anchor


def external_links(folder: Path) -> Iterator[str]:
    """Links to other hosts that are not well formed."""
    good = re.compile(r"https?://[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?(/[^\s]*)?$")
    for path in sorted(folder.glob("**/*.md")):
        for _, target in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
            if "://" in target and not good.match(target):
                yield f"{path.relative_to(folder)}: {target}"


# ---- text as Markdown ----

SPAN = re.compile(r"``.+?``|`[^`\n]+`")


def escaped(text: str) -> str:
    """Text in which the marks of Markdown, except code spans, are escaped."""
    parts, last = [], 0
    for span in SPAN.finditer(text):
        parts += [_escape(text[last : span.start()]), span[0].replace("|", "\\|")]
        last = span.end()
    return "".join([*parts, _escape(text[last:])])


def _escape(text: str) -> str:
    return re.sub(r"([\\*_\[\]<>$|~`#{}^])", r"\\\1", text)
