"""Semaphores, and copies between references that wait for them.

Runs of a kernel, cores and threads are executed one after the other. So a copy is made at its start. A wait for a later
event would never end: it is an error, at the latest when results are waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bedrax import lax
from bedrax.core.public import public
from bedrax.pallas.inside import assert_while_running
from bedrax.pallas.specs import MemorySpace
from bedrax.state import Ref
from bedrax.state.operations import as_view


def _elsewhere(what: str, **given: Any) -> None:
    named = [name for name, value in given.items() if value is not None]
    if named:
        raise NotImplementedError(
            public(
                f"{what}: {', '.join(named)} names another device or core, and interpreted kernels run on one, one"
                " after the other; write the exchange with jax.lax.ppermute or jax.lax.all_gather under jax.shard_map,"
                " around kernels"
            )
        )


def _semaphore(what: str, sem: Any) -> Any:
    view = as_view(sem)
    if view.shape or view.dtype != np.int32:
        raise TypeError(
            f"{what}: a semaphore is needed, a reference to an int32 scalar (memory of SemaphoreType), got"
            f" {view.aval.short()}; one of several is sem.at[i]"
        )
    return view


def semaphore_read(sem_or_view: Ref) -> Any:
    """The value of a semaphore, an int32 scalar.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> from jax.experimental.pallas import tpu as pltpu
      >>> def kernel(out_ref, sem_ref):
      ...     pl.semaphore_signal(sem_ref)
      ...     out_ref[...] = pl.semaphore_read(sem_ref)
      ...
      >>> out = jax.ShapeDtypeStruct((), jnp.int32)
      >>> pl.pallas_call(kernel, out, scratch_shapes=[pltpu.SemaphoreType.REGULAR], interpret=True)()
      Array(1, dtype=int32)
    """
    return _semaphore("semaphore_read", sem_or_view)[...]


def semaphore_signal(
    sem_or_view: Ref, inc: Any = 1, *, device_id: Any = None, device_id_type: Any = None, core_index: Any = None
) -> None:
    """Add to the value of a semaphore.

    Args:
      sem_or_view: a reference to a semaphore, or a view of one of several.
      inc: an integer.
      device_id, device_id_type, core_index: None; others raise NotImplementedError, because kernels run on one core.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> from jax.experimental.pallas import tpu as pltpu
      >>> def kernel(out_ref, sem_ref):
      ...     pl.semaphore_signal(sem_ref.at[1], 5)
      ...     out_ref[...] = sem_ref[...]
      ...
      >>> out = jax.ShapeDtypeStruct((2,), jnp.int32)
      >>> pl.pallas_call(kernel, out, scratch_shapes=[pltpu.SemaphoreType.REGULAR((2,))], interpret=True)()
      Array([0, 5], dtype=int32)
    """
    _elsewhere("semaphore_signal", device_id=device_id, device_id_type=device_id_type, core_index=core_index)
    view = _semaphore("semaphore_signal", sem_or_view)
    view[...] = lax.add(view[...], lax.convert_element_type(inc, np.int32))


def semaphore_wait(sem_or_view: Ref, value: Any = 1, *, decrement: bool = True) -> None:
    """Wait until a semaphore has at least a value.

    Args:
      sem_or_view: a reference to a semaphore, or a view of one of several.
      value: an integer.
      decrement: then subtract the value from the semaphore.

    Raises:
      jax.errors.JaxRuntimeError: the semaphore has a smaller value, and a signal could only come later.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> from jax.experimental.pallas import tpu as pltpu
      >>> def kernel(out_ref, sem_ref):
      ...     pl.semaphore_signal(sem_ref, 5)
      ...     pl.semaphore_wait(sem_ref, 2)
      ...     out_ref[...] = pl.semaphore_read(sem_ref)
      ...
      >>> out = jax.ShapeDtypeStruct((), jnp.int32)
      >>> pl.pallas_call(kernel, out, scratch_shapes=[pltpu.SemaphoreType.REGULAR], interpret=True)()
      Array(3, dtype=int32)
    """
    _take("semaphore_wait", sem_or_view, value, decrement)


def _take(what: str, sem: Any, value: Any, decrement: bool = True, known: bool = False) -> None:
    view = _semaphore(what, sem)
    value, has = lax.convert_element_type(value, np.int32), view[...]
    if not known:
        assert_while_running(
            f"{what}: the semaphore has a smaller value than the one that is waited for, and nothing else runs that could"
            " signal it: runs, cores and threads of interpreted kernels follow one another",
            lax.ge(has, value),
        )
    if decrement:
        view[...] = lax.sub(has, value)


@dataclass
class AsyncCopyDescriptor:
    """A copy from one reference to another: `make_async_copy` describes it, `start` makes it.

    A semaphore counts the bytes of copies without a wait so far.

    Attributes:
      src_ref, dst_ref: references of one shape and dtype, or views.
      dst_sem: the semaphore that is signaled when `dst_ref` is written, or None.
      src_sem: the semaphore that is signaled when `src_ref` is read, or None.
    """

    src_ref: Any
    dst_ref: Any
    dst_sem: Any
    src_sem: Any = None
    is_remote = False

    def __post_init__(self) -> None:
        src, dst = as_view(self.src_ref), as_view(self.dst_ref)
        if src.shape != dst.shape or src.dtype != dst.dtype:
            raise ValueError(
                f"a copy is between references of one shape and dtype, got {src.aval.short()} and {dst.aval.short()}"
            )
        self._bytes = np.int32(src.size * src.dtype.itemsize)
        self._started: set[str] = set()

    def _semaphores(self) -> dict[str, Any]:
        return {k: s for k, s in (("src_sem", self.src_sem), ("dst_sem", self.dst_sem)) if s is not None}

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Copy, and signal the semaphores.

        Args:
          priority: the number of a device's queue: 0 or more; not used.
          add: add to the value of `dst_ref`.
        """
        if priority < 0:
            raise ValueError(f"the priority of a copy is 0 or more, got {priority}")
        src, dst = as_view(self.src_ref), as_view(self.dst_ref)
        dst[...] = lax.add(dst[...], src[...]) if add else src[...]
        for name, sem in self._semaphores().items():
            semaphore_signal(sem, self._bytes)
            self._started.add(name)

    def _wait(self, name: str) -> None:
        sem = self._semaphores().get(name)
        if sem is None:
            raise ValueError(f"the copy has no {name} to wait for: pass one to make_async_copy")
        _take("the wait for a copy", sem, self._bytes, known=name in self._started)
        self._started.discard(name)

    def wait(self) -> None:
        """Wait for the copy: for each given semaphore, and always for that of `dst_ref`."""
        for name in {**self._semaphores(), "dst_sem": None}:
            self._wait(name)

    def wait_write(self) -> None:
        """Wait until `dst_ref` is written."""
        self._wait("dst_sem")

    def wait_recv(self) -> None:
        """The same as `wait_write`."""
        self._wait("dst_sem")

    def wait_read(self) -> None:
        """Wait until `src_ref` is read."""
        self._wait("src_sem")

    def wait_send(self) -> None:
        """Raises ValueError: only copies to other devices have it; a local copy has `wait_read`."""
        raise ValueError("wait_send is for a copy to another device; wait_read waits until a local copy has read")


