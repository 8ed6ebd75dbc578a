"""Names and parameters of upstream's interface are here too, or a table has the reason why not."""

import interface
import jax
import pytest
from interface import DIFFERENT, NOT_CLASSES, TABLE

from bedrax.extend import unsupported


def test_the_table_is_of_the_version_of_jax():
    assert TABLE["version"] == jax.__version__


@pytest.mark.needs("tensorstore")  # some names are of it
def test_missing_names_have_a_reason():
    missing, total = interface.missing()
    without = [path for path in missing if unsupported.why(path) is None]
    assert not without, f"make them, or give the reason in bedrax.extend.unsupported.missing: {without}"
    assert 1 - len(missing) / total >= 0.99, f"{len(missing)} of {total} names are missing: {missing}"


def test_reasons_are_for_missing_names_only():
    plain = [path for path in unsupported.missing if not path.startswith("jax._src") and "*" not in path]
    assert plain and not [path for path in plain if interface.find(path) is not None]
    assert all(len(why) > 20 for why in unsupported.missing.values())


def test_parameters_are_upstreams_or_have_a_reason():
    found, table = dict(interface.different()), [path for paths in DIFFERENT.values() for path in paths]
    wrong = {path: how for path, how in found.items() if path not in table}
    assert not wrong, f"take them, refuse them, or give the reason in interface.DIFFERENT: {wrong}"
    assert sorted(table) == sorted(found), "these are as upstream's now, or twice in the table"


def test_isinstance_accepts_the_classes_that_upstream_accepts():
    wrong, allowed = set(interface.not_classes()), {path for paths in NOT_CLASSES.values() for path in paths}
    assert not wrong - allowed, f"make them classes or unions of classes without parameters: {sorted(wrong - allowed)}"
    assert not allowed - wrong, f"isinstance takes these now: {sorted(allowed - wrong)}"
    assert len(TABLE["classes"]["jax.numpy"].split()) > 5


@pytest.mark.parametrize(
    "upstream, function, how",
    [
        ("(a, b=, *, c=)", lambda a, b=1, *, c=2, d=3: 0, None),
        ("(a, b)", lambda a, b=1, *more: 0, None),
        ("(x, /)", lambda y, /: 0, None),
        ("(*args, **kwargs)", lambda x: 0, None),
        ("(a, *, c)", lambda a, **options: 0, None),
        ("(a, b=)", lambda a: 0, "no parameter b"),
        ("(a, b)", lambda b, a: 0, "position 0 is not a"),
        ("(a, *, b)", lambda a: 0, "no parameter b"),
        ("(a, b)", lambda a, *, b: 0, "position 1 is not b"),
        ("(a)", lambda a, b: 0, "needs ['b']"),
        ("(a=)", lambda a: 0, "needs ['a']"),
        ("(*xs)", lambda a: 0, "does not take *xs"),
        ("(a, **options)", lambda a: 0, "does not take **options"),
        ("(a)", lambda *args, **kwargs: 0, "any arguments"),
        ("(a)", 3, "not known"),
    ],
)
def test_differences_are_found(upstream, function, how):
    found = interface.unlike(upstream, function)
    assert found is None if how is None else how in found
