"""Moving values to devices and back: `device_put`, `device_get`, and arrays made of their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bedrax import pytree
from bedrax.core import avals, dtypes, executors, tracing
from bedrax.core.avals import ShapedArray
from bedrax.numpy_backend.executor import to_numpy
from bedrax.numpy_backend.host_array import HostArray
from bedrax.xla_backend import clients
from bedrax.xla_backend import jaxlib_door as door
from bedrax.xla_backend import sharding as sharding_module
from bedrax.xla_backend.array import ArrayImpl, from_parts, host_value
from bedrax.xla_backend.sharding import SingleDeviceSharding, make_single_device_sharding

_batched_device_put = door.batched_device_put


def put_uncommitted(x: Any, weak_type: bool = False):
    """A NumPy value on the default device, free to move."""
    return _put_host(x, make_single_device_sharding(clients.default_device()), False, weak_type)


def _put_host(value: np.ndarray, sharding, committed: bool, weak_type: bool = False):
    value = np.asarray(value)
    dtype = dtypes.canonicalize_dtype(value.dtype)
    if dtype != value.dtype:
        value = value.astype(dtype)
    if value.dtype.kind == "V" and value.dtype.itemsize == 0:
        raise TypeError("arrays of float0 are not placed on devices")
    aval = ShapedArray(value.shape, dtype, weak_type)
    if type(sharding) is SingleDeviceSharding:
        return _batched_device_put(aval, sharding, [value], [sharding._device], committed)
    sharding.shard_shape(value.shape)  # raises if it cannot be split
    parts, places = [], []
    for device, index in sharding.addressable_devices_indices_map(value.shape).items():
        parts.append(value[index])
        places.append(device)
    return _batched_device_put(aval, sharding, parts, places, committed)


def to_sharding(x: Any, sharding, committed: bool = True):
    """A concrete value as an array placed as `sharding` says."""
    kind = type(x)
    if kind is ArrayImpl:
        return _move(x, sharding, committed)
    if kind is HostArray:
        return _put_host(x._value, sharding, committed, x._weak)
    value, weak = to_numpy(x)
    return _put_host(value, sharding, committed, weak)


def _move(x, sharding, committed: bool):
    if x.is_deleted():
        raise RuntimeError(f"Array has been deleted with shape={x.aval.str_short()}.")
    have = x._sharding
    if have == sharding or have.is_equivalent_to(sharding, x.ndim):
        if x._committed == committed and have == sharding:
            return x
        return ArrayImpl(x.aval, sharding, list(x._arrays), committed=committed, _skip_checks=True)
    sharding.shard_shape(x.shape)
    if type(sharding) is SingleDeviceSharding and type(have) is SingleDeviceSharding:
        moved = door.batched_copy_array_to_devices_with_sharding(
            [x], [sharding._internal_device_list], [sharding], [door.ArrayCopySemantics.REUSE_INPUT])[0]  # fmt: skip
        if moved._committed == committed:
            return moved
        return ArrayImpl(x.aval, sharding, list(moved._arrays), committed=committed, _skip_checks=True)
    return _put_host(host_value(x), sharding, committed, x.aval.weak_type)


def _put_leaf(x: Any, where: Any, donate: bool, may_alias: bool | None, src: Any = None):
    extended = getattr(getattr(x, "aval", None), "dtype", None)
    if isinstance(extended, dtypes.ExtendedDType) and not isinstance(x, tracing.Tracer):
        data = _put_leaf(extended.physical_value(x), where, donate, may_alias)
        return extended.from_physical(data, x.aval)
    where = sharding_module.resolve(where, "device_put")
    if isinstance(x, tracing.Tracer):
        from bedrax.xla_backend.placement_primitive import device_put_p

        return device_put_p.bind(x, where=where, src=sharding_module.resolve(src, "src of device_put"))
    if hasattr(x, "__jax_array__"):
        x = x.__jax_array__()
    if tracing.current.trace is not tracing.eval_trace and type(x) is not ArrayImpl and where is None:
        x = executors.get().asarray(x)
    if may_alias is False and type(x) is np.ndarray:
        x = x.copy()  # on the CPU, a buffer may be the NumPy array's own memory
    if where is None:
        if type(x) is ArrayImpl:
            if x.is_deleted():
                raise RuntimeError(f"Array has been deleted with shape={x.aval.str_short()}.")
            return copy(x) if may_alias is False else x
        out = to_sharding(x, make_single_device_sharding(clients.default_device()), False)
    else:
        where.check_compatible_aval(np.shape(x))
        out = to_sharding(x, where)
    if may_alias is False and out is x:
        out = copy(out)
    if donate and type(x) is ArrayImpl and out is not x and not x.is_deleted() and not _shares(x, out):
        x.delete()
    return out


def _shares(x, y) -> bool:
    """Whether two arrays hold the same buffer of one device."""
    try:
        return x.unsafe_buffer_pointer() == y.unsafe_buffer_pointer()
    except Exception:  # arrays of several parts have no one pointer
        return {a.unsafe_buffer_pointer() for a in x._arrays} == {
            a.unsafe_buffer_pointer() for a in y._arrays
        }


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None):
    """Place arrays on a device, or split them over several.

    Args:
      x: an array, or a pytree of arrays, NumPy arrays and scalars.
      device: a `Device`, a `Sharding` or a `PartitionSpec` (of the current mesh), or a pytree prefix of `x` with
        them; None places on the default device what is on none.
      src: where `x` is now, also a prefix: there its cotangent is put. Only in traced functions this is not known.
      donate: whether the original may be given up (also a pytree prefix).
      may_alias: False asks for a copy; None or True allow to return `x` itself.

    Returns:
      A pytree like `x`; arrays on a given device are committed to it.

    Raises:
      ValueError: `device` is neither a device nor a sharding, or a shape cannot be split evenly.
      TypeError: a leaf is no array.
    """
    if type(x) in _LEAF_TYPES and not isinstance(device, (list, tuple, dict)):
        return _put_leaf(x, device, bool(donate), may_alias)
    leaves, tree = pytree.tree_flatten(x)
    given = {"device": device, "donate": donate, "may_alias": may_alias, "src": src}
    prefixes = [per_leaf(p, tree, f"{name} of device_put") for name, p in given.items()]
    for leaf in leaves:
        avals.abstractify(leaf)
    out = [_put_leaf(*each) for each in zip(leaves, *prefixes, strict=True)]
    return pytree.tree_unflatten(tree, out)


_LEAF_TYPES = frozenset({ArrayImpl, np.ndarray, HostArray, int, float, bool, complex})


def per_leaf(prefix: Any, tree, what: str) -> list:
    """One place, or one choice, for each leaf of a structure, from a pytree prefix of it."""
    if sharding_module.is_place(prefix):
        return [prefix] * tree.num_leaves
    full = pytree.tree_unflatten(tree, [0] * tree.num_leaves)
    try:
        return pytree.tree_broadcast_leaves(prefix, full, sharding_module.is_place)
    except ValueError as error:
        raise ValueError(f"{what} is neither one value nor a pytree prefix of the values: {error}") from None


def resolved_leaves(prefix: Any, tree, what: str) -> tuple | None:
    """A sharding (or None) for each leaf of a structure, from a pytree prefix; None if nothing is asked for."""
    if prefix is None:
        return None
    return tuple([sharding_module.resolve(s, what) for s in per_leaf(prefix, tree, what)])


def with_sharding_constraint(x: Any, shardings: Any):
    """Say how the leaves of `x` are to be split; inside `jit`, the partitioner obeys.

    Args:
      x: a pytree of arrays.
      shardings: a `Sharding` or `PartitionSpec` (of the current mesh), or a pytree prefix of `x` with them.

    Returns:
      A pytree like `x`.
    """
    from bedrax.xla_backend.placement_primitive import sharding_constraint_p

    leaves, tree = pytree.tree_flatten(x)
    wanted = resolved_leaves(shardings, tree, "shardings of with_sharding_constraint")
    if wanted is None:
        return x
    for leaf, s in zip(leaves, wanted, strict=True):
        if s is not None:
            s.check_compatible_aval(avals.abstractify(leaf).shape)
    placed = [x if s is None else sharding_constraint_p.bind(x, sharding=s) for x, s in zip(leaves, wanted)]
    return pytree.tree_unflatten(tree, placed)


def device_get(x: Any):
    """Copy to the host: a pytree of `numpy.ndarray` (scalars of Python stay as they are).

    Copies of all leaves are started before the first is waited for.
    """
    leaves, tree = pytree.tree_flatten(x)
    for leaf in leaves:
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return pytree.tree_unflatten(tree, [_get_leaf(v) for v in leaves])


def _get_leaf(x):
    if isinstance(x, tracing.Tracer):
        return x.__array__()
    if hasattr(x, "__array__"):
        return np.asarray(x)
    return x


def block_until_ready(x: Any):
    """Wait until every array in the pytree `x` has been computed; returns `x`."""
    leaves = [v for v in pytree.tree_leaves(x) if hasattr(v, "block_until_ready")]
    arrays = [v for v in leaves if type(v) is ArrayImpl]
    if len(arrays) > 1:
        door.batched_block_until_ready(arrays)
    elif arrays:
        arrays[0].block_until_ready()
    for v in leaves:
        if type(v) is not ArrayImpl:
            v.block_until_ready()
    return x


def copy_to_host_async(x: Any):
    """Start copying every array in the pytree `x` to the host; returns `x`."""
    for v in pytree.tree_leaves(x):
        if hasattr(v, "copy_to_host_async"):
            v.copy_to_host_async()
    return x


def copy(x):
    """A new array with the same value and place, in memory of its own."""
    sharding = x._sharding
    return door.batched_copy_array_to_devices_with_sharding(
        [x], [sharding._internal_device_list], [sharding], [door.ArrayCopySemantics.ALWAYS_COPY])[0]  # fmt: skip


def make_array_from_callback(shape: Sequence[int], sharding, data_callback: Callable, dtype: Any = None):
    """An array whose parts a function makes.

    Args:
      shape: of the whole array.
      sharding: where the parts go.
      data_callback: gets the slices that a device holds, returns that part.
      dtype: of the array; needed if this process has none of the devices.
    """
    shape = tuple(shape)
    parts, cache = [], {}
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        key = tuple((s.start, s.stop) for s in index)
        if key not in cache:
            cache[key] = np.asarray(data_callback(index), dtype)
        parts.append(to_sharding(cache[key], make_single_device_sharding(device)))
    if not parts and dtype is None:
        raise ValueError(
            "make_array_from_callback: give dtype, as this process has no device of the sharding"
        )
    return make_array_from_single_device_arrays(shape, sharding, parts, dtype=dtype)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding, arrays: Sequence[Any], *, dtype: Any = None
):
    """An array from its parts, one on each addressable device of `sharding`.

    Raises:
      ValueError: parts are missing, on other devices, or of another shape than the sharding says.
    """
    if isinstance(arrays, ArrayImpl) or not isinstance(arrays, Sequence):
        raise TypeError(
            f"make_array_from_single_device_arrays: `arrays` must be a list or tuple, got {type(arrays)}"
        )
    if any(isinstance(a, tracing.Tracer) for a in arrays):
        raise ValueError("make_array_from_single_device_arrays requires a list of concrete arrays as input")
    shape = tuple(shape)
    if dtype is None:
        if not arrays:
            raise ValueError(
                "make_array_from_single_device_arrays: give dtype when there are no local arrays"
            )
        dtype = arrays[0].dtype
    aval = ShapedArray(shape, np.dtype(dtype))
    if type(sharding) is SingleDeviceSharding and len(arrays) == 1:
        if arrays[0].shape != shape:
            raise ValueError(f"Expected a part of shape {shape}, got {arrays[0].shape}")
    return from_parts(aval, sharding, arrays)


def make_array_from_process_local_data(sharding, local_data, global_shape: Sequence[int] | None = None):
    """An array from this process's data; with one process, its data is all of it."""
    local = np.asarray(local_data)
    shape = (
        local.shape
        if global_shape is None
        else tuple(n if n is not None else m for n, m in zip(global_shape, local.shape))
    )
    if clients.process_count() == 1 and shape != local.shape:
        raise ValueError(
            f"global_shape {shape} differs from the data's shape {local.shape}, but there is one process"
        )
    if clients.process_count() > 1:
        raise NotImplementedError(
            "make_array_from_process_local_data over several processes is not supported; use make_array_from_callback"
        )
    return make_array_from_callback(shape, sharding, lambda index: local[index])


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]):
    """Stack pytrees along a new leading axis that is split over `devices`, one part each."""
    if len(shards) != len(devices):
        raise ValueError(f"len(shards) = {len(shards)} must equal len(devices) = {len(devices)}.")
    array = np.empty(len(devices), object)
    array[:] = list(devices)
    mesh = sharding_module.Mesh(array, ("_device_put_sharded",))
    where = sharding_module.NamedSharding(mesh, sharding_module.PartitionSpec("_device_put_sharded"))
    return pytree.tree_map(
        lambda *parts: to_sharding(np.stack([np.asarray(p) for p in parts]), where), *shards
    )


