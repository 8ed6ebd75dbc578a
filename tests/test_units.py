"""The division of pages into units, and their outcomes; `nox -s units` runs the pages of other projects."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import run_units

CELLS = "Text\n\n```{code-cell}\n:tags: [skip]\nx = 1\n```\n\n```python\n%timeit x + 1\n!ls\n```\n\n```{code-cell} ipython3\n1 / 0\n```\n"
BLOCKS = """Title
  .. code-block:: python
    :linenos:

    y = 2
    if y:
      y = 3

>>> y
3

.. codediff::
  :title: this, that

  z = 1
  ---
  z = y
"""


@pytest.mark.parametrize(
    "name, text, units",
    [
        ("a.md", CELLS, ["x = 1\n", "x + 1\n", "1 / 0\n"]),
        ("b.rst", BLOCKS, ["y = 2\nif y:\n  y = 3\n", ">>> y\n3\n", "z = 1\n", "z = y\n"]),
        (
            "c.ipynb",
            json.dumps({"cells": [{"cell_type": "code", "source": ["p = 1"]}, {"cell_type": "markdown"}]}),
            ["p = 1\n"],
        ),
    ],
)
def test_pages_are_cut_into_units(tmp_path, name, text, units):
    (tmp_path / name).write_text(text, encoding="utf-8")
    (page,) = run_units.pages(tmp_path)
    assert [u.strip("\n") for u in page["units"]] == [u.strip("\n") for u in units]


def test_outcomes_of_units():
    page = {"name": "p", "units": ["x = 1\n", "x / 0\n", ">>> x\n2\n", ">>> x\n1\n"]}
    (_, first), (_, second), (_, third), (_, last) = run_units.outcomes(sys.executable, page)
    assert first == last == "ok" and second.startswith("ZeroDivisionError") and third.startswith("AssertionError")
