"""Where values are: placing them, what is said about it inside programs, and where programs run.

On one device both primitives are the identity; over several, the partitioner reads them as what the sharding says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bedrax import pytree
from bedrax.autodiff.tables import Zero, jvp_rules, linear, transpose_rules
from bedrax.batching.tables import batch_rules
from bedrax.core import avals, dtypes, executors, tracing
from bedrax.core.avals import ShapedArray
from bedrax.core.tracing import Primitive
from bedrax.lax.tables import decompositions
from bedrax.numpy_backend.executor import to_numpy
from bedrax.numpy_backend.host_array import HostArray
from bedrax.parallel import Mesh, PartitionSpec
from bedrax.xla_backend import clients
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.door.arrays import ArrayImpl, copied, device_of, is_committed, make_array, parts_of, sharding_of
from bedrax.xla_backend.guards import asks_for
from bedrax.xla_backend.host import check_alive, host_value
from bedrax.xla_backend.sharding import (
    NamedSharding,
    SingleDeviceSharding,
    is_place,
    make_single_device_sharding,
    resolve,
)
from bedrax.xla_backend.tables import lowering_rules

_batched_device_put = runtime.batched_device_put


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
        return _batched_device_put(aval, sharding, [value], [device_of(sharding)], committed)
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
    check_alive(x)
    have = sharding_of(x)
    if have == sharding or have.is_equivalent_to(sharding, x.ndim):
        if is_committed(x) == committed and have == sharding:
            return x
        return make_array(x.aval, sharding, parts_of(x), committed)
    sharding.shard_shape(x.shape)
    if type(sharding) is SingleDeviceSharding and type(have) is SingleDeviceSharding:
        moved = copied(x, sharding, always=False)
        return moved if is_committed(moved) == committed else make_array(x.aval, sharding, parts_of(moved), committed)
    return _put_host(host_value(x), sharding, committed, x.aval.weak_type)


def _put_leaf(x: Any, where: Any, donate: bool, may_alias: bool | None, src: Any = None):
    extended = getattr(getattr(x, "aval", None), "dtype", None)
    if isinstance(extended, dtypes.ExtendedDType) and not isinstance(x, tracing.Tracer):
        data = _put_leaf(extended.physical_value(x), where, donate, may_alias)
        return extended.from_physical(data, x.aval)
    where = resolve(where, "device_put")
    if isinstance(x, tracing.Tracer):
        return device_put_p.bind(x, where=where, src=resolve(src, "src of device_put"))
    if hasattr(x, "__jax_array__"):
        x = x.__jax_array__()
    if tracing.current.trace is not tracing.eval_trace and type(x) is not ArrayImpl and where is None:
        x = executors.get().asarray(x)
    if may_alias is False and type(x) is np.ndarray:
        x = x.copy()  # on the CPU, a buffer may be the NumPy array's own memory
    if where is None:
        if type(x) is ArrayImpl:
            check_alive(x)
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
        return {a.unsafe_buffer_pointer() for a in parts_of(x)} == {a.unsafe_buffer_pointer() for a in parts_of(y)}


@asks_for("explicit_device_put")
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
    if is_place(prefix):
        return [prefix] * tree.num_leaves
    full = pytree.tree_unflatten(tree, [0] * tree.num_leaves)
    try:
        return pytree.tree_broadcast_leaves(prefix, full, is_place)
    except ValueError as error:
        raise ValueError(f"{what} is neither one value nor a pytree prefix of the values: {error}") from None


def resolved_leaves(prefix: Any, tree, what: str) -> tuple | None:
    """A sharding (or None) for each leaf of a structure, from a pytree prefix; None if nothing is asked for."""
    if prefix is None:
        return None
    return tuple([resolve(s, what) for s in per_leaf(prefix, tree, what)])


def with_sharding_constraint(x: Any, shardings: Any):
    """Say how the leaves of `x` are to be split; inside `jit`, the partitioner obeys.

    Args:
      x: a pytree of arrays.
      shardings: a `Sharding` or `PartitionSpec` (of the current mesh), or a pytree prefix of `x` with them.

    Returns:
      A pytree like `x`.
    """
    leaves, tree = pytree.tree_flatten(x)
    wanted = resolved_leaves(shardings, tree, "shardings of with_sharding_constraint")
    if wanted is None:
        return x
    for leaf, s in zip(leaves, wanted, strict=True):
        if s is not None:
            s.check_compatible_aval(avals.abstractify(leaf).shape)
    placed = [x if s is None else sharding_constraint_p.bind(x, sharding=s) for x, s in zip(leaves, wanted)]
    return pytree.tree_unflatten(tree, placed)


@asks_for("explicit_device_get")
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
        runtime.batched_block_until_ready(arrays)
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
    return copied(x, sharding_of(x), always=True)


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
        raise ValueError("make_array_from_callback: give dtype, as this process has no device of the sharding")
    return make_array_from_single_device_arrays(shape, sharding, parts, dtype=dtype)


def make_array_from_single_device_arrays(shape: Sequence[int], sharding, arrays: Sequence[Any], *, dtype: Any = None):
    """An array from its parts, one on each addressable device of `sharding`.

    Raises:
      ValueError: parts are missing, on other devices, or of another shape than the sharding says.
    """
    if isinstance(arrays, ArrayImpl) or not isinstance(arrays, Sequence):
        raise TypeError(
            f"make_array_from_single_device_arrays: arrays is a list or tuple of arrays, got {type(arrays)}"
        )
    if any(isinstance(a, tracing.Tracer) for a in arrays):
        raise ValueError("make_array_from_single_device_arrays: traced values are on no device; call it outside of jit")
    shape = tuple(shape)
    if dtype is None:
        if not arrays:
            raise ValueError("make_array_from_single_device_arrays: give dtype when there are no local arrays")
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
        raise ValueError(f"global_shape {shape} differs from the data's shape {local.shape}, but there is one process")
    if clients.process_count() > 1:
        raise NotImplementedError(
            "make_array_from_process_local_data over several processes is not supported; use make_array_from_callback"
        )
    return make_array_from_callback(shape, sharding, lambda index: local[index])


@asks_for("explicit_device_put")
def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]):
    """Stack pytrees along a new leading axis that is split over `devices`, one part each."""
    if len(shards) != len(devices):
        raise ValueError(f"device_put_sharded needs one part per device, got {len(shards)} for {len(devices)} devices")
    array = np.empty(len(devices), object)
    array[:] = list(devices)
    mesh = Mesh(array, ("_device_put_sharded",))
    where = NamedSharding(mesh, PartitionSpec("_device_put_sharded"))
    return pytree.tree_map(lambda *parts: to_sharding(np.stack([np.asarray(p) for p in parts]), where), *shards)


def device_put_replicated(x: Any, devices: Sequence[Any]):
    """A copy of the pytree `x` per device, along a new leading axis."""
    return device_put_sharded([x] * len(devices), devices)


def check_and_rearrange(arrays: Sequence[Any], sharding, aval: ShapedArray) -> list:
    """Check the parts of an array, and order them as the sharding does.

    Raises:
      ValueError: parts are missing, on other devices, or of another shape or dtype than they should be.
    """
    devices = [device_of(sharding_of(a)) for a in arrays]
    wanted = sharding._addressable_device_assignment
    if len(arrays) != len(wanted):
        raise ValueError(
            f"the sharding has {len(wanted)} devices of this process, which need one part each; got {len(arrays)} parts"
        )
    if set(devices) != set(wanted):
        raise ValueError(
            f"the parts are on {sorted(map(str, devices))}, but the devices of the sharding are"
            f" {sorted(map(str, wanted))}"
        )
    shape = sharding.shard_shape(aval.shape)
    for a in arrays:
        if a.aval.dtype != aval.dtype:
            raise ValueError(f"a part has dtype {a.aval.dtype}, but the array has {aval.dtype}")
        if a.aval.shape != shape:
            raise ValueError(
                f"{sharding} gives parts of shape {shape} to an array of shape {aval.shape}; got one of shape {a.aval.shape}"
            )
    position = {d: i for i, d in enumerate(devices)}
    return [arrays[position[d]] for d in wanted]


def from_parts(aval: ShapedArray, sharding, parts: Sequence[Any], committed: bool = True):
    """An array made of its parts, one per addressable device in the sharding's order."""
    parts = check_and_rearrange(parts, sharding, aval)
    return make_array(aval, sharding, parts, committed)


