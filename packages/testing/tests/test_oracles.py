"""A test is skipped over a library that is not an oracle for it, and only then."""

import functools
import importlib

import pytest

from bedrax.testing import oracles


def test_a_name_is_refused_before_its_version_and_taken_from_it_on(monkeypatch):
    scipy = importlib.import_module("scipy")
    for version, right in ("1.14.1", False), ("1.16.2", False), ("1.16.3", True), ("1.17.0rc1", True), ("2.0", True):
        monkeypatch.setattr(scipy, "__version__", version)
        if right:
            oracles.require("scipy.special.expi")
        else:
            with pytest.raises(
                pytest.skip.Exception, match=f"is not an oracle in scipy {version}: before 1.16.3, it is NaN"
            ):
                oracles.require("scipy.special.erf", "scipy.special.expi")
    monkeypatch.setattr(scipy, "__version__", "1.0")
    oracles.require("scipy.special.erf")  # no row


@pytest.mark.parametrize("name", oracles.SINCE)
def test_each_oracle_exists_in_its_library(name):
    oracles.require(name)
    library, *path = name.split(".")
    importlib.import_module(".".join([library, *path[:1]]) if library == "scipy" else library)
    if name.startswith("scipy.spatial"):
        importlib.import_module("scipy.spatial.transform")
    assert callable(functools.reduce(getattr, path, importlib.import_module(library)))
