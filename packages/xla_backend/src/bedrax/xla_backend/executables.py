"""Compiled programs as bytes (`jax.experimental.serialize_executable`), for processes with the same devices."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from bedrax.core.avals import AbstractValue
from bedrax.core.ir import Jaxpr, Var
from bedrax.xla_backend import clients, stages
from bedrax.xla_backend.compile import LoadedProgram, LoweredProgram, compile_options
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.placement import NOTHING_REQUESTED, Placement

__all__ = ["deserialize_and_load", "serialize"]


_MAGIC = b"BDXEXE02"  # the format of the bytes, with the number of its version


def _sealed(data: bytes) -> bytes:
    """The bytes of a compiled program with a header: the format, a digest of the rest, the version of jaxlib."""
    head = json.dumps({"jaxlib": runtime.jaxlib_version}).encode()
    rest = len(head).to_bytes(4, "little") + head + data
    return _MAGIC + hashlib.sha256(rest).digest() + rest


def _opened(serialized: bytes) -> bytes:
    """The argument of `_sealed`, from its result.

    XLA does not check the code that it loads: damaged code, and code of another jaxlib, would end the process or
    compute other values.

    Raises:
      ValueError: the bytes have another format, are damaged, or were written by another version of jaxlib.
    """
    serialized = bytes(serialized)
    if serialized[: len(_MAGIC)] != _MAGIC:
        raise ValueError(
            "these bytes are not a compiled program, or an earlier version of Bedrax wrote them; compile the program again"
        )
    digest, rest = serialized[len(_MAGIC) : len(_MAGIC) + 32], serialized[len(_MAGIC) + 32 :]
    if hashlib.sha256(rest).digest() != digest:
        raise ValueError("the compiled program is damaged: its bytes are not those that were written")
    end = 4 + int.from_bytes(rest[:4], "little")
    writer = json.loads(rest[4:end])["jaxlib"]
    if writer != runtime.jaxlib_version:
        raise ValueError(
            f"the program was compiled with jaxlib {writer}, and jaxlib {runtime.jaxlib_version} is installed; compiled"
            " code is only read by the version that wrote it. Compile the program again, or keep it by jax.export, whose"
            " programs all versions read"
        )
    return rest[end:]


class _Saved(NamedTuple):
    """The data needed to run an executable."""

    executable: bytes
    name: str
    in_types: list[AbstractValue]
    out_types: list[AbstractValue]
    placement: Placement
    kept: tuple[bool, ...]
    donated: tuple[bool, ...]
    constants: list[np.ndarray]
    options: tuple[Any, ...]
    names_memory: bool = False  # see `LoweredProgram`; absent in the bytes of earlier versions


class _Pickler(pickle.Pickler):
    """A pickler that saves devices by their numbers."""

    def persistent_id(self, obj: Any) -> Any:
        return obj.id if isinstance(obj, runtime.Device) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, devices: dict[Any, Any]) -> None:
        super().__init__(file)
        self.devices = devices

    def persistent_load(self, pid: Any) -> Any:
        if pid not in self.devices:
            raise ValueError(f"the program was compiled for device {pid}; there are {sorted(self.devices)}")
        return self.devices[pid]


def serialize(compiled: stages.Compiled) -> tuple[bytes, Any, Any]:
    """A compiled program as bytes.

    Args:
      compiled: from ``jax.jit(f).lower(...).compile()``.

    Returns:
      ``(bytes, structure of (args, kwargs), structure of the result)``. The bytes hold compiled code, read by `pickle`:
      load only trusted bytes. They hold the version of jaxlib that wrote them, and only that version loads them.

    Raises:
      ValueError: the program calls Python, and a Python function cannot be serialized; or it takes a reference, or takes or
        returns a value of a library's type.

    Examples:

      >>> from jax.experimental import serialize_executable

      >>> compiled = jax.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile()
      >>> payload, in_tree, out_tree = serialize_executable.serialize(compiled)
      >>> isinstance(payload, bytes)
      True
    """
    loaded = compiled._loaded
    lowered, jaxpr = loaded.lowered, compiled._traced.jaxpr
    if (
        loaded.effects
        or getattr(lowered.program, "host_callbacks", None)
        or getattr(lowered.program, "keepalives", None)
    ):
        raise ValueError(f"{loaded.name} calls Python functions (callbacks, debug.print); bytes cannot hold them")
    if any(aval.mutable for aval in jaxpr.in_avals):
        raise ValueError(
            f"{loaded.name} takes a reference, which bytes cannot hold; compile a function that takes and returns its value"
        )
    if any(aval.represented for aval in (*jaxpr.in_avals, *jaxpr.out_avals)):
        raise ValueError(
            f"{loaded.name} takes or returns values of libraries' types, which bytes cannot hold; compile a function that"
            " takes and returns arrays"
        )
    saved = _Saved(
        bytes(loaded.as_bytes()),
        loaded.name,
        jaxpr.in_avals,
        jaxpr.out_avals,
        lowered.placement,
        tuple(loaded.kept),
        tuple(lowered.donated),
        [np.asarray(c) for c in lowered.const_args],
        lowered.options,
        lowered.names_memory,
    )
    file = io.BytesIO()
    _Pickler(file).dump(tuple(saved))
    return _sealed(file.getvalue()), compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes, in_tree: Any, out_tree: Any, backend: Any = None, execution_devices: Sequence[Any] | None = None
) -> stages.Compiled:
    """The compiled program of `serialize`'s results. Nothing is traced or compiled.

    Args:
      serialized, in_tree, out_tree: the results of `serialize`.
      backend: the platform (by default the default platform). It must have the devices of the compilation.
      execution_devices: devices to run on instead of those.

    Raises:
      ValueError: the bytes are damaged or have another format, another version of jaxlib wrote them, or the devices are
        not those of the compilation.

    Examples:

      >>> from jax.experimental import serialize_executable

      >>> compiled = jax.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile()
      >>> payload, in_tree, out_tree = serialize_executable.serialize(compiled)
      >>> again = serialize_executable.deserialize_and_load(payload, in_tree, out_tree)
      >>> again(jnp.ones(3))
      Array([2., 2., 2.], dtype=float32)
    """
    data = _opened(serialized)
    client = clients.get_backend(backend)
    devices = {d.id: d for d in client.devices()}
    if execution_devices is not None:
        own = _Saved(*_Unpickler(io.BytesIO(data), devices).load()).placement.devices
        if len(own) != len(execution_devices):
            raise ValueError(f"the program runs on {len(own)} devices, got {len(execution_devices)} execution_devices")
        devices.update(zip((d.id for d in own), execution_devices))
    saved = _Saved(*_Unpickler(io.BytesIO(data), devices).load())
    where = saved.placement
    jaxpr = Jaxpr([Var(a) for a in saved.in_types], [Var(a) for a in saved.out_types], [])
    lowered = LoweredProgram(jaxpr, saved.name, where, saved.kept, saved.donated, saved.constants, None, saved.options)
    lowered.names_memory = saved.names_memory  # the equations that place results are not saved
    options = compile_options(len(where.devices), where.devices, dict(saved.options))
    executable = client.deserialize_executable(saved.executable, runtime.DeviceList(where.devices), options)
    function = SimpleNamespace(name=saved.name.removeprefix("jit_"), fun=lambda *args, **kwargs: None)
    call = SimpleNamespace(
        jaxpr=jaxpr,
        in_tree=in_tree,
        out_tree=out_tree,
        params={"name": function.name, "donated_invars": saved.donated},
        args=[],
    )
    traced = stages.Traced(function, call, NOTHING_REQUESTED)
    code = saved.executable
    return stages.Compiled(traced, LoadedProgram(lowered, executable, lambda: code))
