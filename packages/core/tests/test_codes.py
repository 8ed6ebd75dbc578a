"""Codes of errors: the line at the end of a message, and facts before it."""

import ast
import pickle
import re
from pathlib import Path

import pytest

from bedrax.core import codes, errors, offers
from bedrax.core.codes import TITLES, code_of, coded, plain, with_facts


def test_the_text_ends_with_the_users_line_and_the_code():
    error = ValueError(coded("BX-KEY", "a key is needed", ["It is x."]))
    line = test_the_text_ends_with_the_users_line_and_the_code.__code__.co_firstlineno + 1
    assert str(error) == (
        f"a key is needed\nIt is x.\nAt {__file__}:{line} (test_the_text_ends_with_the_users_line_and_the_code)."
        f" {codes.page_of('BX-KEY')}"
    )
    assert code_of(error) == "BX-KEY"
    assert code_of(pickle.loads(pickle.dumps(error))) == "BX-KEY"
    assert plain(error) == "a key is needed\nIt is x."


def test_facts_are_inserted_before_the_last_line():
    error = ValueError(coded("BX-KEY", "a key is needed"))
    with_facts(error, ["One.", "Two."])
    assert str(error).splitlines()[:3] == ["a key is needed", "One.", "Two."]
    assert code_of(error) == "BX-KEY"
    other = ValueError("no code\nAt noon", 5)
    with_facts(other, ["One."])
    assert other.args == ("no code\nAt noon\nOne.", 5)
    with_facts(other, [])
    assert plain(ValueError("no code\nAt noon")) == "no code\nAt noon"
    for args in ((), (5,)):
        with_facts(odd := KeyError(*args), ["One."])
        assert odd.args == args


@pytest.mark.parametrize(
    ("interface", "packages", "end"),
    [
        ("jax", (), "To read more: python -m jax.explain BX-KEY"),
        (None, ("inspect",), "To read more: python -m bedrax.inspect.explaining BX-KEY"),
        (None, (), "bedrax-inspect has the page of BX-KEY"),
    ],
)
def test_the_last_line_names_the_installed_command(monkeypatch, interface, packages, end):
    monkeypatch.setattr(offers, "_all", {"interface": interface} if interface else {})
    monkeypatch.setattr(codes, "has_package", packages.__contains__)
    error = ValueError(coded("BX-KEY", "a key is needed"))
    assert str(error).endswith(end) and str(error).startswith("a key is needed\nAt ")
    assert code_of(error) == "BX-KEY" and plain(error) == "a key is needed"
    with_facts(error, ["It is x."])
    assert str(error).startswith("a key is needed\nIt is x.\nAt ") and str(error).endswith(end)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "python -m jax.explain ",
        "python -m jax.explain BX-KEY",
        "\nAt a.py. To read more: python -m jax.explain BX-NO-SUCH",
        "BX-KEY",
    ],
)
def test_a_text_without_a_code(text):
    assert code_of(ValueError(text)) is None


def test_the_errors_of_traced_values_have_codes():
    class Value:
        aval = None

    kinds = [errors.TracerBoolConversionError, errors.TracerIntegerConversionError, errors.TracerArrayConversionError]
    for kind in (*kinds, errors.ConcretizationTypeError):
        error = pickle.loads(pickle.dumps(kind(Value())))
        assert code_of(error) == kind.code in TITLES


def test_the_sources_use_each_code_and_no_other():
    """Codes that stand in calls of `coded` and in classes of errors, in all packages that are here."""
    house = Path(codes.__file__).parents[4]
    if not (house / "core" / "pyproject.toml").exists():
        pytest.skip("the sources of the other packages are not here")
    used = set()
    for path in house.glob("*/src/bedrax/**/*.py"):
        if path.name != "codes.py" and "coded(" in (text := path.read_text(encoding="utf-8")) or "code = " in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Constant) and re.fullmatch(r"BX-[A-Z-]+", str(node.value)):
                    used.add(node.value)
    assert used - {"BX-"} == set(TITLES)
