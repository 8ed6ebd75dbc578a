"""The choice of the tree engine: jaxlib's if it can be imported, else the pure Python one.

The environment variable BEDRAX_PYTREE_ENGINE (`native` or `python`) forces the choice.
The default registry has a name in this module, so that treedefs, which refer to their
registry, can be pickled.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

_CHOICES = ("native", "python")


def uninterrupted(function: Callable[[], T]) -> T:
    """Call a function in a thread, where Ctrl-C does not interrupt it. Returns its result or raises its error.

    An interrupt is raised in the waiting thread; the function still runs to its end.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()
    outcome: list[Any] = []

    def call():
        try:
            outcome.append((function(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=call)
    try:
        thread.start()
    except RuntimeError:  # no threads are available: in a browser, or at the end of the process
        return function()
    thread.join()
    [(value, error)] = outcome
    if error is not None:
        raise error
    return value


def load_whole(*names: str) -> types.ModuleType:
    """Import C++ modules without an interrupt. Returns the last one.

    During their import they call Python code, and an exception there ends the process; a partly initialised module
    crashes at its use.

    Raises:
      ImportError: a module cannot be imported.
    """
    if all(name in sys.modules for name in names):
        return importlib.import_module(names[-1])  # it waits for another thread that imports it
    return uninterrupted(lambda: [importlib.import_module(name) for name in names][-1])


def _choose():
    wanted = os.environ.get("BEDRAX_PYTREE_ENGINE", "")
    if wanted and wanted not in _CHOICES:
        raise ValueError(
            f"BEDRAX_PYTREE_ENGINE={wanted!r} names no tree engine; set it to one of {_CHOICES}, or unset it."
        )
    if wanted != "python":
        os.environ.setdefault(
            "TF_CPP_MIN_LOG_LEVEL", "1"
        )  # read during the import of jaxlib, which otherwise prints its devices
        try:
            load_whole("jaxlib._jax")
            return importlib.import_module(".engine_native", __package__)
        except ImportError as e:
            if wanted:
                raise ImportError(
                    "BEDRAX_PYTREE_ENGINE=native needs jaxlib, which could not be imported "
                    f"({e}); install jaxlib, or unset the variable."
                ) from e
    return importlib.import_module(".engine_python", __package__)


_engine = _choose()

engine_name: str = _engine.NAME
if TYPE_CHECKING:
    from .engine_python import DictKey, FlattenedIndexKey, GetAttrKey, PyTreeDef, PyTreeRegistry, SequenceKey
    from .engine_python import all_leaves as all_leaves_in
    from .engine_python import flatten_with_keys as flatten_with_keys
    from .engine_python import treedef_tuple as treedef_tuple_in
else:
    PyTreeDef = _engine.PyTreeDef
    PyTreeRegistry = _engine.PyTreeRegistry
    SequenceKey = _engine.SequenceKey
    DictKey = _engine.DictKey
    GetAttrKey = _engine.GetAttrKey
    FlattenedIndexKey = _engine.FlattenedIndexKey
    all_leaves_in = _engine.all_leaves
    treedef_tuple_in = _engine.treedef_tuple
    flatten_with_keys = _engine.flatten_with_keys

default_registry: PyTreeRegistry = _engine.default_registry
# If __reduce_ex__ of an object returns a string, pickle saves it as the global with that name.
default_registry.__module__ = __name__
default_registry.__reduce_ex__ = lambda protocol: "default_registry"

# jaxlib's dispatch of compiled functions flattens arguments with this registry: it has the nodes of the default one,
# and also arrays that consist of other arrays (keys) as nodes, which are leaves in other functions.
dispatch_registry: PyTreeRegistry = PyTreeRegistry()
