"""Compiled programs kept on disk, from one process to the next.

They are in the folder of the option `jax_compilation_cache_dir`; without it, in a folder among the user's caches, which
holds at most 1 GiB. An entry is machine code that is run, so the default folder is used only if no other user can write
to it. The name of an entry is a hash of all data that the executable depends on: the program (`program_key`) or its
module, XLA's options, the versions of jaxlib and of the platform, the kind of device, the features of the CPU, and the
variables of the environment that compilers read. Programs that call back into Python are not kept.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import pathlib
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from bedrax.core import monitoring
from bedrax.xla_backend import flags
from bedrax.xla_backend.door import mlir, runtime

logger: Final = logging.getLogger("jax.compilation_cache")

# The variables of the environment that compilers read. Those that libraries read when a program runs are not among them.
COMPILER_VARIABLES: Final = (
    "XLA_FLAGS",
    "LIBTPU_INIT_ARGS",
    *("NPROC", "PJRT_NPROC"),  # the threads of the CPU, among which code is split
    *("ALLOW_LHS_TMEM_LAYOUT_CONVERSION", "AMDGCN_USE_BUFFER_ATOMICS", "AMDGCN_USE_BUFFER_OPS", "DISABLE_LLVM_OPT"),
    *("DISABLE_PTXAS_OPT", "LLVM_PASS_PLUGIN_PATH", "TRITON_DEFAULT_FP_FUSION", "TRITON_F32_DEFAULT"),  # Triton
    *("TRITON_HIP_USE_ASYNC_COPY", "TRITON_HIP_USE_BLOCK_PINGPONG", "TRITON_HIP_USE_IN_THREAD_TRANSPOSE"),
    "TRITON_OVERRIDE_ARCH",
)

_DEFAULT_LIMIT = 1 << 30  # bytes
_ABANDONED = 3600  # seconds; a process that was killed while it wrote leaves a file behind


class Store:
    """A folder of compiled programs.

    Attributes:
      path: the folder.
      named: whether the user named it. Errors of the default folder are logged, and end its use in this process.
      usable: whether to use it; False after an error of the default folder.
    """

    def __init__(self, path: pathlib.Path, named: bool) -> None:
        self.path: pathlib.Path = path
        self.named: bool = named
        self.usable: bool = True
        self._size: int | None = None  # bytes in the folder, as far as this process knows
        self._lock = threading.Lock()

    def entry(self, name: str) -> pathlib.Path:
        return self.path / f"{name}-cache"

    def read(self, name: str) -> bytes | None:
        """The contents of an entry, or None.

        Raises:
          ValueError: it is damaged. XLA does not check executables: one of these would end the process, or give wrong
            results.
        """
        path = self.entry(name)
        try:
            entry = path.read_bytes()
        except FileNotFoundError:
            return None
        digest, data = entry[:32], entry[32:]
        if hashlib.sha256(data).digest() != digest:
            raise ValueError("its checksum is wrong: the entry is damaged, and the program is compiled again")
        with contextlib.suppress(OSError):  # a read-only folder
            os.utime(path)  # the time of its last use
        return data

    def write(self, name: str, data: bytes) -> None:
        """Add an entry. Readers never see a part of it."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o777 if self.named else 0o700)
        entry = hashlib.sha256(data).digest() + data
        path = self.path / f"{name}-{os.urandom(8).hex()}.tmp"
        # Other users read the entries of a folder that the user named, as far as the process's mask permits it.
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        file = os.open(path, how, 0o666 if self.named else 0o600)
        try:
            with open(file, "wb") as opened:
                opened.write(entry)
            os.replace(path, self.entry(name))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise
        self._make_room(len(entry))

    def _make_room(self, added: int) -> None:
        """Remove the entries that were not used for the longest time while the folder is larger than the limit."""
        limit = flags.compilation_cache_max_size.value
        if limit < 0:
            if self.named:
                return
            limit = _DEFAULT_LIMIT
        with self._lock:
            if self._size is not None:
                self._size += added
                if self._size <= limit:
                    return
            entries = []
            for path in self.path.iterdir():
                with contextlib.suppress(FileNotFoundError):  # another process removed it
                    stat = path.stat()
                    if path.name.endswith("-cache"):
                        entries.append((stat.st_mtime, stat.st_size, path))
                    elif path.suffix == ".tmp" and time.time() - stat.st_mtime > _ABANDONED:
                        path.unlink()
            self._size = sum(size for _, size, _ in entries)
            if self._size <= limit:
                return
            for _, size, path in sorted(entries, key=lambda e: e[0]):
                if self._size <= (limit if self.named else limit * 9 // 10):  # not at each program of a full folder
                    break
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
                self._size -= size

    @contextlib.contextmanager
    def reporting(self, what: str, name: str) -> Iterator[None]:
        """Report an exception inside of the block, in place of raising it; see `named`."""
        try:
            yield
        except Exception as error:
            if flags.raise_persistent_cache_errors.value:
                raise
            text = f"Error: cannot {what} persistent compilation cache entry {self.entry(name).name}: {type(error).__name__}: {error}"
            if self.named:
                warnings.warn(text, stacklevel=5)
            else:
                logger.debug("%s", text)
                self.usable = self.usable and not isinstance(error, OSError)


def store() -> Store | None:
    """The folder in use, or None."""
    if not flags.enable_compilation_cache.value:
        return None
    found = _store(flags.compilation_cache_dir.value or None)
    return found if found is not None and found.usable else None


@functools.lru_cache(16)
def _store(named: str | None) -> Store | None:
    if named is not None:
        return Store(pathlib.Path(named), named=True)
    try:
        path = default_folder()
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (why := _shared(path)) is not None:
            logger.debug("compiled programs are not kept: %s", why)
            return None
    except Exception as error:  # no home, a read-only disk
        logger.debug("compiled programs are not kept: %s", error)
        return None
    return Store(path, named=False)


def default_folder() -> pathlib.Path:
    """The folder of compiled programs if the option `jax_compilation_cache_dir` is not set."""
    import platformdirs

    return platformdirs.user_cache_path("bedrax", appauthor=False) / "compiled"


class State(NamedTuple):
    """The folder of compiled programs.

    Attributes:
      path: the folder.
      named: whether the user named it.
      entries: the number of programs in it.
      bytes: their size.
      limit: the size from which programs are removed, or None.
      problem: why programs are not kept there, or None.
    """

    path: str
    named: bool
    entries: int
    bytes: int
    limit: int | None
    problem: str | None


def state() -> State:
    """The state of the folder that the options choose. The folder is made if it does not exist, and written to."""
    named = flags.compilation_cache_dir.value or None
    path = pathlib.Path(named) if named is not None else default_folder()
    sizes: list[int] = []
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o777 if named else 0o700)
        sizes = [entry.stat().st_size for entry in path.glob("*-cache")]
        with tempfile.NamedTemporaryFile(dir=path, suffix=".tmp"):
            problem = None if named else _shared(path)
    except OSError as error:
        problem = f"{type(error).__name__}: {error}"
    limit = flags.compilation_cache_max_size.value
    most = limit if limit >= 0 else None if named else _DEFAULT_LIMIT
    return State(str(path), named is not None, len(sizes), sum(sizes), most, problem)


