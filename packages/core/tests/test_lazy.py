"""`attach_stub`: a module has the names that its stub imports, at first use."""

import ast
import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bedrax.core import lazy

SHOP = {
    "shop/__init__.py": "from bedrax.core.lazy import attach_stub\n"
    "__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)\n",
    "shop/__init__.pyi": '''
        """A docstring, a comment, and lines in brackets are fine."""
        from shelf import apple as apple, pear as _pear, _hidden as _hidden  # fruit
        from shelf import (
            crate,
        )
        from . import till as till
        from .scales import scales as scales
        from more import *
        from os import path as path

        birne = _pear
    ''',
    "shop/till.py": "coins = 3",
    "shop/scales.py": "scales = 'a function, not the module'\nother = 1",
    "shelf.py": "print('shelf is imported')\napple, pear, _hidden, crate = 1, 2, 3, 4",
    "more.py": "__all__ = ['flour']\nflour, salt = 5, 6",
}


@pytest.fixture
def shop(tmp_path):
    """Return the output of a program in a fresh interpreter that can import the shop."""

    def run(program, **more):
        for name, text in {**SHOP, **more}.items():
            file = tmp_path / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(textwrap.dedent(text))
        code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{textwrap.dedent(program)}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        return done.stdout.split("\n")[:-1], done.stderr

    return run


def test_names_are_found_when_they_are_asked_for(shop):
    lines, error = shop(
        """
        import shop
        print(shop.__all__)
        print([n for n in dir(shop) if n[0] != "_" and n not in shop.__all__])
        print(shop.apple, shop.birne, shop._hidden, shop.crate, shop.till.coins, shop.flour, shop.path.sep)
        print("apple" in vars(shop), hasattr(shop, "salt"), hasattr(shop, "pear"))
        """
    )
    assert not error
    assert lines == [
        "['apple', 'birne', 'flour', 'path', 'scales', 'till']",
        "['crate']",  # without `as` it is no public name, as for a type checker
        "shelf is imported",
        "1 2 3 4 3 5 /",
        "True False False",
    ]


def test_a_submodule_does_not_take_the_name_of_a_function(shop):
    lines, error = shop(
        """
        import shop
        from shop.scales import other
        print(shop.scales)
        """
    )
    assert (lines, error) == (["a function, not the module"], "")


def test_star_imports_are_what_is_public(shop):
    lines, error = shop("from shop import *; print(apple, till.coins); crate")
    assert lines == ["shelf is imported", "1 3"]
    assert "NameError" in error


BAKERY = {
    "bakery.py": "from bedrax.core.lazy import attach_stub\n"
    "__getattr__, __dir__, __all__ = attach_stub(__name__, __file__, extra='shop[oven]')",
    "bakery.pyi": "from oven.hot import bread as bread\nfrom broken import roll as roll",
    "broken.py": "import something_else",
}


@pytest.mark.parametrize(
    "name, message",
    [
        ("bread", "ModuleNotFoundError: bakery needs an extra: install shop[oven] (No module named 'oven')"),
        ("roll", "ModuleNotFoundError: No module named 'something_else'"),
        ("cake", "AttributeError: module 'bakery' has no attribute 'cake'"),
    ],
)
def test_what_is_missing_says_what_to_install(shop, name, message):
    _, error = shop(f"import bakery; bakery.{name}", **BAKERY)
    # From Python 3.15 on, a name that is like the missing one follows.
    assert error.splitlines()[-1].startswith(message)


def test_a_module_that_needs_what_is_missing_is_no_attribute(shop):
    files = {f"street/{name.replace('bakery', 'shop')}": text for name, text in BAKERY.items() if "bakery" in name}
    files["street/shop.py"] += "\n__getattr__('bread')"
    files["street/__init__.py"] = BAKERY["bakery.py"].replace(", extra='shop[oven]'", "")
    files["street/__init__.pyi"] = "from . import shop as shop"
    lines, _ = shop("import street; print(hasattr(street, 'shop'))", **files)
    assert lines[-1] == "False"
    _, error = shop("import street; street.shop", **files)
    assert "AttributeError: module 'street' has no attribute 'shop': street.shop needs an extra" in error


def test_a_stub_holds_nothing_but_imports(shop):
    for line, text in enumerate(
        ("", '"""Bread\nand"""  # cakes\n', "from oven import hot\n", "from oven import (\n    hot,\n)\n")
    ):
        _, error = shop("import bakery", **{**BAKERY, "bakery.pyi": f"{text}def bread() -> int: ..."})
        assert f"bakery.pyi:{(1, 3, 2, 4)[line]}: a stub that is attached holds imports only" in error


STUBS = sorted(Path(__file__).parents[2].glob("*/src/**/*.pyi"))


@pytest.mark.skipif(len(STUBS) < 100, reason="the other packages are not there")
def test_stubs_mean_what_they_mean_to_python():
    for stub in STUBS:
        text = stub.read_text(encoding="utf-8")
        if "attach_stub" not in stub.with_suffix(".py").read_text(encoding="utf-8") or "import *" in text:
            continue
        places, public = lazy._read(str(stub), "a.b.c")
        expected, aliases = {}, set()
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom):
                home = importlib.util.resolve_name("." * node.level + (node.module or ""), "a.b.c")
                expected |= {n.asname or n.name: f"{home} {n.name}" for n in node.names}
                aliases |= {n.asname for n in node.names if n.asname}
            elif isinstance(node, ast.Assign):
                expected[node.targets[0].id] = expected[node.value.id]
                aliases.add(node.targets[0].id)
        assert (places, public) == (expected, aliases), stub


def test_many_threads_may_ask_at_once(shop):
    lines, error = shop(
        """
        import threading, shop
        start, found = threading.Barrier(16), []
        def ask():
            start.wait()
            found.append((shop.apple, shop.till.coins))
        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(found), set(found))
        """
    )
    assert (lines, error) == (["shelf is imported", "16 {(1, 3)}"], "")
