"""Offers of packages above are found in the metadata of installed distributions, imported or not."""

import subprocess
import sys
from pathlib import Path

import pytest

from bedrax.core import executors, offers


@pytest.fixture
def folder(tmp_path):
    """A folder with a distribution that offers a function, an executor, and options."""
    info = tmp_path / "above-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: above\nVersion: 1.0\n", encoding="utf-8")
    entries = "[bedrax]\nwhat is above = above:answer\nexecutor 7 = above\noptions of above = above_flags.flags\n"
    (info / "entry_points.txt").write_text(entries, encoding="utf-8")
    (tmp_path / "above.py").write_text(
        "from bedrax.core import executors\n"
        "answer = lambda: 42\n"
        "class Above(executors.Executor):\n"
        "    name, rank = 'above', 7\n"
        "executors.provide(Above())\n",
        encoding="utf-8",
    )
    (tmp_path / "above_flags").mkdir()
    (tmp_path / "above_flags" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "above_flags" / "flags.py").write_text(
        "from bedrax.core.config import flag\nflag('above_height', 3, 'a number')\n", encoding="utf-8"
    )
    return tmp_path


@pytest.mark.parametrize(
    "program",
    [
        "from bedrax.core import offers; assert offers.offered('what is above')() == 42",
        "from bedrax.core import executors; assert executors.any_offered() and executors.get().name == 'above'",
        "from bedrax.core.config import config; assert config.above_height == 3",
    ],
    ids=["function", "executor", "option"],
)
def test_offers_of_installed_packages_are_found(folder, program):
    start = f"import sys; sys.path.append({str(folder)!r}); "
    subprocess.run([sys.executable, "-c", start + program + "; assert 'above' in str(sys.modules)"], check=True)


def test_a_face_names_all_offers(monkeypatch):
    monkeypatch.setattr(offers, "_all", None)
    offers.name_all({"a purpose": "math:sqrt"})
    assert offers.offered("a purpose")(4) == 2
    assert offers.offered("another purpose") is None and offers.offered("another purpose", len) is len
    offers.offer("a purpose of an import", "math:floor")
    try:
        assert offers.offered("a purpose of an import")(1.5) == 1
    finally:
        del offers._targets["a purpose of an import"]


def test_operators_of_absent_packages_name_the_package():
    """The operators and methods of arrays without the packages that have them."""
    program = Path(__file__).parent / "programs" / "methods_without_packages.py"
    subprocess.run([sys.executable, program], check=True)


class Backend(executors.Executor):
    def __init__(self, rank):
        self.rank, self.name = rank, f"rank {rank}"


@pytest.fixture
def registry(monkeypatch):
    for name, value in {"active": None, "_chosen": None, "_provided": {}, "ready": {}}.items():
        monkeypatch.setattr(executors, name, value)
    monkeypatch.setattr(offers, "_all", {})
    monkeypatch.setattr(offers, "_targets", {})


def test_the_installed_executor_of_the_highest_rank_evaluates(registry):
    assert not executors.any_offered()
    low, high = Backend(1), Backend(2)
    executors.provide(low)
    assert executors.get() is low
    executors.provide(high)
    assert executors.get() is high
    executors.provide(Backend(0))
    assert executors.get() is high


def test_a_chosen_executor_remains_active(registry):
    low, high = Backend(1), Backend(2)
    executors.provide(low)
    executors.install(low)
    executors.provide(high)
    executors.offer("a_module_that_is_not_imported", 3)
    assert executors.get() is low
    del offers._targets["executor 3"]
    executors.install(None)
    assert executors.get() is high


def test_a_struct_of_a_reference_needs_a_package_with_references(monkeypatch):
    from bedrax.core.avals import ShapeDtypeStruct

    monkeypatch.setattr(offers, "_all", {})
    monkeypatch.setattr(offers, "_targets", {})
    with pytest.raises(NotImplementedError, match="install bedrax-state"):
        ShapeDtypeStruct((3,), "float32", is_ref=True)
