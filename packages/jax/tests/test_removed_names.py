"""Names that upstream removed exist here and warn, or their error names the replacement."""

import importlib
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from jax._removed_names import REMOVED, REPLACED

PROGRAMS = Path(__file__).with_name("programs")


def look_up(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("name", [name for name, text in REMOVED.items() if text is None])
def test_names_that_were_removed_without_a_warning_have_none(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert look_up(name) is not None


@pytest.mark.parametrize("name", [name for name, text in REMOVED.items() if text is not None])
def test_a_name_that_is_deprecated(name):
    """Runs in a new process: a module warns at its first import. `import jax` alone does not warn."""
    program = PROGRAMS / "deprecated_name.py"
    done = subprocess.run([sys.executable, program, name, REMOVED[name]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_name_of_a_module_warns_each_time(monkeypatch):
    import jax.experimental.shard_alike as module

    from bedrax.core import lazy

    name = f"{module.__name__}.shard_alike"
    monkeypatch.setitem(lazy.deprecated, name, "shard_alike is deprecated")
    monkeypatch.delitem(vars(module), "shard_alike", raising=False)
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match="shard_alike is deprecated") as found:
            assert callable(module.shard_alike)
        assert found[0].filename == __file__


@pytest.mark.parametrize("name", sorted(REPLACED))
def test_a_name_that_is_absent_names_its_replacement(name):
    replacement = REPLACED[name]
    module, _, attribute = name.rpartition(".")
    with pytest.raises(AttributeError, match=rf"has no attribute '{attribute}': it was removed; use ") as found:
        getattr(importlib.import_module(module), attribute)
    assert str(found.value).endswith(replacement)
    if (path := replacement.split()[0]).startswith("jax.") and "(" not in path:
        assert look_up(path) is not None
