"""An extension of Sphinx: formulas as MathML, and pictures that are drawn at build time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.utils.math.latex2mathml import tex2mathml


def _formula(writer: Any, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


class Picture(Directive):
    """``{picture} name`` with a description: the drawing `name` of `docs/pictures`, for light and for dark pages."""

    required_arguments = 1
    option_spec = {"width": directives.unchanged}
    has_content = True

    def run(self) -> list[nodes.Node]:
        """The two images. A page shows the one of its colours."""
        text = " ".join(" ".join(self.content).split())
        if not text:
            raise self.error("a picture needs a description, for readers who do not see it")
        environment = self.state.document.settings.env
        up = "../" * environment.docname.count("/")
        found: list[nodes.Node] = []
        for scheme in ("light", "dark"):
            uri = f"{up}pictures/{self.arguments[0]}-{scheme}.svg"
            if not Path(environment.srcdir, "pictures", f"{self.arguments[0]}-{scheme}.svg").is_file():
                raise self.error(f"docs/pictures has no drawing {self.arguments[0]}")
            image = nodes.image(uri=uri, alt=text, classes=["picture", "dark-light"])
            if "width" in self.options:
                image["width"] = self.options["width"]
            wide = [] if self.arguments[0].startswith("gallery-") else ["wide"]  # it scrolls on a phone
            found.append(nodes.container("", image, classes=["picture-frame", f"only-{scheme}", *wide]))
        return found


def setup(app: Any) -> dict[str, bool]:
    """Register both with Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(_formula, None), block_renderers=(_block, None))
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