def make_async_copy(src_ref: Ref, dst_ref: Ref, sem: Ref | None = None, *, src_sem: Ref | None = None) -> Any:
    """A copy that is not started: its ``start()`` makes it, its ``wait()`` waits for it.

    Args:
      src_ref, dst_ref: references of one shape and dtype, or views.
      sem: a semaphore that is signaled when `dst_ref` is written.
      src_sem: a semaphore that is signaled when `src_ref` is read.

    Raises:
      ValueError: the shapes or dtypes differ.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref, sem_ref):
      ...     copies = [pltpu.make_async_copy(x_ref.at[i], out_ref.at[1 - i], sem_ref.at[i]) for i in range(2)]
      ...     for copy in copies:
      ...         copy.start()
      ...     for copy in copies:
      ...         copy.wait()
      ...
      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> pl.pallas_call(kernel, x, scratch_shapes=[pltpu.SemaphoreType.DMA((2,))], interpret=True)(x)
      Array([[3, 4],
             [1, 2]], dtype=int32)
    """
    return AsyncCopyDescriptor(src_ref, dst_ref, sem, src_sem)


def async_copy(
    src_ref: Ref,
    dst_ref: Ref,
    sem: Ref | None = None,
    *,
    src_sem: Ref | None = None,
    priority: int = 0,
    add: bool = False,
) -> Any:
    """`make_async_copy`, started.

    Args:
      src_ref, dst_ref, sem, src_sem: see `make_async_copy`.
      priority, add: see its ``start``.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref, sem_ref):
      ...     out_ref[...] = jnp.ones(3, jnp.int32)
      ...     pltpu.async_copy(x_ref, out_ref, sem_ref, add=True).wait()
      ...
      >>> x = jnp.arange(3)
      >>> pl.pallas_call(kernel, x, scratch_shapes=[pltpu.SemaphoreType.DMA], interpret=True)(x)
      Array([1, 2, 3], dtype=int32)
    """
    copy = make_async_copy(src_ref, dst_ref, sem, src_sem=src_sem)
    copy.start(priority, add=add)
    return copy


