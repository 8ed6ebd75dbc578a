"""The tools of the manual: links, docstrings as Markdown, and the checks of the built pages, on small inputs."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools" / "manual"))

import checks
import stage


@pytest.fixture
def sources(tmp_path):
    return stage.Sources(tmp_path / "source")


def test_links_between_files_become_links_between_pages(sources):
    text = "[a](../gpu.md#to-run-it) [b](../../examples/digits) [c](https://example.org) [d](../options.md)"
    there = ROOT / "docs" / "howto" / "port.md"
    found = sources.rewritten(text, there, "howto/port", {"options": ""})
    assert found == ("[a](../gpu.md#to-run-it) [b](../examples/digits.md) [c](https://example.org) [d](../options.md)")
    assert not sources.wrong


def test_a_linked_file_becomes_a_page(sources):
    there = ROOT / "docs" / "index.md"
    assert sources.rewritten("[x](../noxfile.py)", there, "index", {}) == "[x](files/noxfile.py.md)"
    assert sources.shown == {ROOT / "noxfile.py"}


def test_a_link_to_an_absent_file_is_reported(sources):
    sources.rewritten("[x](absent.md)", ROOT / "docs" / "index.md", "index", {})
    assert sources.wrong == ["docs/index.md: no such file: absent.md"]


def test_links_in_code_stay(sources):
    text = "```text\n[x](absent.md)\n```\n"
    assert sources.rewritten(text, ROOT / "docs" / "index.md", "index", {}) == text
    assert not sources.wrong


def test_patterns_that_match_no_page_are_left_out(sources):
    text = "```{toctree}\n:glob:\n\nhere*\nabsent*\n```"
    assert sources.without_empty_globs("index", text, {"here_it_is"}) == "```{toctree}\n:glob:\n\nhere*\n```"


def test_wrong_links_of_built_pages_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there"></a><a href="b.html#absent"></a><a href="c.html"></a><script src="https://x.org/y.js"></script>',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="there"></p>', encoding="utf-8")
    assert list(checks.wrong_links(tmp_path)) == [
        "a.html loads https://x.org/y.js",
        "a.html: no anchor for b.html#absent",
        "a.html: no file for c.html",
    ]


def test_marks_of_markdown_outside_code_are_escaped():
    assert stage.escaped("a*b and `a*b` and ``x|y``") == r"a\*b and `a*b` and ``x\|y``"


def test_docstrings_become_markdown():
    reference = pytest.importorskip("reference")
    text = "Sum.\n\nArgs:\n  x: an array\n    of floats.\n\nReturns:\n  A number.\n\nExamples:\n\n  >>> f(1)\n  2\n"
    found = [line for line in reference.markdown(text).splitlines() if line]
    assert found == [
        "Sum.",
        "**Arguments**",
        "- **x**: an array of floats.",
        "**Returns**",
        "A number.",
        "**Examples**",
        "```pycon",
        ">>> f(1)",
        "2",
        "```",
    ]


def test_names_of_an_entry_may_take_two_lines():
    reference = pytest.importorskip("reference")
    text = "Sum.\n\nArgs:\n  x, y,\n    z: arrays\n    of floats.\n"
    assert reference.markdown(text).splitlines()[-1] == "- **x, y, z**: arrays of floats."


def test_signatures_have_the_types_of_the_stubs():
    reference = pytest.importorskip("reference")
    jnp = pytest.importorskip("jax.numpy")
    assert reference.signature(jnp.sin, "sin") == "(x: ArrayLike, /) -> Array"
    assert reference.signature(jnp.quantile, "quantile").startswith("(a: ArrayLike, q: ArrayLike, axis: ")


def test_an_abbreviation_does_not_end_the_summary():
    reference = pytest.importorskip("reference")
    entry = reference.Entry("he_normal", None, "Normal numbers (He et al. 2015), e.g. for relu. A second sentence.")
    assert entry.summary == "Normal numbers (He et al. 2015), e.g. for relu."
