"""Placement of values on devices, and the devices of programs."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bedrax import pytree
from bedrax.core import avals, dead_code, dtypes, executors, source, tracing
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray
from bedrax.core.caches import remembered
from bedrax.core.codes import coded
from bedrax.core.facts import cached
from bedrax.core.ir import Jaxpr
from bedrax.core.jitting import jit
from bedrax.core.passes import programs_in, speaking
from bedrax.core.tables import device_rules, programs
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives.placement import Memory, anywhere, moved, reshard_p
from bedrax.numpy_backend.executor import to_numpy
from bedrax.numpy_backend.host_array import HostArray
from bedrax.parallel import AxisType, Mesh, PartitionSpec, meshes
from bedrax.parallel.meshes import in_shape_of
from bedrax.parallel.primitives import OnMesh, shard_map_p
from bedrax.parallel.specs import UNCONSTRAINED, axes_of
from bedrax.pytree import PyTreeDef
from bedrax.xla_backend import clients, failures, turns
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.door.arrays import (
    ArrayImpl,
    copied,
    device_of,
    is_committed,
    layout_of,
    make_array,
    parts_of,
    sharding_of,
)
from bedrax.xla_backend.guards import asks_for
from bedrax.xla_backend.host import check_alive, host_value
from bedrax.xla_backend.layout import Format, Layout
from bedrax.xla_backend.sharding import (
    GSPMDSharding,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    is_place,
    make_single_device_sharding,
    on_devices,
    resolve,
)

_batched_device_put = runtime.batched_device_put


def on_current_mesh(x: Any) -> Any:
    """`x`, or a copy on all devices of the mesh that `set_mesh` made current; `x` itself in a function that is traced."""
    mesh = meshes.get_mesh()
    if mesh.empty or type(x) is not ArrayImpl or tracing.current.trace is not tracing.eval_trace:
        return x
    return to_sharding(x, NamedSharding(mesh, _WHOLE))


def put_uncommitted(x: Any, weak_type: bool = False, copy: bool = False) -> Array:
    """A NumPy value on the default device, uncommitted. With `copy`, its memory is always the result's own: on the CPU it
    may be that of `x` otherwise, which a program cannot reuse if the result is donated."""
    return _put_host(x, make_single_device_sharding(clients.default_device()), False, weak_type, copy)


def _put_host(value: np.ndarray, sharding, committed: bool, weak_type: bool = False, copy: bool = False):
    turns.stop_at_the_end()
    value = np.asarray(value)
    dtype = dtypes.canonicalize_dtype(value.dtype)
    if dtype != value.dtype:
        value = value.astype(dtype)
    if value.dtype == dtypes.float0:
        return value  # an array of float0 has no bits, and stays a NumPy array
    aval = placed_type(ShapedArray(value.shape, dtype, weak_type), sharding)
    if type(sharding) is SingleDeviceSharding:
        if copy:
            return runtime.put_copy(aval, sharding, value, device_of(sharding), committed)
        return _batched_device_put(aval, sharding, [value], [device_of(sharding)], committed)
    places, indices = _shards(sharding, value.shape)
    parts = [value[index] for index in indices]
    if sharding.partial and sharding.spec.unreduced:
        first = _first_of_sums(sharding)
        parts = [
            _put_host(part if device in first else np.zeros_like(part), make_single_device_sharding(device), True)
            for device, part in zip(places, parts, strict=True)
        ]
        # One call for all parts would copy one part to all devices, as if they were equal.
        return make_array(aval, sharding, parts, committed)
    return _batched_device_put(aval, sharding, parts, places, committed)


@remembered(256)
def _first_of_sums(sharding: NamedSharding) -> frozenset[Any]:
    """The devices that hold the value where an array is made partial sums; the others hold zeros.

    Raises:
      ValueError: the parts are those of a maximum or minimum.
    """
    spec, mesh = sharding.spec, sharding.mesh
    if spec.unreduced_kind.name != "sum":
        raise ValueError(
            f"{spec}: a value is put on devices as partial sums, not as parts of kind {spec.unreduced_kind.name}; these are"
            " results of operations with out_sharding=, such as jax.lax.reduce_max"
        )
    along = [i for i, name in enumerate(mesh.axis_names) if name in spec.unreduced]
    return frozenset(d for place, d in np.ndenumerate(mesh.devices) if not any(place[i] for i in along))


@remembered(4096)
def _shards(sharding: Any, shape: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
    """The devices of this process that hold parts of an array of `shape`, and the slices of the parts."""
    sharding.shard_shape(shape)  # raises if the shape is not divisible
    found = sharding.addressable_devices_indices_map(shape)
    return list(found), list(found.values())


def to_sharding(x: Any, sharding: Any, committed: bool = True) -> Array:
    """A concrete value as an array with `sharding`."""
    kind = type(x)
    if kind is ArrayImpl:
        return _move(x, sharding, committed)
    if kind is HostArray:
        return _put_host(x._value, sharding, committed, x._weak)
    value, weak = to_numpy(x)
    return _put_host(value, sharding, committed, weak)


def placed_type(aval: ShapedArray, sharding: Any) -> ShapedArray:
    """The type of an array with a sharding."""
    split = sharding.sharding_of_type(aval)
    return aval if split == aval.split else aval.update(sharding=split)


def _move(x, sharding, committed: bool):
    check_alive(x)
    have = sharding_of(x)
    if have != sharding and (have.partial or sharding.partial) and have.assignment == sharding.assignment:
        return _exchanged(x, have, sharding)
    if have == sharding or have.is_equivalent_to(sharding, x.ndim):
        if is_committed(x) == committed and have == sharding:
            return x
        return make_array(placed_type(x.aval, sharding), sharding, parts_of(x), committed)
    sharding.shard_shape(x.shape)
    if type(sharding) is SingleDeviceSharding and type(have) is SingleDeviceSharding:
        moved = copied(x, sharding, always=False)
        return moved if is_committed(moved) == committed else make_array(x.aval, sharding, parts_of(moved), committed)
    return _put_host(host_value(x), sharding, committed, x.aval.weak_type)


def _exchanged(x, have, sharding):
    """An array that is, or becomes, partial sums or a sum: its devices exchange what is needed."""
    if have.is_equivalent_to(sharding, x.ndim):
        return make_array(placed_type(x.aval, sharding), sharding, parts_of(x), True)
    sharding.shard_shape(x.shape)
    return _exchange(sharding)(x)


@remembered(256)
def _exchange(sharding):
    return jit(lambda x: moved(x, sharding), out_shardings=sharding)


def with_layout(x: ArrayLike, layout: Layout) -> Any:
    """An array in a layout; the array itself if it has that layout, or if any serves (`Layout.AUTO`)."""
    if layout is Layout.AUTO or Layout.from_pjrt_layout(x._pjrt_layout) == layout:
        return x
    return _relaid(Format(layout, sharding_of(x)))(x)


@remembered(256)
def _relaid(where: Format):
    return jit(lambda x: x, out_shardings=where)


def reshard(x: Any, to: Any) -> Any:
    """A concrete value with a sharding or device from a program. The result is committed."""
    if _checking.who is not None:
        _check_placed(x, to, _checking.who)
    if type(to) is Format:
        return with_layout(_put_leaf(x, to.sharding, False, None), to.layout)
    if isinstance(to, Memory):
        x = executors.get().asarray(x)
        to = x.sharding.with_memory_kind(to.kind)
    if type(to) is NamedSharding and to.assignment is None:
        to = on_devices(to, x)
    if to is anywhere:
        split = avals.aval_of(x).split
        if split is None:
            return x
        free = meshes.changed_types(x.sharding.mesh, AxisType.Auto, None)  # the type must not hold its sharding
        spec = x.sharding.spec.update(unreduced=set(), reduced=set())
        if x.sharding.spec.unreduced:
            x = _move(x, x.sharding.update(spec=spec), True)
        to = x.sharding.update(mesh=x.sharding.mesh.update(axis_types=free), spec=spec)
    return _put_leaf(x, to, False, None)


def _put_leaf(x: Any, where: Any, donate: bool, may_alias: bool | None, src: Any = None):
    extended = getattr(getattr(x, "aval", None), "dtype", None)
    if isinstance(extended, dtypes.ExtendedDType) and not isinstance(x, tracing.Tracer):
        base = extended.physical_value(x)
        where = None if where is None else _of_base(resolve(where, "device_put", x.aval), x.aval.ndim, base.ndim)
        data = _put_leaf(base, where, donate, may_alias)
        return extended.from_physical(data, x.aval)
    if where is not None:
        where = resolve(where, "device_put", avals.abstractify(x))
    if isinstance(x, tracing.Tracer):
        return x if where is None else reshard_p.bind(x, to=where, src=resolve(src, "src of device_put"))
    if hasattr(x, "__jax_array__"):
        x = x.__jax_array__()
    if tracing.current.trace is not tracing.eval_trace and type(x) is not ArrayImpl and where is None:
        x = executors.get().asarray(x)
    if may_alias is False and isinstance(x, np.ndarray):
        x = np.array(x)  # on the CPU, a buffer may be memory of the NumPy array
    if where is None or where is anywhere:
        if type(x) is ArrayImpl:
            check_alive(x)
            return copy(x) if may_alias is False else x
        out = to_sharding(x, make_single_device_sharding(clients.default_device()), False)
    else:
        if type(where) in (Memory, Format):
            return reshard(x, where)
        where.check_compatible_aval(np.shape(x))
        out = to_sharding(x, where.settled(getattr(x, "sharding", None)))
    if may_alias is False and out is x and type(x) is ArrayImpl:
        out = copy(out)
    if donate and type(x) is ArrayImpl and out is not x and not x.is_deleted() and not _shares(x, out):
        x.delete()
    return out


def _of_base(place: Any, ndim: int, base_ndim: int) -> Any:
    """The place of the base of an array of keys, from that of the keys. The axes of the words are not split."""
    if type(place) is Format:
        return Format(place.layout.over(base_ndim), _of_base(place.sharding, ndim, base_ndim))
    if type(place) is GSPMDSharding:
        for axis in range(ndim, base_ndim):
            place = place.with_dimension(axis, ())
    return place


def _shares(x, y) -> bool:
    """Whether two arrays use the same buffer of one device."""
    try:
        return x.unsafe_buffer_pointer() == y.unsafe_buffer_pointer()
    except Exception:  # an array of several shards has no single pointer
        return {a.unsafe_buffer_pointer() for a in parts_of(x)} == {a.unsafe_buffer_pointer() for a in parts_of(y)}


@asks_for("explicit_device_put")
def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """Place arrays on a device, or shard them over several.

    Args:
      x: an array, or a pytree of arrays, NumPy arrays and scalars.
      device: a `Device`, a `Sharding` or a `PartitionSpec` (of the current mesh), or a pytree prefix of `x` with
        them. None places leaves that are on no device on the default device.
      src: the present placement of `x`, also a prefix. The cotangent is placed there. Needed only in traced functions.
      donate: whether `x` may be deleted, and its memory used again (also a pytree prefix).
      may_alias: False copies; with None or True, the result may be `x` itself.

    Returns:
      A pytree like `x`. Arrays on a given device are committed to it.

    Raises:
      ValueError: `device` is neither a device nor a sharding, or a shape is not divisible.
      TypeError: a leaf is not an array.

    Examples:

      >>> x = jax.device_put(np.arange(3), jax.devices()[0])
      >>> x
      Array([0, 1, 2], dtype=int32)
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