# ---- placement inside programs ----

device_put_p = Primitive("device_put")
device_put_p.abstract_eval = lambda aval, where, src: aval


@device_put_p.def_impl
def _impl(x, *, where, src):
    return device_put(x, where)


@lowering_rules.rule(device_put_p)
def _lower(ctx, x, *, where, src):
    several = where is not None and where.num_devices > 1
    return ctx.with_sharding(x, where._to_xla_hlo_sharding(x.type.rank)) if several else x


sharding_constraint_p = Primitive("sharding_constraint")
sharding_constraint_p.abstract_eval = lambda aval, sharding: aval


@sharding_constraint_p.def_impl
def _constrain(x, *, sharding):
    return to_sharding(x, sharding)


@decompositions.rule(device_put_p, sharding_constraint_p, kind="identity: one device")
def _on_one_device(x, **where):
    """What NumPy and TensorFlow do: values are as they were, and there is no other place."""
    return x


@lowering_rules.rule(sharding_constraint_p)
def _lower_constraint(ctx, x, *, sharding):
    return ctx.with_sharding(x, sharding._to_xla_hlo_sharding(x.type.rank))


def _with_dimension(where, position: int):
    """The placement of a batch of what `where` places: its new dimension is not split."""
    if isinstance(where, NamedSharding):
        spec = list(where.spec)
        if position < len(spec):
            return where.update(spec=PartitionSpec(*spec[:position], None, *spec[position:]))
    return where