def _shared(path: pathlib.Path) -> str | None:
    """The reason why another user could write to a folder, or None."""
    if not hasattr(os, "getuid"):
        return None  # Windows: the folder is in the user's profile
    stat = path.stat()
    if stat.st_uid != os.getuid():
        return f"{path} belongs to another user"
    return f"other users can write to {path}" if stat.st_mode & 0o022 else None


def find(store: Store, name: str, client: Any, executable_devices: Any, options: Any) -> Any:
    """The executable of an entry, or None."""
    with store.reporting("read", name):
        data = store.read(name)
        if data is not None:
            executable = client.deserialize_executable(data, executable_devices, options)
            monitoring.record_event("/jax/compilation_cache/cache_hits")
            return executable
    return None


def compiled(store: Store, name: str, compile_now: Callable[[], Any]) -> Any:
    """A new executable, which becomes an entry if its compilation was long enough."""
    monitoring.record_event("/jax/compilation_cache/cache_misses")
    started = time.monotonic()
    executable = compile_now()
    if time.monotonic() - started >= flags.persistent_cache_min_compile_time_secs.value:
        with store.reporting("write", name):
            data = executable.serialize()
            if len(data) >= flags.persistent_cache_min_entry_size_bytes.value:
                store.write(name, data)
    return executable


