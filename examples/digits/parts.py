"""The parts of the example and the modules that each needs. A part that lacks a module is left out, with a printed
line."""

import sys
from importlib.util import find_spec
from typing import NamedTuple

# The last Python for which PyPI has wheels; the markers in the pyproject files have the same limits.
NEWEST_PYTHON = {"tensorflow": (3, 13), "tensorstore": (3, 14)}


class Part(NamedTuple):
    """`writer` names the module and function that write the part; `used_with` the library that loads it
    (`consume.py`)."""

    what: str
    needs: tuple[str, ...] = ()
    writer: str = ""
    used_with: str = ""


CHECKPOINTS = {
    "orbax": Part("the checkpoint by Orbax", ("orbax", "tensorstore")),
    "msgpack": Part("the checkpoint as msgpack", ("msgpack",)),
}
EXPORTS = {
    "plain": Part(
        "the SavedModel of plain operations, and its way back", ("tensorflow",), "export.save_plain", "tensorflow"
    ),
    "native": Part(
        "the SavedModel with native serialization, and its way back",
        ("tensorflow",),
        "export.save_native",
        "tensorflow",
    ),
    "model.tflite": Part("the TFLite file", ("tensorflow",), "export.save_tflite", "tensorflow"),
    "program": Part("the program of StableHLO", (), "program.save", "jax"),
}
PARTS = {**CHECKPOINTS, **EXPORTS}


def installed(module: str) -> bool:
    return find_spec(module) is not None


def why_left_out(name: str, installed=installed, python: tuple[int, ...] = sys.version_info) -> str | None:
    """Returns a line with the name of a part that is left out, and the reason; None if all its modules are
    installed."""
    for module in PARTS[name].needs:
        if installed(module):
            continue
        newest = NEWEST_PYTHON.get(module, python)
        if python[:2] > newest:
            last, here = ("{}.{}".format(*version) for version in (newest, python))
            why = f"{module} has wheels for Python up to {last}, and this is Python {here}"
        else:
            why = f"{module} is not installed"
        return f"left out: {PARTS[name].what}: {why}"
    return None
