"""Compiled programs kept on disk, in the folder `jax_compilation_cache_dir`.

An entry's name is a hash of everything the executable depends on: the module, XLA's options, the versions of
jaxlib and of the platform, the kind of device, `XLA_FLAGS`. Programs that call back into Python are not kept.
"""

from __future__ import annotations

import hashlib
import io
import os
import pathlib
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

from bedrax.core import monitoring
from bedrax.xla_backend import flags
from bedrax.xla_backend import jaxlib_door as door


def enabled() -> bool:
    """Whether there is a folder to keep programs in."""
    return bool(flags.enable_compilation_cache.value and flags.compilation_cache_dir.value)


def key(client, module, executable_devices, options) -> str:
    """The name of a program's entry."""
    text = io.BytesIO()
    if flags.compilation_cache_include_metadata_in_key.value:
        module.operation.write_bytecode(text)
    else:
        text.write(module.operation.get_asm(enable_debug_info=False).encode())
    kinds = [(d.device_kind, d.id) for d in executable_devices]
    digest = hashlib.sha256()
    for part in (
        text.getvalue(),
        options.SerializeAsString(),
        repr((door.jaxlib_version, client.platform, client.platform_version, kinds)).encode(),
        os.environ.get("XLA_FLAGS", "").encode(),
    ):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def load_or_compile(
    client, module, executable_devices, options, compile_now: Callable[[], Any]
) -> tuple[Any, bool]:
    """The executable, and whether it came from the cache."""
    path = (
        pathlib.Path(flags.compilation_cache_dir.value)
        / f"{key(client, module, executable_devices, options)}-cache"
    )
    try:
        if path.exists():
            executable = client.deserialize_executable(path.read_bytes(), executable_devices, options)
            monitoring.record_event("/jax/compilation_cache/cache_hits")
            return executable, True
    except Exception as error:
        _report("read", path, error)
    monitoring.record_event("/jax/compilation_cache/cache_misses")
    return compile_now(), False


def store(client, module, executable_devices, options, executable, seconds: float) -> None:
    """Keep an executable, if it took long enough to make and is large enough."""
    if seconds < flags.persistent_cache_min_compile_time_secs.value:
        return
    folder = pathlib.Path(flags.compilation_cache_dir.value)
    path = folder / f"{key(client, module, executable_devices, options)}-cache"
    try:
        data = executable.serialize()
        if len(data) < flags.persistent_cache_min_entry_size_bytes.value:
            return
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:  # readers never see half an entry
            file.write(data)
        os.replace(file.name, path)
        _make_room(folder)
    except Exception as error:
        _report("write", path, error)


def _make_room(folder: pathlib.Path) -> None:
    """Remove the entries used longest ago while the folder is larger than allowed."""
    limit = flags.compilation_cache_max_size.value
    if limit < 0:
        return
    entries = sorted(folder.glob("*-cache"), key=lambda p: p.stat().st_atime)
    total = sum(p.stat().st_size for p in entries)
    for path in entries:
        if total <= limit:
            break
        total -= path.stat().st_size
        path.unlink()


def _report(what: str, path: pathlib.Path, error: Exception) -> None:
    if flags.raise_persistent_cache_errors.value:
        raise error
    warnings.warn(
        f"Error: cannot {what} persistent compilation cache entry {path.name}: {type(error).__name__}: {error}",
        stacklevel=4,
    )
