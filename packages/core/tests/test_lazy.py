"""`attach`: a module imports the names of its table at their first use."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")

SHOP = {
    "shop/__init__.py": """
        from bedrax.core.lazy import attach

        __getattr__, __dir__, __all__ = attach(
            __name__,
            {
                "shelf": ("apple", "_hidden"),
                ".": ("till",),
                ".scales": ("scales",),
                "more": "*",
                "os": ("path",),
            },
            renamed={"shelf": {"birne": "pear"}},
            hidden={"shelf": ("crate",)},
        )
    """,
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
            file.write_text(textwrap.dedent(text), encoding="utf-8")
        arguments = [program] if isinstance(program, Path) else ["-c", textwrap.dedent(program)]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        return done.stdout.split("\n")[:-1], done.stderr

    return run


def test_names_are_imported_on_first_use(shop):
    lines, error = shop(PROGRAMS / "names_of_a_shop.py")
    assert not error
    assert lines == [
        "['apple', 'birne', 'flour', 'path', 'scales', 'till']",
        "['crate']",
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


def test_star_imports_import_the_public_names(shop):
    lines, error = shop("from shop import *; print(apple, till.coins); crate")
    assert lines == ["shelf is imported", "1 3"]
    assert "NameError" in error


BAKERY = {
    "bakery.py": """
        from bedrax.core.lazy import attach

        __getattr__, __dir__, __all__ = attach(
            __name__, {"oven.hot": ("bread",), "broken": ("roll",)}, extra="shop[oven]"
        )
    """,
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
def test_the_error_of_a_missing_name_says_what_to_install(shop, name, message):
    _, error = shop(f"import bakery; bakery.{name}", **BAKERY)
    # From Python 3.15 on, a name that is like the missing one follows.
    assert error.splitlines()[-1].startswith(message)


def test_a_module_with_a_missing_dependency_is_no_attribute(shop):
    text = textwrap.dedent(BAKERY["bakery.py"])
    files = {
        "street/__init__.py": text.replace('{"oven.hot": ("bread",), "broken": ("roll",)}', '{".": ("shop",)}'),
        "street/shop.py": text.replace("shop[oven]", "street[oven]") + "\n__getattr__('bread')",
        "broken.py": BAKERY["broken.py"],
    }
    files["street/__init__.py"] = files["street/__init__.py"].replace(', extra="shop[oven]"', "")
    lines, _ = shop("import street; print(hasattr(street, 'shop'))", **files)
    assert lines[-1] == "False"
    _, error = shop("import street; street.shop", **files)
    assert "AttributeError: module 'street' has no attribute 'shop': street.shop needs an extra" in error


def test_the_later_home_of_a_name_counts(shop):
    table = '{"first": "*", "second": ("flour",)}'
    files = {"first.py": "__all__ = ['flour', 'salt']\nflour = salt = 1", "second.py": "flour = 2"}
    files["larder.py"] = (
        f"from bedrax.core.lazy import attach\n__getattr__, __dir__, __all__ = attach(__name__, {table})"
    )
    lines, error = shop("import larder; print(larder.flour, larder.salt, larder.__all__)", **files)
    assert (lines, error) == (["2 1 ['flour', 'salt']"], "")


def test_concurrent_threads_import_a_name_once(shop):
    lines, error = shop(PROGRAMS / "shop_from_threads.py")
    assert (lines, error) == (["shelf is imported", "16 {(1, 3)}"], "")
