"""Who evaluates an operation right now.

The active executor is asked by `EvalTrace` for eager operations and by `jit` for whole programs.
The kernel has none: a backend offers one (`offer`), which is imported when something is first to
be run. Where several backends are offered, the one of the highest rank evaluates.

A new backend is a subclass of `Executor`, one `provide`, and a column of rules.
"""

from __future__ import annotations

import importlib
import operator
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax.core import array

if TYPE_CHECKING:
    from bedrax.core.ir import Jaxpr
    from bedrax.core.tracing import Primitive


class Executor:
    """The checklist of a backend. What says so here is the answer of a backend with one device, the host.

    The first group holds from the moment that the executor is provided, whoever evaluates then; the
    methods are asked of the one that evaluates.

    Attributes:
      array_types: its array classes, whose instances have an attribute `aval`; they become `Array`s.
      option_changed: ``(name, flag)``, called after each change of an option.
      must_see_calls: for a backend that dispatches calls of jitted functions outside Python. A function
        that tells it whether it may do so in this thread (None), or must ask us because a trace records
        every call (True); returns what held before.

      name: as messages call it.
      rank: of the backends that are offered, the highest evaluates.
      compiles: whether a program of several operations is run faster than these one by one.
      shares_memory: whether `from_dlpack` takes over another library's memory where it is.
      ready: asked before `apply`: primitive -> {params as `marshal` writes them, or None: function of operands}, or None.
    """

    array_types: tuple[type, ...] = ()
    option_changed: Callable[[str, Any], None] | None = None
    must_see_calls: Callable[[Any], Any] | None = None

    name = ""
    rank = 0
    compiles = False
    shares_memory = False
    ready: dict[Any, dict[Any, Any] | None] = {}

    def apply(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """One eager operation on concrete values: this backend's array, or a list of them."""
        raise NotImplementedError(f"the {self.name} executor does not say how it evaluates '{prim}'")

    def run_program(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        """A whole program on flat arguments."""
        raise NotImplementedError(f"the {self.name} executor does not say how it runs programs")

    def run_jit(self, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """The `jit` primitive, met outside any trace."""
        return self.run_program(params["jaxpr"], args)

    def make_jitted(self, jitted: Callable[..., Any]) -> Any:
        """What `jit` returns for a `Jitted`: itself, or a wrapper that dispatches its calls."""
        return jitted

    def asarray(self, x: Any) -> Any:
        """A concrete value as this backend's array, which shares no memory that others may write to."""
        raise NotImplementedError(f"the {self.name} executor does not say how it makes arrays")

    def resolve(self, where: Any, what: str, aval: Any) -> Any:
        """The place that a user's device, sharding or partition spec (the argument `what`) means for a type."""
        raise NotImplementedError(
            f"{what}: placing an array on {where} needs devices; the {self.name} executor has none. Import"
            " bedrax.xla_backend (or jax) for them."
        )

    def reshard(self, x: Any, to: Any) -> Any:
        """`x` at a place, as programs name it: the host has one only."""
        return x

    def devices(self, platform: str | None = None) -> list[Any]:
        """The devices (of a platform) that an array can be put on: none but the host, which has no name."""
        return []

    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> Any:
        """An array from another library's, through the DLPack protocol."""
        if copy is False:
            raise ValueError(f"from_dlpack(copy=False): the {self.name} executor always copies")
        found = self.asarray(np.from_dlpack(x))
        if device is None:
            return found
        return self.reshard(found, self.resolve(device, "device of from_dlpack", found.aval))


active: Executor | None = None
ready: dict[Any, dict[Any, Any] | None] = Executor.ready  # of the active one
must_see_calls: Callable[[Any], Any] | None = None
"""What the providers said; read where traces are entered."""

_offers: dict[int, str] = {}  # rank -> module that provides an executor of that rank when it is imported
_provided: dict[int, Executor] = {}
_lock = threading.RLock()


def get() -> Executor:
    """The executor that evaluates now; the one of the highest rank is imported on first need.

    Raises:
      RuntimeError: no backend was offered.
    """
    if active is not None:
        return active
    if not any_offered():
        raise RuntimeError("nothing here can evaluate an operation: import bedrax.numpy_backend, or a package above it")
    rank = max((*_offers, *_provided))
    if rank not in _provided:  # not under our lock: a module's import waits for other imports
        importlib.import_module(_offers[rank])
        if rank not in _provided:
            raise ImportError(f"importing {_offers[rank]} provided no executor of rank {rank}")
    return install(_provided[rank])


def any_offered() -> bool:
    """Whether there is a backend; without one, programs are made and not run."""
    return bool(active or _offers or _provided)


def offer(module: str, rank: int) -> None:
    """Name the module that provides an executor of this rank; it is imported when something is to be run."""
    with _lock:
        _offers[rank] = module
        if active is not None and active.rank < rank:
            install(None)


def provide(executor: Executor) -> None:
    """Add an executor. It evaluates from now on, unless one of a higher rank was offered or provided.

    Call it when everything that the executor needs stands: other threads may use it at once.
    """
    global must_see_calls
    from bedrax.core import avals, config  # not at the top: to offer a backend costs nothing

    with _lock:
        for cls in executor.array_types:
            array.add_array_type(cls)
            avals.aval_functions[cls] = operator.attrgetter("aval")
        if executor.option_changed is not None:
            config.on_change(executor.option_changed)
        if executor.must_see_calls is not None:
            must_see_calls = executor.must_see_calls
        _provided[executor.rank] = executor
        if executor.rank >= max((*_offers, *_provided)):
            install(executor)


def install(executor: Executor | None) -> Executor | None:
    """Make `executor` the one that evaluates from now on; None: the one of the highest rank."""
    global active, ready
    active, ready = executor, (executor or Executor).ready
    return executor