def per_leaf(prefix: Any, tree: PyTreeDef, what: str) -> list[Any]:
    """One sharding or device, or one option, per leaf of a structure, from a pytree prefix of it."""
    if is_place(prefix):
        return [prefix] * tree.num_leaves
    full = pytree.skeleton(tree)
    try:
        return pytree.tree_broadcast_leaves(prefix, full, is_place)
    except ValueError as error:
        raise ValueError(f"{what} is neither one value nor a pytree prefix of the values: {error}") from None


def resolved_leaves(
    prefix: Any, tree: Any, what: str, types: Sequence[Any], auto: bool = False
) -> tuple[Any, ...] | None:
    """A placement (or None) per leaf of a structure, from a pytree prefix; None if no leaf has one.

    Args:
      types: the types of the leaves. A token has no place.
      auto: whether a layout can be `Layout.AUTO`.
    """
    if prefix is None:
        return None
    places = zip(per_leaf(prefix, tree, what), types, strict=True)
    return tuple([None if aval is avals.abstract_token else resolve(s, what, aval, auto) for s, aval in places])


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Constrain the shardings of the leaves of `x`; inside `jit`, the partitioner applies the constraint.

    Args:
      x: a pytree of arrays.
      shardings: a `Sharding` or `PartitionSpec` (of the current mesh), or a pytree prefix of `x` with them.

    Returns:
      A pytree like `x`.

    Raises:
      AssertionError: all axes of the mesh are explicit, and the type of a leaf has another sharding.
      ValueError: some axes of the mesh are explicit and some automatic, and a constraint names an explicit one.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> where = jax.NamedSharding(mesh, jax.P("i"))
      >>> jax.jit(lambda x: lax.with_sharding_constraint(2 * x, where))(jnp.arange(3))
      Array([0, 2, 4], dtype=int32)
    """
    leaves, tree = pytree.tree_flatten(x)
    types = [avals.abstractify(leaf) for leaf in leaves]
    wanted = resolved_leaves(shardings, tree, "with_sharding_constraint", types)
    if wanted is None:
        return x
    wanted = [_constraint(getattr(aval, "split", None), s, aval) for aval, s in zip(types, wanted, strict=True)]
    for leaf, s in zip(leaves, wanted, strict=True):
        have = committed_sharding(leaf)
        there = s.sharding if type(s) is Format else s
        if there is not None and have is not None and have.device_set != there.device_set:
            raise _different_devices(
                f"an array on {_names(have.assignment)} is constrained to {_names(there.assignment)}; move it with device_put"
            )
    # A cotangent has the same constraint.
    placed = [x if s is None else reshard_p.bind(x, to=s, src=s) for x, s in zip(leaves, wanted)]
    return pytree.tree_unflatten(tree, placed)


def _constraint(split: Any, s: Any, aval: Any) -> Any:
    """A constraint with the split of a type over explicit axes.

    Over explicit axes, a constraint moves no data. It asserts the sharding if all axes are explicit. If some are, it is
    about the other axes.
    """
    if not isinstance(s, NamedSharding) or not s.mesh.explicit_axes:
        return s
    if not s.mesh.are_all_axes_explicit:
        return _over_automatic_axes(split, s)
    if split is None and meshes.get_abstract_mesh().empty:
        return s  # types without a current mesh hold no splits
    spec = _WHOLE if split is None else split.spec
    have, wanted = ((*spec, *(None,) * (aval.ndim - len(spec))) for spec in (spec, s.spec))
    if any(w is not UNCONSTRAINED and axes_of(h) != axes_of(w) for h, w in zip(have, wanted, strict=True)):
        raise AssertionError(
            f"with_sharding_constraint over explicit axes: an array is split as {spec}, not as {s.spec}; use"
            " jax.sharding.reshard to have it moved"
        )
    return s


def _over_automatic_axes(split: Any, s: NamedSharding) -> NamedSharding:
    explicit = frozenset(s.mesh.explicit_axes)
    named = sorted({a for entry in s.spec for a in axes_of(entry)} & explicit)
    if named:
        raise ValueError(
            f"with_sharding_constraint: {s.spec} names the explicit axes {named} of a mesh; a constraint is about its"
            f" automatic axes {tuple(s.mesh.auto_axes)}. Use jax.sharding.reshard to change the split over explicit axes"
        )
    if split is None:
        return s
    entries = []
    for have, wanted in itertools.zip_longest(split.spec, s.spec):
        kept = tuple(a for a in axes_of(have) if a in explicit)
        entries.append((*kept, *axes_of(wanted)) if kept else wanted)
    return s.update(spec=split.spec.update(entries))


@asks_for("explicit_device_get")
def device_get(x: Any) -> Any:
    """Copy to the host: a pytree of `numpy.ndarray`. Python scalars and arrays of keys stay as they are.

    The copies of all leaves start before the first is awaited.

    Examples:

      >>> jax.device_get({"x": jnp.arange(3)})
      {'x': array([0, 1, 2], dtype=int32)}
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
    if not hasattr(x, "__array__") or isinstance(getattr(x, "dtype", None), dtypes.ExtendedDType):
        return x
    return np.asarray(x)


