"""The fixture `tu`: bedrax.pytree on each engine in turn, both in this process.

The engine that the environment chooses is the package as imported; the other is a
second copy of the package, imported under the forcing variable.
"""

import functools
import importlib
import importlib.util
import sys

import pytest

PACKAGE = "bedrax.pytree"


def _loaded_modules():
    return {name: m for name, m in sys.modules.items() if name == PACKAGE or name.startswith(PACKAGE + ".")}


@functools.cache
def _modules_on(engine):
    default = importlib.import_module(PACKAGE)
    importlib.import_module(PACKAGE + ".tree")
    mine = _loaded_modules()
    if default.engine_name == engine:
        return mine
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BEDRAX_PYTREE_ENGINE", engine)
        for name in mine:
            patch.delitem(sys.modules, name)
        try:
            importlib.import_module(PACKAGE + ".tree")
            return _loaded_modules()
        finally:
            for name in _loaded_modules():
                del sys.modules[name]
            sys.modules["bedrax"].pytree = default


def engine_or_skip(engine):
    if engine == "native":
        pytest.importorskip("jaxlib")
    return _modules_on(engine)


@pytest.fixture(params=["native", "python"])
def tu(request, monkeypatch):
    modules = engine_or_skip(request.param)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)  # pickle looks names up here
    package = modules[PACKAGE]
    monkeypatch.setattr(sys.modules["bedrax"], "pytree", package)
    assert package.engine_name == request.param
    return package


@pytest.fixture(scope="session")
def engines():
    """The package on every engine that is here."""
    names = ("native", "python") if importlib.util.find_spec("jaxlib") else ("python",)
    return [_modules_on(name)[PACKAGE] for name in names]


@pytest.fixture(scope="session")
def both_engines():
    return tuple(engine_or_skip(engine)[PACKAGE] for engine in ("native", "python"))
