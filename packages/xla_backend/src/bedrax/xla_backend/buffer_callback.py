"""Callbacks that write their results into buffers (`jax.experimental.buffer_callback`), by callbacks that return
them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.core.typing import DTypeLike
from bedrax.lax.primitives.callbacks import io_callback, pure_callback
from bedrax.xla_backend.ffi import check_aliases

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]


class ExecutionStage(enum.Enum):
    """The stage of an execution in which a callback is called: here always the last one.

    Examples:

      >>> from jax.experimental import buffer_callback as bc

      >>> def fill(context, out):
      ...     if context.stage is bc.ExecutionStage.EXECUTE:
      ...         np.asarray(out)[...] = 5
      ...
      >>> int(bc.buffer_callback(fill, jax.ShapeDtypeStruct((), jnp.int32))())
      5
      >>> [stage.name for stage in bc.ExecutionStage]
      ['INSTANTIATE', 'PREPARE', 'INITIALIZE', 'EXECUTE']
    """

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


@dataclass(frozen=True)
class ExecutionContext:
    """The context argument of a callback. `stream` is that of a device; the host has none.

    Examples:

      >>> from jax.experimental import buffer_callback as bc

      >>> seen = []
      >>> def fill(context, out):
      ...     seen.append((context.stage.name, context.stream))
      ...     np.asarray(out)[...] = 7
      ...
      >>> int(bc.buffer_callback(fill, jax.ShapeDtypeStruct((), jnp.int32))()), seen[-1]
      (7, ('EXECUTE', None))
    """

    stage: ExecutionStage = ExecutionStage.EXECUTE
    stream: None = None


class Buffer:
    """An argument or a result of a callback. ``numpy.asarray(buffer)`` is its memory, which is writable for a
    result.

    Examples:

      >>> from jax.experimental import buffer_callback as bc

      >>> def swap(context, out, x):
      ...     print(x, out)
      ...     np.asarray(out)[...] = np.asarray(x)[::-1]
      ...
      >>> swapped = bc.buffer_callback(swap, jax.ShapeDtypeStruct((2,), jnp.int32))
      >>> jax.block_until_ready(swapped(jnp.array([4, 9])))
      Buffer(int32[2], writeable=False) Buffer(int32[2], writeable=True)
      Array([9, 4], dtype=int32)
    """

    def __init__(self, array: np.ndarray, writeable: bool) -> None:
        self._array = array
        self.writeable = writeable
        array.flags.writeable = writeable

    @property
    def shape(self) -> Any:
        return self._array.shape

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def dtype(self) -> Any:
        return self._array.dtype

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self._array, dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __repr__(self) -> str:
        return f"Buffer({self.dtype.name}{list(self.shape)}, writeable={self.writeable})"


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """Returns a function of arrays that calls Python code, which fills the buffers of the results.

    Args:
      callback: ``(context, buffers of the results, *buffers of the arguments) -> None``; runs on the host.
      result_shape_dtypes: pytree of objects with ``shape`` and ``dtype``, like the result.
      has_side_effect: whether the call must happen exactly once.
      vmap_method: see `jax.pure_callback`; not with `has_side_effect`.
      input_output_aliases: flat argument -> flat result; the buffer of the result has its values at the start of the
        call.
      command_buffer_compatible: allow a GPU to record the call. The host makes every call.

    Returns:
      A function of pytrees of arrays that returns a pytree like `result_shape_dtypes`.

    Raises:
      ValueError: an alias names no argument or result, or their types differ.

    Examples:

      >>> from jax.experimental import buffer_callback as bc

      >>> def running_total(context, out, x):
      ...     np.cumsum(np.asarray(x), out=np.asarray(out))
      ...
      >>> totals = bc.buffer_callback(running_total, jax.ShapeDtypeStruct((4,), jnp.float32))
      >>> jax.jit(lambda x: 10 * totals(x))(jnp.arange(1., 5.))
      Array([ 10.,  30.,  60., 100.], dtype=float32)
    """
    wanted, tree = pytree.tree_flatten(result_shape_dtypes)
    types = tuple((tuple(s.shape), np.dtype(s.dtype)) for s in wanted)
    aliases = tuple(sorted((input_output_aliases or {}).items()))

    def call(*args):
        avals = [aval_of(x) for x in pytree.tree_leaves(args)]
        check_aliases(dict(aliases), avals, [ShapedArray(*kind) for kind in types])
        ranks = tuple(len(aval.shape) for aval in avals)
        fill = _Fill(callback, types, tree, aliases, ranks)
        if has_side_effect:
            return io_callback(fill, result_shape_dtypes, *args)
        return pure_callback(fill, result_shape_dtypes, *args, vmap_method=vmap_method)

    return call


@dataclass(frozen=True)
class _Fill:
    """A callback that returns the arrays that another callback writes. Equal ones share compiled code."""

    callback: Callable[..., Any]
    types: tuple[Any, ...]
    tree: Any
    aliases: tuple[Any, ...]
    ranks: tuple[int, ...]

    def __call__(self, *args: Array) -> Array:
        given = [np.asarray(x) for x in pytree.tree_leaves(args)]
        lead = [x.shape[: x.ndim - rank] for x, rank in zip(given, self.ranks, strict=True)]
        batch = np.broadcast_shapes(*lead)
        results = [np.zeros((*batch, *shape), dtype) for shape, dtype in self.types]
        for source, target in self.aliases:
            results[target][...] = given[source]
        read = pytree.tree_map(lambda x: Buffer(np.array(x), False), args)
        out = pytree.tree_unflatten(self.tree, [Buffer(x, True) for x in results])
        returned = self.callback(ExecutionContext(), out, *read)
        if returned is not None:
            raise TypeError(f"buffer_callback: the callback writes its results into buffers, and returned {returned!r}")
        return pytree.tree_unflatten(self.tree, results)
