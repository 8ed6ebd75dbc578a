"""The executors that evaluate operations and programs.

`EvalTrace` calls the active executor for eager operations, `jit` for whole programs.
The kernel has no executor. Of those that are installed, the one of the highest rank evaluates; it is imported at the
first evaluation. No import of another package decides it. `install` chooses another one.

A new backend is a subclass of `Executor`, one `provide`, and a column of rules. Its distribution names it in its
metadata, as ``"executor <rank>"`` (`bedrax.core.offers`).
"""

from __future__ import annotations

import importlib
import operator
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bedrax.core import array, offers

if TYPE_CHECKING:
    from bedrax.core.ir import Jaxpr
    from bedrax.core.tracing import Primitive


class Executor:
    """The interface of a backend. The defaults are those of a backend with one device, the host.

    The first group of attributes applies from `provide` on, also while another executor evaluates. The
    methods are called on the executor that evaluates.

    Attributes:
      array_types: its array classes. Instances have an attribute `aval`. The classes become `Array`s.
      context_changed: ``(context)``, called after a thread replaced its context, in this thread.
      option_changed: ``(flag)``, called after each change of the global value of an option.
      must_see_calls: for a backend that dispatches calls of jitted functions outside Python. The
        argument of this function is None if the backend may do so in this thread, True if it must not
        because a trace records every call. Returns the argument of the last call.

      name: the name in messages.
      rank: the installed backend of the highest rank evaluates.
      compiles: whether a program of several operations runs faster than the operations one by one.
      shares_memory: whether `from_dlpack` uses the memory of the other library without a copy.
      host_type: the class of its arrays if operations are evaluated in Python immediately, and an array holds its elements as
        a NumPy array, the attribute `_value`; None for other backends. A subclass that defines `apply` states its own.
      ready: looked up before `apply`: primitive -> {params as `marshal` writes them, or None: function of operands},
        or None.
    """

    array_types: tuple[type, ...] = ()
    context_changed: Callable[[Any], None] | None = None
    option_changed: Callable[[Any], None] | None = None
    must_see_calls: Callable[[Any], Any] | None = None

    name = ""
    rank = 0
    compiles = False
    shares_memory = False
    host_type: Any = None
    ready: dict[Any, dict[Any, Any] | None] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "apply" in cls.__dict__ and "host_type" not in cls.__dict__:
            cls.host_type = None  # else derivatives would evaluate operations by the functions of the class above

    def apply(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate one operation on concrete values; returns this backend's array, or a list of them."""
        raise NotImplementedError(
            f"the {self.name} executor does not evaluate '{prim}': its class has no method `apply`"
        )

    def run_program(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        """Evaluate a whole program on flat arguments."""
        raise NotImplementedError(
            f"the {self.name} executor does not run programs: its class has no method `run_program`"
        )

    def function_of(self, jaxpr: Jaxpr) -> Callable[..., list[Any]]:
        """Return a program as a function of NumPy arrays that returns a list of them, if there is a `host_type`.

        It is called by `bedrax.core.quiet.quietly`.
        """
        raise NotImplementedError(
            f"the {self.name} executor does not compile programs to functions: its class has no method `function_of`"
        )

    def run_jit(self, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Evaluate the `jit` primitive outside any trace."""
        return self.run_program(params["jaxpr"], args)

    def make_jitted(self, jitted: Callable[..., Any]) -> Any:
        """Return the result of `jit` for a `Jitted`: itself, or a wrapper that dispatches its calls."""
        return jitted

    def asarray(self, x: Any) -> Any:
        """Return a concrete value as this backend's array, which shares no writable memory."""
        raise NotImplementedError(f"the {self.name} executor does not make arrays: its class has no method `asarray`")

    def made_here(self, x: Any) -> Any:
        """Return an array of the host's data at the place of the context: the host has one only."""
        return x

    def resolve(self, where: Any, what: str, aval: Any, typed: bool = False) -> Any:
        """Return the place for a type, given a device, sharding or partition spec of the user (`what`).

        If `typed`, the place is a fact of types: its axes are explicit.
        """
        raise NotImplementedError(
            f"{what}: placing an array on {where} needs devices; the {self.name} executor has none. bedrax-xla-backend"
            " (or jax) has them."
        )

    def reshard(self, x: Any, to: Any) -> Any:
        """Return `x` at a place, as programs name it: the host has one only."""
        return x

    def regrouped(self, x: Any, shape: tuple[int, ...], spec: Any, old: Any, new: Any) -> Any:
        """Return an array of a shape over the mesh `new`. Its blocks on this process are those of `x` over `old`."""
        raise NotImplementedError(
            f"the {self.name} executor runs in one process, and cannot move an array from {old} to {new}; install"
            " bedrax-xla-backend"
        )

    def devices(self, platform: str | None = None) -> list[Any]:
        """Return the devices (of a platform) for arrays: none; the host has no name."""
        return []

    def from_dlpack(self, x: Any, device: Any = None, copy: bool | None = None) -> Any:
        """Return an array made from that of another library, through the DLPack protocol."""
        if copy is False:
            raise ValueError(f"from_dlpack(copy=False): the {self.name} executor always copies")
        found = self.asarray(np.from_dlpack(x))
        if device is None:
            return found
        return self.reshard(found, self.resolve(device, "device of from_dlpack", found.aval))


active: Executor | None = None
ready: dict[Any, dict[Any, Any] | None] = Executor.ready  # of the active executor
must_see_calls: Callable[[Any], Any] | None = None
"""The function of the provider; called when a trace is entered."""

_provided: dict[int, Executor] = {}
_chosen: Executor | None = None  # by the user
_lock = threading.RLock()


def get() -> Executor:
    """Return the active executor. The one of the highest rank is imported at first use.

    Raises:
      RuntimeError: no backend is installed.
    """
    if active is not None:
        return active
    modules = _modules()
    ranks = {*modules, *_provided}
    if not ranks:
        raise RuntimeError(
            "no executor is installed, so no operation can be evaluated: install bedrax-numpy-backend, or a package above it"
        )
    rank = max(ranks)
    if rank not in _provided:  # not under our lock: a module's import waits for other imports
        importlib.import_module(modules[rank])
        if rank not in _provided:
            raise ImportError(f"importing {modules[rank]} provided no executor of rank {rank}")
    return _activate(_provided[rank])


def _modules() -> dict[int, str]:
    """Return the module of each installed executor by its rank."""
    return {int(rank): module for rank, module in offers.of_kind("executor").items()}


def any_offered() -> bool:
    """Return whether a backend is installed. Without one, programs can be made but not run."""
    return bool(active or _provided or _modules())


def offer(module: str, rank: int) -> None:
    """Name the module that provides an executor of this rank; it is imported at the first evaluation."""
    with _lock:
        offers.offer(f"executor {rank}", module)
        _deactivate_up_to(rank)


def provide(executor: Executor) -> None:
    """Add an executor. It evaluates from now on, unless one of a higher rank is installed or the user chose another.

    Call it when the executor is complete: other threads may use it immediately.
    """
    global must_see_calls
    from bedrax.core import avals, config, context  # not at the top: offering a backend must be cheap

    with _lock:
        for cls in executor.array_types:
            array.add_array_type(cls)
            avals.aval_functions[cls] = operator.attrgetter("aval")
        if executor.option_changed is not None:
            config.on_global_change(executor.option_changed)
        if executor.context_changed is not None:
            context.follow(executor.context_changed)
        if executor.must_see_calls is not None:
            must_see_calls = executor.must_see_calls
        _provided[executor.rank] = executor
        _deactivate_up_to(executor.rank)


def _deactivate_up_to(rank: int) -> None:
    """Let the next evaluation look for the executor again, unless the active one has a higher rank or was chosen."""
    if _chosen is None and active is not None and active.rank <= rank:
        _activate(None)


def install(executor: Executor | None) -> None:
    """Choose the executor that evaluates, whatever is installed; None: that of the highest rank again.

    Examples:

      >>> from bedrax.core import executors
      >>> from bedrax.numpy_backend.executor import executor
      >>> executors.install(executor)
      >>> executors.get().name
      'numpy'
      >>> executors.install(None)
    """
    global _chosen
    with _lock:
        _chosen = executor
        _activate(executor)


def _activate(executor: Executor | None) -> Any:
    global active, ready
    with _lock:  # a thread that notes an operation finds either executor, and its table
        forget_direct()
        active, ready = executor, {} if observers else (executor or Executor).ready
    return executor


_direct: list[dict[type, Callable[..., Any]]] = []


def note_direct(
    executor: Executor, table: dict[type, Callable[..., Any]], types: Sequence[type], run: Callable[..., Any]
) -> None:
    """Let functions of a primitive without params call ``run(*operands)``, while `eval_trace` is current.

    Nothing is noted if another executor became active, or operations are observed.

    Args:
      executor: the executor of `run`.
      table: the attribute `direct` of the primitive.
      types: those of concrete values.
    """
    with _lock:
        if not table and ready is executor.ready:
            _direct.append(table)
            table.update(dict.fromkeys(types, run))


def forget_direct() -> None:
    """Let all operations pass through the kernel again, to the executor that evaluates then."""
    with _lock:
        for table in (*_direct, *filter(None, ready.values())):
            table.clear()
        _direct.clear()


observers: list[Callable[[Any, Any, Any], Callable[[Any], Any] | None]] = []
"""Functions that `observe` has added."""


def observe(observer: Callable[[Any, Any, Any], Callable[[Any], Any] | None], on: bool = True) -> None:
    """Call ``observer(primitive, args, params)`` before each evaluation of an operation, from now on or no longer.

    It returns None, or a function that gets the results after the evaluation and returns them.
    """
    global observers
    with _lock:
        others = [o for o in observers if o is not observer]
        observers = [*others, observer] if on else others
        _activate(active)  # operations that are evaluated without the kernel are not observed