def compare(store: Store, name: str, found: Any, new: Any) -> None:
    """Report an entry whose executable differs from the one that was compiled in its place."""
    with store.reporting("read", name):
        if _programs(found) != _programs(new):
            raise ValueError("it held another program than the one that is compiled now; it is replaced")


def cached(
    client: Any, module: Any, executable_devices: Any, options: Any, compile_now: Callable[[], Any]
) -> tuple[Any, Callable[[], bytes]]:
    """The executable of a module: of an entry, or a new one; and a function that returns its bytes."""
    where = store()
    if where is None:
        new = compile_now()
        return new, new.serialize
    name = key(client, module, executable_devices, options)
    executable = find(where, name, client, executable_devices, options)
    if executable is not None and not flags.compilation_cache_check_contents.value:
        return executable, lambda: _bytes_of_found(where, name, compile_now)
    new = compiled(where, name, compile_now)
    if executable is not None:
        compare(where, name, executable, new)
    return new, new.serialize


def _bytes_of_found(store: Store, name: str, compile_now: Callable[[], Any]) -> bytes:
    """The bytes of an executable that was loaded from an entry.

    XLA writes such an executable for the CPU without its code. So these are the bytes of the entry, or those of a new
    executable if the entry has been removed.
    """
    with store.reporting("read", name):
        if (data := store.read(name)) is not None:
            return data
    return compile_now().serialize()


def key(client: Any, module: Any, executable_devices: Any, options: Any) -> str:
    """The name of the entry of a module."""
    if flags.compilation_cache_include_metadata_in_key.value:
        text = mlir.bytecode(module)
    else:
        text = module.operation.get_asm(enable_debug_info=False).encode()
    return name_of(text, client, executable_devices, options)


def name_of(program: bytes, client: Any, executable_devices: Any, options: Any) -> str:
    """The name of an entry, from the bytes of its program."""
    kinds = [(d.device_kind, d.id) for d in executable_devices]
    digest = hashlib.sha256()
    for part in (
        program,
        options.SerializeAsString(),
        repr((runtime.jaxlib_version, client.platform, client.platform_version, kinds)).encode(),
        cpu_features() if client.platform == "cpu" else b"",
        repr([os.environ.get(name) for name in COMPILER_VARIABLES]).encode(),
        xla_flags().encode("utf-8", "surrogateescape"),
    ):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def xla_flags() -> str:
    """The flags in `XLA_FLAGS`, which holds these, or the name of a file with them."""
    given = os.environ.get("XLA_FLAGS", "").strip()
    if not given or given.startswith("-"):
        return given
    try:
        return pathlib.Path(given).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


@functools.cache
def cpu_features() -> bytes:
    """The instruction sets of this CPU (code for another one could end the process), and the number of its cores."""
    cores = f"{os.cpu_count()} ".encode()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", "rb") as file:
        for line in file:
            if line.startswith((b"flags", b"Features")):
                return cores + line
    import platform

    return cores + f"{platform.machine()} {platform.processor()}".encode()


def _programs(executable) -> list[str]:
    """The programs of an executable, as text without names and locations."""
    options = runtime.HloPrintOptions.fingerprint()
    options.print_large_constants = True
    return [program.to_string(options) for program in executable.hlo_modules()]