def block_until_ready(x: Any) -> Any:
    """Wait until every array in the pytree `x` is computed. Returns `x`.

    Examples:

      >>> jax.block_until_ready({"x": jnp.ones(2)})
      {'x': Array([1., 1.], dtype=float32)}
    """
    leaves = [v for v in pytree.tree_leaves(x) if hasattr(v, "block_until_ready")]
    arrays = [v for v in leaves if type(v) is ArrayImpl]
    if len(arrays) > 1:
        try:
            runtime.batched_block_until_ready(arrays)
        except runtime.JaxRuntimeError as error:
            failures.add_notes(error)
            raise
    elif arrays:
        arrays[0].block_until_ready()
    for v in leaves:
        if type(v) is not ArrayImpl:
            v.block_until_ready()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Start a copy of every array in the pytree `x` to the host. Returns `x`.

    Examples:

      >>> x = jax.copy_to_host_async(jnp.arange(3))
    """
    for v in pytree.tree_leaves(x):
        if hasattr(v, "copy_to_host_async"):
            v.copy_to_host_async()
    return x


def copy(x: Array) -> Array:
    """A new array with the same value and sharding, in its own memory."""
    return copied(x, sharding_of(x), always=True)


def make_array_from_callback(
    shape: Sequence[int], sharding: Any, data_callback: Callable[..., Any], dtype: Any = None
) -> Array:
    """An array whose shards a function computes.

    Args:
      shape: the shape of the global array.
      sharding: the sharding of the global array, or a `Format` with it and a layout.
      data_callback: a function from the slices of a device to the shard of that device, which may be an array of keys.
      dtype: the dtype of the array; required if this process has none of the devices.

    Examples:

      >>> where = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
      >>> host = np.arange(4)
      >>> jax.make_array_from_callback((4,), where, lambda index: host[index])
      Array([0, 1, 2, 3], dtype=int32)
    """
    shape = tuple(shape)
    dtype = None if dtype is None else dtypes.explicit_dtype(dtype, "make_array_from_callback")
    where, sharding = _place_of_parts(sharding, "make_array_from_callback", shape)
    parts, cache = [], {}
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        key = tuple((s.start, s.stop) for s in index)
        if key not in cache:
            part = data_callback(index)
            cache[key] = part if _extended_dtype(part) is not None else np.asarray(part, dtype)
        parts.append(_put_leaf(cache[key], make_single_device_sharding(device), False, None))
    if not parts and dtype is None:
        raise ValueError("make_array_from_callback: give dtype, as this process has no device of the sharding")
    made = make_array_from_single_device_arrays(shape, sharding, parts, dtype=dtype)
    return made if where is sharding else device_put(made, where)


def _place_of_parts(where: Any, what: str, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The place of an array that is made of its shards, and the sharding in it."""
    place = resolve(where, f"sharding of {what}", avals.ShapeDtypeStruct(shape, np.bool_))
    sharding = place.sharding if type(place) is Format else place
    if not isinstance(sharding, Sharding):
        raise TypeError(
            f"{what}: {where!r} has no sharding over devices; give a sharding, or a Format(layout, sharding) to"
            " make_array_from_callback"
        )
    return place, sharding


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Array:
    """An array from its shards, one on each addressable device of `sharding`.

    Args:
      shape: the shape of the global array.
      sharding: the sharding of the global array.
      arrays: a list or tuple of the shards, each an array on its device.
      dtype: the dtype of the array; required if there are no shards here.

    Raises:
      TypeError: `arrays` is not a list or tuple of arrays.
      ValueError: shards are missing, traced, on other devices, or have another shape than in the sharding.

    Examples:

      >>> where = jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i"))
      >>> part = jax.device_put(jnp.arange(4), jax.devices()[0])
      >>> jax.make_array_from_single_device_arrays((4,), where, [part])
      Array([0, 1, 2, 3], dtype=int32)
    """
    if isinstance(arrays, ArrayImpl) or not isinstance(arrays, Sequence):
        raise TypeError(
            f"make_array_from_single_device_arrays: arrays is a list or tuple of arrays, got {type(arrays)}"
        )
    if any(isinstance(a, tracing.Tracer) for a in arrays):
        raise ValueError("make_array_from_single_device_arrays: traced values are on no device; call it outside of jit")
    if arrays and (extended := _extended_dtype(arrays[0])) is not None and dtype in (None, extended):
        return _of_bases(tuple(shape), sharding, arrays, extended)
    for i, x in enumerate(arrays):
        if type(x) is not ArrayImpl:
            raise TypeError(
                f"make_array_from_single_device_arrays: arrays[{i}] is of type {type(x)}, which is on no device; put it on"
                " one first, with device_put(x, device)"
            )
    shape = tuple(shape)
    where, sharding = _place_of_parts(sharding, "make_array_from_single_device_arrays", shape)
    if where is not sharding:
        raise ValueError(
            f"make_array_from_single_device_arrays takes a sharding, got {where}: the layout is that of the arrays"
        )
    if dtype is None:
        if not arrays:
            raise ValueError("make_array_from_single_device_arrays: give dtype when there are no local arrays")
        dtype = arrays[0].dtype
    aval = ShapedArray(shape, dtypes.explicit_dtype(dtype, "make_array_from_single_device_arrays"))
    if type(sharding) is SingleDeviceSharding and len(arrays) == 1:
        if arrays[0].shape != shape:
            raise ValueError(f"Expected a part of shape {shape}, got {arrays[0].shape}")
    return from_parts(aval, sharding, arrays)