def device_put_replicated(x: Any, devices: Sequence[Any]):
    """A copy of the pytree `x` per device, along a new leading axis."""
    return device_put_sharded([x] * len(devices), devices)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of this dtype can be exchanged through DLPack."""
    dtype = np.dtype(dtype)
    if dtype.kind in "biufc":
        return dtype.name not in ("longdouble", "clongdouble", "float128", "complex256")
    return dtype.name == "bfloat16"


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None):
    """An array that shares memory with another library's, through DLPack.

    Args:
      external_array: an object with ``__dlpack__`` and ``__dlpack_device__``.
      device: where it should be; by default where it is.
      copy: True asks for a copy, False forbids one, None lets us choose.

    Raises:
      TypeError: `external_array` does not speak DLPack.
      ValueError: a copy would be needed and is forbidden.
    """
    if not (hasattr(external_array, "__dlpack__") and hasattr(external_array, "__dlpack_device__")):
        raise TypeError(
            "The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods; capsules of the"
            f" older protocol are not accepted. Got {type(external_array)}"
        )
    kind, number = external_array.__dlpack_device__()
    kind = int(kind)
    platforms = {1: "cpu", 2: "cuda", 3: "cpu", 10: "rocm"}
    if kind not in platforms:
        raise TypeError(
            f"Array passed to from_dlpack is on unsupported device type (DLDeviceType: {kind}), array: {external_array}"
        )
    client = clients.get_backend(platforms[kind])
    source = client.local_devices()[0] if kind in (1, 3) else client.device_from_local_hardware_id(number)
    stream = None if kind in (1, 3) else source.get_stream_for_external_ready_events()
    try:
        capsule = (
            external_array.__dlpack__(stream=stream) if stream is not None else external_array.__dlpack__()
        )
    except BufferError:
        if copy is False or kind not in (1, 3):
            raise
        return to_sharding(np.array(external_array), make_single_device_sharding(source))
    try:
        found = door.dlpack_managed_tensor_to_buffer(capsule, source, stream)
    except door.JaxRuntimeError:
        # XLA wants memory aligned to 16 bytes and in a dense layout; what is not must be copied.
        if copy is False or kind not in (1, 3):
            raise
        found = to_sharding(
            np.array(np.from_dlpack(external_array), copy=True), make_single_device_sharding(source)
        )
    target = sharding_module.resolve(device, "device of from_dlpack")
    if copy:
        found = globals()["copy"](found)
    if target is not None and target != found._sharding:
        if copy is False:
            raise ValueError(f"from_dlpack: the array is on {source}; moving it to {target} needs a copy")
        found = _move(found, target, True)
    return found
