"""Who evaluates an operation right now.

The active executor is asked by `EvalTrace` for eager operations and by `jit` for whole programs.
The kernel has none: a backend offers one (`offer`), which is imported when something is first to
be run. Where several backends are offered, the one of the highest rank evaluates.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np


class Executor:
    """The checklist of a backend. What says so here is the answer of a backend with one device, the host.

    Attributes:
      name: as messages call it.
      rank: of the backends that are offered, the highest evaluates.
      compiles: whether a program of several operations is run faster than these one by one.
    """

    name = ""
    rank = 0
    compiles = False

    def apply(self, prim, args: Sequence[Any], params: dict) -> Any:
        """One eager operation on concrete values: this backend's array, or a list of them."""
        raise NotImplementedError

    def run_program(self, jaxpr, args: Sequence[Any]) -> list:
        """A whole program on flat arguments."""
        raise NotImplementedError

    def run_jit(self, args: Sequence[Any], params: dict) -> list:
        """The `jit` primitive, met outside any trace."""
        return self.run_program(params["jaxpr"], args)

    def make_jitted(self, jitted) -> Any:
        """What `jit` returns for a `Jitted`: itself, or a wrapper that dispatches its calls."""
        return jitted

    def asarray(self, x: Any) -> Any:
        """A concrete value as this backend's array."""
        raise NotImplementedError

    def to_memory(self, x: Any, kind: str) -> Any:
        """`x` in another memory of its device: the host has one only."""
        return x

    def device_put(self, x: Any, where: Any) -> Any:
        """`x` on a device, or spread as a sharding says."""
        raise NotImplementedError(
            f"placing an array on {where} needs devices; the {self.name} executor has none. Import"
            " bedrax.xla_backend (or jax) for them."
        )

    def devices(self) -> list:
        """The devices that an array can be put on: none but the host, which has no name."""
        return []

    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> Any:
        """An array from another library's, through the DLPack protocol."""
        array = self.asarray(np.array(np.from_dlpack(x), copy=copy is not False))
        return array if device is None else self.device_put(array, device)


active: Executor | None = None
_offers: dict[int, str] = {}  # rank -> module that provides an executor of that rank when it is imported
_provided: dict[int, Executor] = {}


def get() -> Executor:
    """The executor that evaluates now; the one of the highest rank is imported on first need.

    Raises:
      RuntimeError: no backend was offered.
    """
    if active is not None:
        return active
    if not _offers and not _provided:
        raise RuntimeError(
            "nothing here can evaluate an operation: import bedrax.numpy_backend, or a package above it"
        )
    rank = max((*_offers, *_provided))
    if rank not in _provided:
        importlib.import_module(_offers[rank])
        if rank not in _provided:
            raise ImportError(f"importing {_offers[rank]} provided no executor of rank {rank}")
    install(_provided[rank])
    return _provided[rank]


def offer(module: str, rank: int) -> None:
    """Name the module that provides an executor of this rank; it is imported when something is to be run."""
    global active
    _offers[rank] = module
    if active is not None and active.rank < rank:
        active = None


def provide(executor: Executor) -> None:
    """Add an executor. It evaluates from now on, unless one of a higher rank was offered or provided."""
    _provided[executor.rank] = executor
    if executor.rank >= max((*_offers, *_provided)):
        install(executor)


def install(executor: Executor | None) -> None:
    """Make `executor` the one that evaluates from now on; None: the one of the highest rank."""
    global active
    active = executor