def _extended_dtype(x: Any) -> Any:
    """The dtype of an array whose elements are not numbers, such as keys; None for other values."""
    dtype = getattr(getattr(x, "aval", None), "dtype", None)
    return dtype if isinstance(dtype, dtypes.ExtendedDType) and not isinstance(x, tracing.Tracer) else None


def _of_bases(shape: tuple[int, ...], sharding: Any, arrays: Sequence[Any], dtype: Any) -> Any:
    """An array of an extended dtype from its shards. The trailing axes of the base are whole on each device."""
    for i, x in enumerate(arrays):
        if _extended_dtype(x) != dtype:
            raise ValueError(f"a part has dtype {dtype}, and arrays[{i}] is of {avals.aval_of(x).str_short()}")
    sharding = resolve(sharding, "sharding of make_array_from_single_device_arrays", ShapedArray(shape, dtype))
    bases = [dtype.physical_value(x) for x in arrays]
    inner = bases[0].shape[len(arrays[0].shape) :]
    base = make_array_from_single_device_arrays((*shape, *inner), sharding, bases)
    return dtype.from_physical(base, ShapedArray(shape, dtype))


@asks_for("explicit_device_put")
def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Stack pytrees along a new leading axis that is sharded over `devices`, one pytree per device."""
    if len(shards) != len(devices):
        raise ValueError(f"device_put_sharded needs one part per device, got {len(shards)} for {len(devices)} devices")
    array = np.empty(len(devices), object)
    array[:] = list(devices)
    mesh = Mesh(array, ("_device_put_sharded",))
    where = NamedSharding(mesh, PartitionSpec("_device_put_sharded"))
    return pytree.tree_map(lambda *parts: to_sharding(np.stack([np.asarray(p) for p in parts]), where), *shards)


def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:
    """A copy of the pytree `x` per device, along a new leading axis."""
    return device_put_sharded([x] * len(devices), devices)


def check_and_rearrange(arrays: Sequence[Any], sharding: Any, aval: ShapedArray) -> list[Any]:
    """Check the shards of an array, and order them as the sharding does.

    Raises:
      ValueError: shards are missing, on other devices or several, or have the wrong shape or dtype.
    """
    wanted = sharding._addressable_device_assignment
    places = [sharding_of(a)._device_assignment for a in arrays]
    for a, place in zip(arrays, places, strict=True):
        if len(place) != 1:
            raise ValueError(f"a part is on one device; got one of shape {a.aval.shape}, placed by {sharding_of(a)}")
    devices = [device for (device,) in places]
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


def from_parts(aval: ShapedArray, sharding: Any, parts: Sequence[Any], committed: bool = True) -> Array:
    """An array from its shards, one per addressable device in the order of the sharding."""
    parts = check_and_rearrange(parts, sharding, aval)
    aval = placed_type(aval, sharding)
    return make_array(aval, sharding, parts, committed)


def regrouped(x: Any, shape: tuple[int, ...], old: NamedSharding, new: NamedSharding) -> Array:
    """The blocks of `x` on this process as blocks of an array with the sharding `new`, in the same memory.

    Args:
      old: the sharding of `x`, to which it is moved if it has another one. It has the same devices of this process.
    """
    aval = avals.aval_of(x)
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        base = aval.dtype.physical_value(x)
        blocks = regrouped(base, (*shape, *base.shape[aval.ndim :]), old, new)
        return aval.dtype.from_physical(blocks, aval.update(shape=shape, sharding=None))
    if old.is_fully_addressable and not getattr(x, "is_fully_addressable", True):
        if x.shape == shape and x.sharding.is_equivalent_to(new, x.ndim):
            return x
        raise ValueError(
            f"an array of shape {x.shape} over devices of several processes was given where each process gives its own"
            f" part: its sharding is {x.sharding}. Pass an array of the blocks of this process"
        )
    x = to_sharding(x, old)
    parts = {s.device: s.data for s in x.addressable_shards}
    ordered = [parts[d] for d in new.assignment if d in parts]
    return from_parts(x.aval.update(shape=shape, sharding=None), new, ordered)


# The primitive under both of upstream's names; see `bedrax.lax.primitives.placement`.
device_put_p = sharding_constraint_p = reshard_p


# ---- devices of programs ----


class Requested(NamedTuple):
    """The shardings and device passed to `jit`, one sharding (or None) per flat argument and result.

    `by` names the parameter that places the results, for messages.
    """

    arguments: tuple[Any, ...] | None = None
    results: tuple[Any, ...] | None = None
    device: Any = None
    by: str = "out_shardings"


NOTHING_REQUESTED = Requested()


def requested_by(prim: tracing.Primitive, params: dict[str, Any]) -> Requested:
    """The shardings in the params of an operation that is evaluated eagerly. `shard_map` has those of its results.

    The params decide if all axes of a mesh of devices are manual.
    """
    if prim is not shard_map_p or not isinstance(params["mesh"], Mesh):
        return NOTHING_REQUESTED
    mesh = params["mesh"]
    if set(params["manual"]) != set(mesh.axis_names) or not all(
        isinstance(s, PartitionSpec) for s in params["out_specs"]
    ):
        return NOTHING_REQUESTED
    return Requested(
        results=tuple(NamedSharding(mesh, spec) for spec in params["out_specs"]), by="the mesh of shard_map"
    )


class Placement(NamedTuple):
    """Devices and shardings of a program.

    Attributes:
      devices: the devices in order.
      committed: whether the results are committed to them.
      arguments, results: their shardings (None: the compiler's choice).
      several: whether the shardings matter: there are several devices, or a sharding is not over a single device.
      mesh: the mesh of the results' shardings, or None.
      layouts: the layouts of the arguments and of the results (None: row-major), if any is not row-major.
    """

    devices: tuple[Any, ...]
    committed: bool
    arguments: tuple[Any, ...] = ()
    results: tuple[Any, ...] = ()
    several: bool = False
    mesh: Any = None
    layouts: tuple[Any, ...] | None = None


class Claim(NamedTuple):
    """A source of a program's devices."""

    place: Any
    text: Callable[[], str]  # the name of the source, for messages


def committed_sharding(x: Any) -> Any:
    """The sharding of a committed array (of a key array, that of its base array); None for any other value."""
    if type(x) is ArrayImpl:
        return sharding_of(x) if is_committed(x) else None
    if isinstance(x, avals.ShapeDtypeStruct):
        return resolve(x.sharding, "sharding of a ShapeDtypeStruct", x, auto=True)
    extended = getattr(getattr(x, "aval", None), "dtype", None)
    if isinstance(extended, dtypes.ExtendedDType) and not isinstance(x, tracing.Tracer):
        return committed_sharding(extended.physical_value(x))
    return None


@cached
def claims_inside(program: Jaxpr) -> tuple[Claim, ...]:
    """The devices of operations and captured arrays of a program: the first claim for each assignment.

    Unused operations, which are not compiled, have none.
    """
    found: dict[Any, Any] = {}

    def claim(place, text):
        if place.assignment is not None:
            found.setdefault(place.assignment, Claim(place, text))

    for c in program.consts:
        s = committed_sharding(c)
        if s is not None:
            claim(s, lambda c=c: f"a captured array of shape {c.shape}")
    placing = speaking(program, device_rules, programs)
    if placing:
        placing = speaking(dead_code.live(program), device_rules, programs)
    for eqn in placing:
        for place in device_rules[eqn.primitive](eqn.params):
            claim(place, lambda eqn=eqn: f"'{eqn.primitive}'{_line(eqn)}")
        for inner in programs_in(eqn):
            for c in claims_inside(inner):
                claim(*c)
    return tuple(found.values())


@cached
def meshes_inside(program: Jaxpr) -> frozenset[Any]:
    """The axes, with sizes, of the meshes of shardings and types in a program. Includes None for a sharding without a
    mesh."""
    found: set[Any] = set()
    for eqn in program.eqns:
        for place in device_rules[eqn.primitive](eqn.params):
            found |= _axes_of_place(place)
        for v in eqn.outvars:
            if getattr(v.aval, "split", None) is not None:
                found.add(v.aval.split.mesh.shape_tuple)
        for inner in programs_in(eqn):
            found |= meshes_inside(inner)
    return frozenset(found)


def _axes_of_place(place: Any) -> set:
    place = place.sharding if type(place) is Format else place
    if place is None or place is anywhere or isinstance(place, (Memory, SingleDeviceSharding)):
        return set()
    return {place.mesh.shape_tuple if isinstance(place, NamedSharding | OnMesh) else None}


def partitioned_axes(program: Jaxpr, where: Placement) -> tuple[Any, ...] | None:
    """The axes of the mesh that all shardings of a program use, or None if they do not use a single mesh."""
    found = set(meshes_inside(program))
    for place in (*where.arguments, *where.results):
        found |= _axes_of_place(place)
    if where.mesh is not None:
        found.add(where.mesh.shape_tuple)
    return next(iter(found)) if len(found) == 1 else None


def _line(eqn) -> str:
    if not eqn.source_info:
        return " inside"
    file, line, *_ = source.position_of(eqn.source_info[:2])
    return f" at {file}:{line}"


def claims(
    program: Jaxpr, args: Sequence[Any], requested: Requested
) -> tuple[list[Claim], tuple[Any, ...], tuple[Any, ...]]:
    """All claims on the devices of a call of a program, and the shardings of its arguments and results.

    Args:
      args: the flat arguments, values or `ShapeDtypeStruct`s.
    """
    found = []
    arguments = list(requested.arguments or (None,) * len(args))
    results = tuple(requested.results or (None,) * len(program.outvars))
    for i, x in enumerate(args):
        place = arguments[i]
        if place is None:
            place = arguments[i] = committed_sharding(x)
        else:
            _check_placed(x, place, lambda i=i: argument_name(program, i))
            if type(place) is Format and place.sharding is None:
                place = arguments[i] = Format(place.layout, committed_sharding(x))
        if place is not None:
            found.append(Claim(place, lambda i=i: argument_name(program, i)))
    found += [Claim(place, lambda: requested.by) for place in results if place is not None]
    if requested.device is not None:
        found.append(Claim(make_single_device_sharding(requested.device), lambda: "device (or backend) of jit"))
    found += claims_inside(program)
    return found, tuple(arguments), results


def _check_placed(x: Any, place: Any, who: Callable[[], str]) -> None:
    """Raise ValueError if a committed argument has another placement than its `in_shardings`. No data moves implicitly.

    Args:
      who: returns the name of the argument, for messages.
    """
    have = committed_sharding(x)
    if have is None:
        return
    aval = avals.abstractify(x)
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        have = x.sharding  # the sharding of the keys, not of their words
    layout, place = (place.layout, place.sharding) if type(place) is Format else (None, place)
    wanted = None if place is None else place.assignment
    if wanted is not None and have.device_set != set(wanted):
        raise _different_devices(
            f"{who()} is on {_names(have.assignment)}, its in_shardings on {_names(wanted)}; put it there with"
            " device_put, or leave its in_shardings out"
        )
    if wanted is not None and not have.is_equivalent_to(place.settled(have), len(aval.shape)):
        found, expected = texts_of_places(have, place)
        raise ValueError(
            f"{who()} is placed by {found}, its in_shardings say {expected}; put it there with device_put(x, sharding), or"
            " leave its in_shardings out"
        )
    if layout is not None and type(x) is ArrayImpl:
        check_alive(x)
        found = Layout.from_pjrt_layout(x._pjrt_layout)
        if layout is Layout.AUTO:
            raise ValueError(
                f"{who()} is committed to the layout {found}, its in_shardings say Layout.AUTO; lower with a"
                " jax.ShapeDtypeStruct, and put the array with device_put to the formats in Compiled.input_formats"
            )
        if found != layout:
            raise ValueError(
                f"{who()} has the layout {found}, its in_shardings say {layout}; give it that layout with device_put(x,"
                " format), or leave its in_shardings out"
            )


class _Checking(threading.local):
    """Whether `reshard` in this thread places arguments of `jit`, and the name of the argument."""

    who: Callable[[], str] | None = None


_checking = _Checking()


def bind_argument(x: Any, place: Any, who: Callable[[], str]) -> Any:
    """An argument of `jit` under a trace, placed as in its `in_shardings`.

    Raises:
      ValueError: `x` is concrete under the trace (`grad` and `vmap` of `jit`), and committed to another placement.
    """
    saved, _checking.who = _checking.who, who
    try:
        return reshard_p.bind(x, to=place, src=None)
    finally:
        _checking.who = saved


def argument_name(program: Jaxpr, i: int) -> str:
    """The name of an argument, for messages."""
    names = (program.debug_info and program.debug_info.arg_names) or ()
    called = f" ({names[i]})" if i < len(names) else ""
    return f"argument {i}{called}, of shape {program.invars[i].aval.shape}"


class WithoutDevices(ValueError):
    """All shardings are over abstract meshes."""


def choose_placement(program: Jaxpr, args: Sequence[Any], requested: Requested = NOTHING_REQUESTED) -> Placement:
    """The placement of a program, from shardings, committed arguments, captured arrays, and the program itself.

    Raises:
      ValueError: they differ; the message names two of them and their devices. `WithoutDevices`: none has devices.
    """
    found, arguments, results = claims(program, args, requested)
    first, several, mesh, abstract = None, False, None, None
    for claim in found:
        assignment = claim.place.assignment
        if assignment is None:
            abstract = claim
            continue
        if first is None:
            first = claim
        elif first.place.assignment != assignment:
            raise _disagreement(first, claim)
        sharding = claim.place.sharding if type(claim.place) is Format else claim.place
        if not isinstance(sharding, SingleDeviceSharding) or sharding.memory_kind not in (None, "device"):
            several = True
            mesh = mesh or getattr(sharding, "mesh", None)
    layouts = _layouts(args, arguments, results)
    if first is None and abstract is None and not meshes.get_mesh().empty:
        # By default, all devices of the mesh that `set_mesh` made current compute.
        mesh = meshes.get_mesh()
        first, several = Claim(NamedSharding(mesh, _WHOLE), lambda: "the mesh of set_mesh"), True
    if mesh is not None and mesh.explicit_axes:
        # `shard_map` has the sharding of its results in its params and not in its type. Types do not have it either if
        # axes are automatic around a part in which they are explicit.
        around = meshes.get_abstract_mesh()
        if around.shape_tuple == mesh.shape_tuple:
            mesh = Mesh(mesh.devices, mesh.axis_names, axis_types=around.axis_types)
        typed = mesh.are_all_axes_explicit and None not in meshes_inside(program)
        whole = NamedSharding(mesh, _WHOLE) if typed else None  # of the types without a split
        results = tuple(
            [_as_typed(place, v.aval, mesh, whole) for place, v in zip(results, program.outvars, strict=True)]
        )
    if layouts is not None:
        arguments, results = (
            [p.sharding if type(p) is Format else p for p in places] for places in (arguments, results)
        )
    devices = (clients.default_device(),) if first is None else first.place.assignment
    count = len(devices) if abstract is None else getattr(abstract.place, "num_devices", len(devices))
    if abstract is not None and count != len(devices):
        raise WithoutDevices(
            f"{abstract.text()} is split over an AbstractMesh of {count} devices, which does not say"
            f" what they are, and the program is for {len(devices)}: give a Mesh; for programs that are only read,"
            " jit(f).trace(...).lower(lowering_platforms=...)"
        )
    if several:
        return Placement(devices, True, tuple(arguments), tuple(results), True, mesh, layouts)
    return Placement(devices, first is not None, layouts=layouts)


_WHOLE = PartitionSpec()


def _as_typed(place: Any, aval: Any, mesh: Any, otherwise: Any) -> Any:
    """The sharding of a result: the given one, or the one in its type."""
    if place is not None or not aval.is_array:
        return place
    if aval.split is None:
        return None if otherwise is None else otherwise.full(len(aval.shape))
    mesh = in_shape_of(aval.split.mesh, mesh)
    return NamedSharding(mesh, aval.split.spec) if mesh.are_all_axes_explicit else None  # the compiler's, see `compile`


def _layouts(args: Sequence[Any], arguments: tuple, results: tuple) -> tuple | None:
    """The layouts of arguments and results that are not row-major, or None if all are."""
    if ArrayImpl not in map(type, args) and Format not in map(type, (*arguments, *results)):
        return None
    found = ([None] * len(arguments), [None] * len(results))
    for layouts, places in zip(found, (arguments, results), strict=True):
        for i, place in enumerate(places):
            if type(place) is Format:
                layouts[i] = place.layout
    for i, x in enumerate(args):
        if type(x) is ArrayImpl and found[0][i] is None:
            have = layout_of(x)
            found[0][i] = None if have is None else Layout.from_pjrt_layout(have)
    return (tuple(found[0]), tuple(found[1])) if any(any(part) for part in found) else None


def device_count(program: Jaxpr, requested: Requested) -> int:
    """Number of devices of a program, independent of the actual devices. Used by `export` and by `lower` for reading.

    Raises:
      ValueError: two claims differ.
    """
    found = claims(program, (None,) * len(program.invars), requested)[0]
    counts = {c.place.num_devices: c for c in found if getattr(c.place, "num_devices", 1) > 1}
    if len(counts) > 1:
        (m, a), (n, b) = list(counts.items())[:2]
        raise ValueError(f"{a.text()} is placed on {m} devices, {b.text()} on {n}; use one mesh for both")
    return next(iter(counts), 1)


def _disagreement(one: Claim, other: Claim) -> Exception:
    (a, b) = (c.place.assignment for c in (one, other))
    advice = (
        "the same devices in another order: use one mesh for both"
        if set(a) == set(b)
        else ("put one of them where the other is, with device_put")
    )
    return _different_devices(f"{one.text()} is on {_names(a)}, {other.text()} on {_names(b)}; {advice}")


def _different_devices(what: str) -> Exception:
    # Keras quotes these words in its warning about such programs.
    return ValueError(coded("BX-DEVICES-DIFFER", f"Received incompatible devices for jitted computation: {what}"))


def texts_of_places(*places: Any) -> list[str]:
    """Two shardings in an error about their difference, which may be the order of the devices."""
    if len({place.assignment for place in places}) == 1:
        return [str(place) for place in places]
    return [f"{place} over {_names(place.assignment)}" for place in places]


def _names(devices) -> str:
    return f"{devices[0].platform.upper()} device ids {[d.id for d in devices]}"