def sync_copy(src_ref: Ref, dst_ref: Ref, *, add: bool = False) -> None:
    """Copy the value of a reference to another one, and wait for the end.

    Args:
      src_ref: the reference that is read.
      dst_ref: the reference that is written; its shape and dtype are those of `src_ref`.
      add: add to the value of `dst_ref` instead of replacing it.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> x = jnp.arange(4)
      >>> out = jax.ShapeDtypeStruct((2,), jnp.int32)
      >>> pl.pallas_call(lambda x_ref, out_ref: pltpu.sync_copy(x_ref.at[2:], out_ref), out, interpret=True)(x)
      Array([2, 3], dtype=int32)
    """
    make_async_copy(src_ref, dst_ref).start(add=add)


def get_barrier_semaphore(tag: Any = None) -> Any:
    """Raises NotImplementedError: a barrier is between devices, and an interpreted kernel runs on one.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> pltpu.get_barrier_semaphore()
      Traceback (most recent call last):
      ...
      NotImplementedError: get_barrier_semaphore: tag names another device or core, ...
    """
    _elsewhere("get_barrier_semaphore", tag="the barrier of a device" if tag is None else tag)


_PROMISES = ("no_store", "no_hazard", "no_hazard_no_deps")


def annotate(
    ref: Ref,
    *,
    no_store: bool = False,
    no_bank_conflict: bool = False,
    no_hazard: bool = False,
    no_hazard_no_deps: bool = False,
) -> Any:
    """The reference, with a promise of the caller to a compiler. There is no compiler, so it is unchanged.

    Args:
      ref: a reference, or a view of one.
      no_store: the kernel writes nothing to it.
      no_bank_conflict: accesses at the same time are to different banks; may be together with one of the others.
      no_hazard: no element is read directly after a write to it.
      no_hazard_no_deps: reads and writes may be exchanged.

    Returns:
      A view of the whole reference.

    Raises:
      ValueError: no promise, or several that exclude each other.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = 2 * pltpu.annotate(x_ref, no_store=True)[...]  # the kernel only reads it
      ...
      >>> pl.pallas_call(kernel, jnp.arange(3), interpret=True)(jnp.arange(3))
      Array([0, 2, 4], dtype=int32)
    """
    given = [name for name, on in zip(_PROMISES, (no_store, no_hazard, no_hazard_no_deps), strict=True) if on]
    if len(given) > 1 or not (given or no_bank_conflict):
        raise ValueError(
            f"annotate: give no_bank_conflict, one of {', '.join(_PROMISES)}, or no_bank_conflict and one of these; got"
            f" {given or 'none'}"
        )
    return as_view(ref)


def has_memory_space(ref: Ref, memory_space: Any) -> Any:
    """Whether a reference in any memory (`pl.ANY`) is in a kind of memory, a boolean scalar.

    Args:
      ref: a reference that belongs to an argument or a result with ``memory_space=pl.ANY``, or a view of one.
      memory_space: a `MemorySpace` of a TPU.

    Returns:
      Whether it is `HBM`: an interpreted kernel has its arguments in the one large memory of the
      machine.

    Raises:
      ValueError: the reference is in another known kind of memory.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = pltpu.has_memory_space(x_ref, pltpu.HBM)
      ...
      >>> anywhere, out = pl.BlockSpec(memory_space=pl.ANY), jax.ShapeDtypeStruct((), jnp.bool_)
      >>> pl.pallas_call(kernel, out, in_specs=[anywhere], interpret=True)(jnp.arange(3))
      Array(True, dtype=bool)
    """
    space = as_view(ref).aval.memory_space
    if space is not MemorySpace.ANY:
        raise ValueError(
            f"has_memory_space: a reference in pl.ANY is needed, got one in {space or 'memory of no name'}"
        )
    return np.bool_(memory_space is MemorySpace.HBM)


def touch(ref: Ref) -> None:
    """Mark a reference as read and written, for a compiler. There is none here.

    Raises:
      TypeError: the argument is not a reference.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     pltpu.touch(out_ref)
      ...     out_ref[...] = x_ref[...]
      ...
      >>> pl.pallas_call(kernel, jnp.arange(3), interpret=True)(jnp.arange(3))
      Array([0, 1, 2], dtype=int32)
    """
    as_view(ref)


def with_memory_space_constraint(x: Any, memory_space: Any) -> Any:
    """The array. A compiler would keep it in a kind of memory; there is none here, so it is unchanged.

    Args:
      x: an argument of a kernel.
      memory_space: a `MemorySpace` of a TPU.

    Raises:
      TypeError: `memory_space` is no `MemorySpace`.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = -x_ref[...]
      ...
      >>> x = pltpu.with_memory_space_constraint(jnp.arange(3), pltpu.HBM)
      >>> pl.pallas_call(kernel, x, interpret=True)(x)
      Array([ 0, -1, -2], dtype=int32)
    """
    if not isinstance(memory_space, MemorySpace):
        raise TypeError(f"with_memory_space_constraint: memory_space is a member of MemorySpace, got {memory_space!r}")
    return lax.asarray(x)
