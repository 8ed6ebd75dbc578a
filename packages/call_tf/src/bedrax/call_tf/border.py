"""Conversion of arrays to TensorFlow tensors and back, without copies if the memory permits."""

from __future__ import annotations

import concurrent.futures
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.core import config, dtypes, executors, tracing
from bedrax.core.avals import ShapedArray
from bedrax.numpy_backend.executor import to_numpy
from bedrax.tf import tensorflow as tf
from bedrax.tf import types
from bedrax.xla_backend import dlpack
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.door.arrays import ArrayImpl, device_of, sharding_of
from bedrax.xla_backend.sharding import SingleDeviceSharding

_BOOL = np.dtype(bool)
_ALIGNMENT = 64  # bytes; TensorFlow's kernels abort the process if memory is not aligned to the widest vectors


def tensor_spec(aval: ShapedArray) -> Any:
    """The `tf.TensorSpec` of an array type; symbolic dimensions are unknown ones.

    Raises:
      TypeError: TensorFlow has no such dtype, or the array has random keys for elements.
    """
    if dtypes.is_extended(aval.dtype):
        raise TypeError(
            f"call_tf got an argument of type {aval.str_short()}: TensorFlow has no random keys; pass"
            " jax.random.key_data(key) instead"
        )
    try:
        return types.tensor_spec(aval)
    except TypeError as error:
        raise TypeError(f"call_tf got an argument of type {aval.str_short()}: {error}") from None


def numpy_dtype(tensor: Any) -> np.dtype | None:
    """Our (canonical) dtype for the elements of a tensor, or None for strings, resources and others without one."""
    try:
        return dtypes.canonicalize_dtype(types.numpy_dtype(tensor.dtype))
    except TypeError:
        return None


def to_tensor(x: Any) -> Any:
    """A concrete array as an eager tensor. It shares the array's memory if TensorFlow can read that."""
    array = x if type(x) is ArrayImpl else to_numpy(x)[0]
    if _is_shareable(array):
        try:
            if type(array) is ArrayImpl:
                array.block_until_ready()
                return _from_dlpack()(runtime.buffer_to_dlpack_managed_tensor(array, None))
            return _from_dlpack()(array.__dlpack__())
        except (BufferError, tf.errors.OpError, runtime.JaxRuntimeError):
            pass  # a dtype that DLPack or TensorFlow lacks
    return tf.constant(np.asarray(array))


@functools.cache
def _from_dlpack() -> Callable:
    return tf.experimental.dlpack.from_dlpack


def _is_shareable(x: Any) -> bool:
    """Whether TensorFlow can compute with the memory of an array in place."""
    if x.dtype is _BOOL or x.dtype == _BOOL or 0 in x.shape:
        return False
    if type(x) is np.ndarray:
        return x.flags.writeable and x.flags.c_contiguous and x.ctypes.data % _ALIGNMENT == 0
    where = sharding_of(x)
    if type(where) is not SingleDeviceSharding or x.is_deleted():
        return False
    return device_of(where).platform != "cpu" or x.unsafe_buffer_pointer() % _ALIGNMENT == 0


def to_array(tensor: Any, written: Sequence[np.ndarray]) -> Any:
    """An eager tensor as an array.

    Args:
      tensor: the tensor.
      written: NumPy arrays among the arguments of the call that made it. Their memory, which may be written to later,
        is never shared.
    """
    executor = executors.get()
    if not executor.shares_memory or not tensor.device.endswith("CPU:0") or tensor.dtype.is_bool:
        return executor.asarray(tensor.numpy())
    try:
        array = dlpack.of_host(tensor.__dlpack__())
    except (
        BufferError,
        tf.errors.OpError,
        runtime.JaxRuntimeError,
    ):  # a dtype that DLPack lacks, memory that XLA does not accept
        return executor.asarray(tensor.numpy())
    if written and any([_inside(array, x) for x in written]):
        return executor.asarray(tensor.numpy())
    return array


def _inside(array: Any, owner: np.ndarray) -> bool:
    begin = owner.ctypes.data
    return begin <= array.unsafe_buffer_pointer() < begin + owner.nbytes


def run_eagerly(fun: Any, args: Sequence[Any]) -> list[Any]:
    """The results of the `TfFunction` for concrete arrays, computed eagerly."""
    return outside_graphs(lambda: fun.run(*map(to_tensor, args)))


def only_eager(leaves: Sequence[Any]) -> bool:
    """Whether TensorFlow runs a call with these arguments eagerly."""
    return (
        tracing.current.trace is tracing.eval_trace
        and not tracing.current.varying
        and all([type(x) is ArrayImpl for x in leaves])
        and calls_here()
    )


def call_eagerly(fun: Any, arrays: Sequence[Any]) -> Any:
    """The common case of the primitive on arrays of a device, without a bind."""
    results, tree = fun.results([to_tensor(x) for x in arrays], arrays)
    return pytree.tree_unflatten(tree, [to_array(x, ()) for x in results])


_thread = threading.local()


def calls_here() -> bool:
    """Whether TensorFlow runs eagerly, in the calling thread."""
    return tf.executing_eagerly() and not hasattr(_thread, "helps")


def outside_graphs(action: Callable[..., Any]) -> Any:
    """Call ``action()`` outside of the graph that TensorFlow may be tracing, and outside of our transformations.

    In the first case it runs in another thread: in `tf.init_scope`, gradient tapes would record nothing.
    """
    if tf.executing_eagerly():
        with tracing.set_trace(tracing.eval_trace):
            return action()
    x64 = config.enable_x64.value

    def run():
        _thread.helps = True
        with config.enable_x64(x64):
            return action()

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()
