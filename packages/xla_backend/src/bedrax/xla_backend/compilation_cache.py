"""Compiled programs kept on disk, in the folder `jax_compilation_cache_dir`.

The name of an entry is a hash of all data that the executable depends on: the module, XLA's options, the versions of
jaxlib and of the platform, the kind of device, `XLA_FLAGS`. Programs that call back into Python are not kept.
"""

from __future__ import annotations

import os
import pathlib
import time
import warnings
from collections.abc import Callable
from typing import Any

from bedrax.core import monitoring
from bedrax.xla_backend import flags
from bedrax.xla_backend.door import mlir, runtime


def cached(client: Any, module: Any, executable_devices: Any, options: Any, compile_now: Callable[[], Any]) -> Any:
    """The executable of a module: a stored one, or a new one, which is stored if the compilation was long enough."""
    if not flags.enable_compilation_cache.value or not flags.compilation_cache_dir.value:
        return compile_now()
    path = pathlib.Path(flags.compilation_cache_dir.value)
    path /= f"{key(client, module, executable_devices, options)}-cache"
    try:
        if path.exists():
            executable = client.deserialize_executable(_checked(path.read_bytes()), executable_devices, options)
            monitoring.record_event("/jax/compilation_cache/cache_hits")
            if flags.compilation_cache_check_contents.value and _programs(executable) != _programs(compile_now()):
                raise ValueError("it holds another program than the one that is compiled now; it is replaced")
            return executable
    except Exception as error:
        _report("read", path, error)
    monitoring.record_event("/jax/compilation_cache/cache_misses")
    started = time.monotonic()
    executable = compile_now()
    if time.monotonic() - started >= flags.persistent_cache_min_compile_time_secs.value:
        try:
            _store(path, executable.serialize())
        except Exception as error:
            _report("write", path, error)
    return executable


def key(client: Any, module: Any, executable_devices: Any, options: Any) -> str:
    """The name of a program's entry."""
    if flags.compilation_cache_include_metadata_in_key.value:
        text = mlir.bytecode(module)
    else:
        text = module.operation.get_asm(enable_debug_info=False).encode()
    kinds = [(d.device_kind, d.id) for d in executable_devices]
    import hashlib

    digest = hashlib.sha256()
    for part in (
        text,
        options.SerializeAsString(),
        repr((runtime.jaxlib_version, client.platform, client.platform_version, kinds)).encode(),
        os.environ.get("XLA_FLAGS", "").encode(),
    ):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def _programs(executable) -> list[str]:
    """The programs of an executable, as text without names and locations."""
    options = runtime.HloPrintOptions.fingerprint()
    options.print_large_constants = True
    return [program.to_string(options) for program in executable.hlo_modules()]


def _checked(entry: bytes) -> bytes:
    """The contents of an entry. XLA does not check them: damaged ones would end the process, or give wrong results."""
    import hashlib

    digest, data = entry[:32], entry[32:]
    if hashlib.sha256(data).digest() != digest:
        raise ValueError("its checksum is wrong: the entry is damaged, and the program is compiled again")
    return data


def _store(path: pathlib.Path, data: bytes) -> None:
    import hashlib
    import tempfile

    if len(data) < flags.persistent_cache_min_entry_size_bytes.value:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:  # readers never see a partial entry
        file.write(hashlib.sha256(data).digest() + data)
    os.replace(file.name, path)
    _make_room(path.parent)


def _make_room(folder: pathlib.Path) -> None:
    """Remove the least recently used entries while the folder is larger than the limit."""
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
