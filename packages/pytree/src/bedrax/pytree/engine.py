"""Chooses the tree engine: jaxlib's when it can be imported, else the pure Python one.

The environment variable BEDRAX_PYTREE_ENGINE (`native` or `python`) forces the choice.
The default registry is given a name here, so that treedefs, which refer to their
registry, can be pickled.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading

_CHOICES = ("native", "python")


def _load_whole(name: str) -> None:
    """Import a C++ module in a thread, where no Ctrl-C interrupts it: what is half initialised crashes when it is used."""

    def load():
        with contextlib.suppress(ImportError):  # which the module that needs it meets again
            importlib.import_module(name)

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()


def _choose():
    wanted = os.environ.get("BEDRAX_PYTREE_ENGINE", "")
    if wanted and wanted not in _CHOICES:
        raise ValueError(
            f"BEDRAX_PYTREE_ENGINE={wanted!r} names no tree engine; set it to one of {_CHOICES}, or unset it."
        )
    if wanted != "python":
        os.environ.setdefault(
            "TF_CPP_MIN_LOG_LEVEL", "1"
        )  # read when jaxlib is loaded: or else it counts its devices aloud
        _load_whole("jaxlib._jax")
        try:
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
PyTreeDef = _engine.PyTreeDef
PyTreeRegistry = _engine.PyTreeRegistry
SequenceKey = _engine.SequenceKey
DictKey = _engine.DictKey
GetAttrKey = _engine.GetAttrKey
FlattenedIndexKey = _engine.FlattenedIndexKey
all_leaves_in = _engine.all_leaves
treedef_tuple_in = _engine.treedef_tuple

default_registry: PyTreeRegistry = _engine.default_registry
# Pickle saves an object whose __reduce_ex__ returns a string as the global of that name.
default_registry.__module__ = __name__
default_registry.__reduce_ex__ = lambda protocol: "default_registry"

# With this one jaxlib's dispatch of compiled functions reads arguments: it has the nodes of the default registry, and
# as nodes also the arrays that are made of other arrays (keys), which are leaves everywhere else.
dispatch_registry: PyTreeRegistry = PyTreeRegistry()