@batch_rules.rule(device_put_p)
def _batch(axis, args, dims, *, where, src):
    where, src = (_with_dimension(s, dims[0]) for s in (where, src))
    return device_put_p.bind(args[0], where=where, src=src), dims[0]


@batch_rules.rule(sharding_constraint_p)
def _batch_constraint(axis, args, dims, *, sharding):
    return sharding_constraint_p.bind(args[0], sharding=_with_dimension(sharding, dims[0])), dims[0]


@jvp_rules.rule(device_put_p, kind="linear")
def _jvp(primals, tangents, *, where, src):
    (x,), (t,) = primals, tangents
    if src is None:  # where the cotangent goes back to
        src = getattr(x, "sharding", None)
    placed = device_put_p.bind(x, where=where, src=src)
    return placed, Zero(t.aval) if type(t) is Zero else device_put_p.bind(t, where=where, src=src)


@transpose_rules.rule(device_put_p, kind="linear")
def _transpose(ct, x, *, where, src):
    return [device_put_p.bind(ct, where=src, src=where)]


linear(sharding_constraint_p, lambda ct, x, *, sharding: [sharding_constraint_p.bind(ct, sharding=sharding)])


# ---- where programs run ----


class Placement(NamedTuple):
    """Where a program runs: its devices, and the shardings of arguments and results (None: the compiler's choice).

    With one device, `arguments` and `results` are not looked at.
    """

    devices: tuple
    committed: bool
    arguments: tuple = ()
    results: tuple = ()


def choose_placement(
    args: Sequence[Any], arguments: Sequence[Any] | None, results: Sequence[Any] | None, device: Any = None
) -> Placement:
    """Where to run: as shardings say, else where committed arguments are, else on the default device.

    Raises:
      ValueError: committed arguments (or shardings) are on different devices.
    """
    found: tuple | None = None
    origin = ""
    several = False
    wanted = list(arguments) if arguments is not None else [None] * len(args)
    for i, (x, s) in enumerate(zip(args, wanted, strict=True)):
        if s is None and type(x) is ArrayImpl and is_committed(x):
            s = wanted[i] = sharding_of(x)
        if s is None:
            continue
        single = type(s) is SingleDeviceSharding
        assignment = (device_of(s),) if single else s._device_assignment
        several = several or not single
        if found is None:
            found, origin = assignment, f"argument {i}"
        elif found != assignment:
            raise _different_devices(
                f"{origin} is on {_names(found)}, argument {i}, of shape {getattr(x, 'shape', ())}, on {_names(assignment)}"
            )
    for s in results or ():
        if s is not None:
            assignment = s._device_assignment
            several = several or type(s) is not SingleDeviceSharding
            if found is None:
                found = assignment
            elif found != assignment:
                raise _different_devices(f"arguments are on {_names(found)}, out_shardings name {_names(assignment)}")
    if device is not None:
        if found is not None and found != (device,):
            raise _different_devices(f"it is to run on {device}, {origin or 'its data'} is on {_names(found)}")
        return Placement((device,), True)
    if found is None:
        return Placement((clients.default_device(),), False)
    return Placement(found, True, tuple(wanted), tuple(results or ())) if several else Placement(found, True)


def _different_devices(what: str) -> Exception:
    # Keras names these words where it warns of such programs.
    return ValueError(f"Received incompatible devices for jitted computation: {what}")


def _names(devices) -> str:
    return f"{devices[0].platform.upper()} device ids {[d.id for d in devices]}"
