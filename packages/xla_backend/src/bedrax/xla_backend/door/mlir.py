"""MLIR's Python bindings, and jaxlib's transformations of modules."""

from __future__ import annotations

import contextlib
import io
import re
import threading
import types
from typing import Any

from jaxlib import _jax

from bedrax.pytree.engine import load_whole
from bedrax.xla_backend.door import versions

tools: Any = _jax.mlir
deserialize_portable_artifact: Any = tools.deserialize_portable_artifact
hlo_to_stablehlo: Any = tools.hlo_to_stablehlo
refine_polymorphic_shapes: Any = tools.refine_polymorphic_shapes
serialize_portable_artifact: Any = tools.serialize_portable_artifact

_LIBRARIES = tuple(f"jaxlib.mlir._mlir_libs.{n}" for n in "_mlir _chlo _mlirHlo _sdy _stablehlo _jax_mlir_ext".split())

_DIALECT = re.compile(r"[#!]([a-z]\w*)")
_dialects: set[str] = set()  # the dialects whose modules are loaded, and those without a module
_mlir: types.SimpleNamespace | None = None
_mlir_lock = threading.Lock()


def register_dialects(context: Any, registry: Any) -> None:
    """Load the dialects of our modules, and MLIR's own dialects."""
    from jaxlib.mlir._mlir_libs import _chlo, _mlirHlo, _sdy, _stablehlo

    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    _stablehlo.register_dialect(context, load=True)
    _chlo.register_dialect(context, load=True)
    _sdy.register_dialect(context, load=True)
    # The compiler's own dialect. The compiler would load it while other threads use the context, and crash.
    _mlirHlo.register_mhlo_dialect(context, load=True)


def load() -> types.SimpleNamespace:
    """MLIR's Python bindings and the one context of all modules.

    Returns:
      a namespace with `ir` and `context`. The import and the context take tens of
      milliseconds. Later calls return the same object.
    """
    global _mlir
    if _mlir is None:
        with _mlir_lock:
            if _mlir is None:
                extension = load_whole(*_LIBRARIES)
                from jaxlib.mlir import ir

                registry = ir.DialectRegistry()
                extension.register_dialects(registry)
                context = ir.Context()
                register_dialects(context, registry)
                _mlir = types.SimpleNamespace(ir=ir, context=context, registry=registry)
    return _mlir


def load_dialects(text: str) -> None:
    """Load the Python modules of the dialects in the text of an attribute or type.

    MLIR imports such a module when it makes an object of the dialect. After an interrupt of this import, each further
    one fails: the dialect is registered already.
    """
    for name in set(_DIALECT.findall(text)) - _dialects:
        with contextlib.suppress(ImportError):  # not every dialect has a module
            load_whole(f"jaxlib.mlir.dialects.{name}")
        _dialects.add(name)


def mirror(name: str) -> tuple[Any, ...]:
    """``__getattr__, __dir__, __all__`` of a module that mirrors `jaxlib.mlir.<name>` under another path."""
    load()
    module = load_whole(f"jaxlib.mlir.{name}")
    public = [n for n in vars(module) if not n.startswith("_") and not isinstance(vars(module)[n], types.ModuleType)]
    return lambda attribute: getattr(module, attribute), lambda: sorted(vars(module)), public


def stablehlo() -> Any:
    """StableHLO's functions: portable artifacts and their versions."""
    load()
    from jaxlib.mlir._mlir_libs import _stablehlo

    return _stablehlo


def explain_newer(artifact: bytes, error: Exception) -> None:
    """After a failed read of a portable artifact, raise an error with both versions if the artifact is newer."""
    found = re.search(rb"StableHLO_v([\d.]+)\0", artifact[:64])
    written, known = found[1].decode() if found else "", stablehlo().get_current_version()
    if versions.parts(written) > versions.parts(known):
        raise ValueError(
            f"the exported program was written in version {written} of StableHLO and has operations that are newer"
            f" than version {known}, which jaxlib {versions.jaxlib_version} reads; install a newer jaxlib"
        ) from error


def pass_manager(pipeline: str) -> Any:
    """The pass manager of a textual pipeline."""
    from jaxlib.mlir.passmanager import PassManager

    stablehlo().register_stablehlo_passes()
    return PassManager.parse(pipeline, load().context)


def bytecode(module: Any) -> bytes:
    """A module as MLIR bytecode."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()
