"""Shardings of arrays: meshes, partition specs and sharding classes.

The classes derive from jaxlib's C++ classes, so that its dispatch compares and hashes them without calling
Python. The C++ base class `Sharding` receives the methods that all of them share. Each class defines its devices and
its `HloSharding` for a rank.
"""

from __future__ import annotations

import copyreg
import enum
import functools
import math
import types
import weakref
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from bedrax.core import dims, offers
from bedrax.core.avals import AbstractValue, ShapedArray
from bedrax.core.caches import remembered
from bedrax.core.codes import coded
from bedrax.core.tracing import Primitive
from bedrax.lax.primitives.placement import Memory, anywhere
from bedrax.parallel import explicit
from bedrax.parallel.meshes import (
    AbstractMesh,
    AxisType,
    Mesh,
    axis_lengths,
    get_abstract_mesh,
    get_mesh,
    mesh_of_specs,
)
from bedrax.parallel.specs import UNCONSTRAINED, PartitionSpec, axes_of, check_pspec
from bedrax.parallel.sums import tidy
from bedrax.xla_backend import clients
from bedrax.xla_backend.door import runtime
from bedrax.xla_backend.door.arrays import ArrayImpl, sharding_of
from bedrax.xla_backend.layout import Format, Layout
from bedrax.xla_backend.renaming import renamed

Sharding = runtime.Sharding
Index = tuple[slice, ...]


runtime.set_unconstrained_marker(UNCONSTRAINED)


# ---- meshes of our devices ----


def _device_list(mesh: Mesh) -> runtime.DeviceList:
    return runtime.DeviceList(mesh._flat_devices_tuple)


# Attributes that C++ reads from the mesh of a NamedSharding.
Mesh._internal_device_list = functools.cached_property(_device_list)
Mesh._internal_device_list.__set_name__(Mesh, "_internal_device_list")


def _mesh_from_ids(shape, ids, axis_names, axis_types):
    found = {(d.platform, d.id): d for platform in {p for p, _ in ids} for d in clients.devices(platform)}
    if missing := [f"{platform}:{i}" for platform, i in ids if (platform, i) not in found]:
        raise RuntimeError(f"there are no devices {', '.join(missing)} to unpickle this mesh for")
    array = np.empty(len(ids), object)
    array[:] = [found[key] for key in ids]
    return Mesh(array.reshape(shape), axis_names, axis_types)


def _reduce_mesh(mesh: Mesh):
    ids = [(d.platform, d.id) for d in mesh._flat_devices_tuple]
    return _mesh_from_ids, (mesh.devices.shape, ids, mesh.axis_names, mesh.axis_types)


copyreg.pickle(Mesh, _reduce_mesh)  # unpickling finds a device by its number


# ---- shardings ----


def index_map(sharding: Any, shape: tuple[int, ...]) -> dict[Any, Any]:
    """The slices of an array of `shape` that each device holds.

    Raises:
      ValueError: a dimension is not divisible.
    """
    sharding.shard_shape(shape)
    assignment = sharding._device_assignment
    return dict(zip(assignment, indices_of(sharding._to_xla_hlo_sharding(len(shape)), shape, len(assignment))))


def tile_counts(hlo: runtime.HloSharding, ndim: int) -> tuple[int, ...]:
    """Number of shards along each dimension."""
    if hlo.is_replicated() or hlo.is_maximal() or hlo.is_manual() or hlo.is_unreduced():
        return (1,) * ndim
    return tuple(hlo.tile_assignment_dimensions()[:ndim])


def indices_of(hlo: runtime.HloSharding, shape: tuple[int, ...], num_devices: int) -> list[Index]:
    """Per device, the slices of an array of `shape`."""
    counts = tile_counts(hlo, len(shape))
    if all(c == 1 for c in counts):
        return [(slice(None),) * len(shape)] * num_devices
    dims = list(hlo.tile_assignment_dimensions())
    order = np.array(list(hlo.tile_assignment_devices())).reshape(dims)
    sizes = [n // c for n, c in zip(shape, counts)]
    found: list[Any] = [None] * num_devices
    for position, device in np.ndenumerate(order):
        found[device] = tuple(
            slice(None) if c == 1 else slice(p * n, (p + 1) * n) for p, n, c in zip(position, sizes, counts)
        )
    return found


def _shard_shape(self, global_shape) -> tuple[int, ...]:
    """The shape of the shard on one device.

    Raises:
      ValueError: a dimension is not divisible.
    """
    shape = tuple(global_shape)
    counts = tile_counts(self._to_xla_hlo_sharding(len(shape)), len(shape))
    for i, (n, c) in enumerate(zip(shape, counts)):
        if n % c:
            raise ValueError(
                coded(
                    "BX-SHARD",
                    f"{self} splits axis {i} of an array of shape {shape} into {c} parts, but its size {n} is not a multiple"
                    f" of {c}",
                )
            )
    return tuple(n // c for n, c in zip(shape, counts))


def _is_equivalent_to(self, other, ndim: int) -> bool:
    """Whether both place every array of rank `ndim` equally."""
    if self is other or self == other:
        return True
    return (
        isinstance(other, Sharding)
        and self._device_assignment == other._device_assignment
        and self.memory_kind == other.memory_kind
        and _parts(self) == _parts(other)
        and hlo_equal(self._to_xla_hlo_sharding(ndim), other._to_xla_hlo_sharding(ndim))
    )


def _parts(sharding: Any) -> Any:
    """The axes over which arrays with a sharding are parts, and the kind of these."""
    spec = sharding.spec if sharding.partial else None
    return (spec.unreduced, spec.unreduced_kind) if spec is not None and spec.unreduced else None


def hlo_equal(a: runtime.HloSharding, b: runtime.HloSharding) -> bool:
    """Whether two HLO shardings are equivalent."""
    return a == b or (a.is_replicated() and b.is_replicated())


_COMMON = {
    "device_set": property(lambda self: set(self._device_assignment), doc="The devices that hold a part."),
    "num_devices": property(lambda self: len(self._device_assignment)),
    "is_fully_addressable": property(lambda self: self._internal_device_list.is_fully_addressable),
    "has_addressable_devices": property(lambda self: len(self._internal_device_list.addressable_device_list) > 0),
    "addressable_devices": property(lambda self: set(self._internal_device_list.addressable_device_list)),
    "_addressable_device_assignment": property(lambda self: tuple(self._internal_device_list.addressable_device_list)),
    "_device_assignment": property(lambda self: tuple(self._internal_device_list)),
    "memory_kind": property(lambda self: self._memory_kind, doc="Kind of memory that holds the parts."),
    "devices_indices_map": lambda self, global_shape: index_map(self, tuple(global_shape)),
    "addressable_devices_indices_map": lambda self, global_shape: {
        d: i for d, i in index_map(self, tuple(global_shape)).items() if d in self.addressable_devices
    },
    "shard_shape": _shard_shape,
    "is_equivalent_to": _is_equivalent_to,
    "check_compatible_aval": lambda self, aval_shape: None,
    # The protocol of shardings in programs: `bedrax.lax.primitives.placement`.
    "layout": None,
    "assignment": property(lambda self: self._device_assignment),
    "with_dimension": lambda self, position, axes: self,
    "sharding_of_type": lambda self, aval: None,
    "unconstrained": lambda self, ndim: (),
    "settled": lambda self, have: self,
    "partial": False,
    "dual": lambda self: self,
}
for _name, _value in _COMMON.items():
    setattr(Sharding, _name, _value)


_REPLICATED = runtime.HloSharding.replicate()


# The whole array on one device: `SingleDeviceSharding(device, memory_kind=None)`. It is jaxlib's class, because C++
# makes instances by itself. The methods below are assigned to it.
SingleDeviceSharding = runtime.SingleDeviceShardingBase


class _SingleDeviceMethods:
    _repr_html_ = offers.shown("sharding")
    is_fully_replicated = True
    num_devices = 1

    @property
    def is_fully_addressable(self) -> Any:
        return self._device.process_index == self._device.client.process_index()

    @property
    def device_set(self) -> Any:
        return {self._device}

    @property
    def _device_assignment(self) -> Any:
        return (self._device,)

    def _to_xla_hlo_sharding(self, ndim):
        return _REPLICATED

    def devices_indices_map(self, global_shape: Any) -> dict[Any, Any]:
        """The one device and the whole array."""
        return {self._device: (slice(None),) * len(global_shape)}

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """A sharding with the same device and another memory kind."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self._memory_kind})"

    def __hash__(self) -> int:
        return hash((self._device, self._memory_kind))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, SingleDeviceSharding)
            and self._device == other._device
            and self._memory_kind == other._memory_kind
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _single_from_id, (self._device.platform, self._device.id, self._memory_kind)


for _name, _value in vars(_SingleDeviceMethods).items():
    if _name not in ("__module__", "__dict__", "__weakref__", "__doc__", "__qualname__"):
        setattr(SingleDeviceSharding, _name, _value)


def _single_from_id(platform, device_id, memory_kind):
    for device in clients.devices(platform):
        if device.id == device_id:
            return SingleDeviceSharding(device, memory_kind=memory_kind)
    raise RuntimeError(f"there is no device {device_id} on platform {platform} to unpickle this sharding for")


_single: dict[tuple[Any, ...], SingleDeviceSharding] = {}


def make_single_device_sharding(device: Any, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding of a device, one shared instance per device.

    Args:
      device: the device.
      memory_kind: the name of one of its memories. Default: its default memory.

    Examples:

      >>> where = jax.sharding.make_single_device_sharding(jax.devices()[0])
      >>> len(where.device_set)
      1
    """
    found = _single.get((device, memory_kind))
    if found is None:
        found = _single[device, memory_kind] = SingleDeviceSharding(device, memory_kind=memory_kind)
    return found


class Space(enum.Enum):
    """Kinds of memory by purpose: ``device_put(x, jax.memory.Space.Host)``."""

    Device = "device"
    Host = "pinned_host"
    Any = None


memory: Final = types.SimpleNamespace(Space=Space)  # the module `jax.memory`


def is_place(x: Any) -> bool:
    """Whether `x` is a placement of an array (None: no constraint); see `resolve`."""
    return x is None or isinstance(x, (Sharding, PartitionSpec, runtime.Device, Format, Memory, Space))


def resolve(where: Any, what: str, aval: Any = None, auto: bool = False) -> Any:
    """The sharding of a device, a sharding, a `Format` or a `PartitionSpec` of the current mesh.

    Args:
      where: one of these, or None, which is returned as it is.
      what: the name of the argument, for messages.
      aval: the type of the array, if it is known.
      auto: whether the layout can be `Layout.AUTO`: a compiler chooses it.

    Raises:
      ValueError: `where` is none of these, is a spec without a current mesh, or does not divide the shape of `aval`; or
        its layout is `Layout.AUTO`, and nothing is compiled for it.
    """
    if where is None:
        return None
    place = _resolved(where, what)
    split = place.sharding if type(place) is Format else place
    if aval is not None and isinstance(split, NamedSharding):
        check_divides(split, aval.shape, what)
    if type(place) is Format and place.layout is Layout.AUTO:
        if not auto:
            raise ValueError(
                f"{what}: Layout.AUTO leaves the layout to the compiler of a jitted function, got {place}; write a Layout, or"
                " give Layout.AUTO to in_shardings or out_shardings of jit"
            )
    elif aval is not None and type(place) is Format:
        place.layout.check_compatible_aval(aval.shape)
    return place


def check_explicit(place: NamedSharding, what: str) -> None:
    """Raise ValueError if a place of a type names an axis that is not explicit."""
    types = dict(zip(place.mesh.axis_names, place.mesh.axis_types, strict=True))
    for axis in (a for entry in place.spec for a in axes_of(entry)):
        if types[axis] is not AxisType.Explicit:
            raise ValueError(
                f"{what}: {place.spec} names the axis {axis!r}, which is {types[axis].name}. Only Explicit axes are in the types of"
                " arrays. Constrain the compiler over automatic axes, with jax.lax.with_sharding_constraint(x, P(...)); or make"
                f" the axis explicit, with jax.make_mesh or jax.sharding.explicit_axes(f, axes={axis!r})"
            )


class WithoutMesh(ValueError, RuntimeError):
    """A partition spec is used, and no mesh is current."""


def check_divides(place: NamedSharding, shape: tuple[Any, ...], what: str) -> None:
    """Raise ValueError, with axis and sizes, if a dimension of `shape` is not divisible."""
    if len(place.spec) > len(shape):
        raise ValueError(
            f"{what}: {place.spec} has entries for {len(place.spec)} dimensions, but an array of shape {tuple(shape)} has"
            f" rank {len(shape)}; write at most {len(shape)}"
        )
    sizes = dict(place.mesh.shape_tuple)
    for i, (n, entry) in enumerate(zip(shape, place.spec)):
        parts = math.prod(sizes[a] for a in axes_of(entry))
        if dims.is_constant_dim(n) and n % parts:
            over = " and ".join(f"{a!r} (of size {sizes[a]})" for a in axes_of(entry))
            raise ValueError(
                coded(
                    "BX-SHARD",
                    f"{what}: {place.spec} splits axis {i} of an array of shape {shape} into {parts} parts, over the mesh axes"
                    f" {over}, but its size {n} is not a multiple of {parts}. Pad it to {-(-n // parts) * parts}, or write None for"
                    " this axis.",
                )
            )


def _resolved(where: Any, what: str) -> Any:
    if isinstance(where, NamedSharding) and isinstance(where.mesh, AbstractMesh):
        mesh = mesh_of_specs()
        if not mesh.empty and (mesh.shape_tuple, mesh.axis_types) == (where.mesh.shape_tuple, where.mesh.axis_types):
            return where.update(mesh=mesh)  # the current devices
    if where is None or where is anywhere or isinstance(where, (Sharding, Memory)):
        return anywhere if isinstance(where, NamedSharding) and where.mesh.empty else where
    if isinstance(where, runtime.Device):
        return make_single_device_sharding(where)
    if isinstance(where, Format):
        sharding = _resolved(where.sharding, what)
        return sharding if where.layout is None else Format(where.layout, sharding)
    if isinstance(where, Space):
        return Memory(where.value)
    if isinstance(where, PartitionSpec):
        mesh = mesh_of_specs()
        if mesh.empty:
            raise WithoutMesh(
                f"{what}: {where} names axes of a mesh, and none is in force. Use jax.set_mesh, or give a NamedSharding"
            )
        manual = mesh.manual_axes
        if manual and any(a in manual for entry in where for a in axes_of(entry)):
            raise ValueError(
                f"{what}: {where} splits over an axis of {manual}, which are manual here: inside shard_map, each device has"
                " its block over them already, and a spec names other axes"
            )
        try:
            return NamedSharding(mesh, where)
        except ValueError as error:  # the error keeps its class and its attributes
            error.args = (f"{what}: {error}", *error.args[1:])
            raise
    raise ValueError(
        coded(
            "BX-DEVICE-PUT",
            f"{what}: expected a device, a sharding or a PartitionSpec, got {where!r} of type {type(where)};"
            " jax.devices('cpu')[0] is a device",
        )
    )


@remembered(4096)
def _named_hlo(mesh, spec: PartitionSpec, ndim: int) -> runtime.HloSharding:
    """The tile assignment of a spec. Mesh axes are transposed so that the axes of a dimension are adjacent."""
    if len(spec) > ndim:
        raise ValueError(f"Sharding with {spec} splits {len(spec)} dimensions, but the value has rank {ndim}")
    sizes = dict(mesh.shape_tuple)
    position = {name: i for i, name in enumerate(mesh.axis_names)}
    counts, order = [], []
    for entry in tuple(spec) + (None,) * (ndim - len(spec)):
        axes = axes_of(entry)
        counts.append(math.prod(sizes[a] for a in axes))
        order.extend(position[a] for a in axes)
    parts = [i for i, name in enumerate(mesh.axis_names) if name in spec.unreduced]
    if mesh.size == 1 or math.prod(counts) == math.prod(mesh.axis_sizes[i] for i in parts) == 1:
        return _REPLICATED
    rest = [i for i in range(len(mesh.axis_names)) if i not in order and i not in parts]
    dims, kinds = list(counts), []
    for kind, axes in (("UNREDUCED", parts), ("REPLICATED", rest)):
        size = math.prod(mesh.axis_sizes[i] for i in axes)
        if size > 1:
            dims.append(size)
            kinds.append(runtime.OpSharding.Type.__members__[kind])
    return runtime.HloSharding.iota_tile(
        dims=dims, reshape_dims=list(mesh.axis_sizes), transpose_perm=[*order, *parts, *rest], subgroup_types=kinds
    )


class NamedSharding(runtime.NamedShardingBase):
    """A sharding over a mesh by a `PartitionSpec`.

    Args:
      mesh: a `Mesh` or `AbstractMesh`.
      spec: the `PartitionSpec`.
      memory_kind: optional memory kind.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("data",))
      >>> x = jax.device_put(jnp.arange(4), jax.NamedSharding(mesh, jax.P("data")))
      >>> x.sharding.spec
      P('data',)

      >>> mesh = jax.make_mesh((1,), ("i",))
      >>> where = jax.sharding.NamedSharding(mesh, jax.P("i"))
      >>> where.shard_shape((4, 3))
      (4, 3)
    """

    _repr_html_ = offers.shown("sharding")

    def _to_xla_hlo_sharding(self, ndim: int) -> runtime.HloSharding:
        return _named_hlo(self.mesh, self.spec, ndim)

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def memory_kind(self) -> str:
        return self._memory_kind

    @property
    def _device_assignment(self):
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError(f"{self} has no devices: its mesh is abstract")
        return self.mesh._flat_devices_tuple

    @property
    def assignment(self) -> tuple[Any, ...]:
        return None if isinstance(self.mesh, AbstractMesh) else self._device_assignment

    def with_dimension(self, position: int, axes: Sequence[int]) -> NamedSharding:
        """The sharding of a batch. Its new dimension is split over `axes`, or (None) by the partitioner's choice."""
        spec = (*self.spec, *(None,) * (position - len(self.spec)))
        if axes is None:
            axes = UNCONSTRAINED
        elif any(a in self.spec_axes for a in axes_of(PartitionSpec(axes)[0])):
            raise ValueError(f"vmap: spmd_axis_name {axes!r} splits a dimension of what is mapped already: {self.spec}")
        return self.update(spec=self.spec.update((*spec[:position], axes, *spec[position:])))

    def without_dimension(self, d: int) -> NamedSharding | None:
        """The sharding of the elements along a dimension; None if no other dimension is split."""
        return tidy(self, self.spec.update([e for i, e in enumerate(self.spec) if i != d]))

    @property
    def partial(self) -> bool:
        """Whether it has axes of partial sums, or of sums."""
        return bool(self.spec.unreduced or self.spec.reduced)

    def dual(self) -> NamedSharding:
        """The sharding of cotangents: axes of partial sums and of sums are exchanged."""
        return self.update(spec=self.spec.to_ct_spec()) if self.partial else self

    def result_types(self, prim: Primitive, types: Sequence[AbstractValue], params: dict[str, Any], out: Any) -> Any:
        """The types `out` of an operation's results, with their splits, if this is the split of an operand's type."""
        return explicit.typed(prim, types, params, out)

    def sharding_of_type(self, aval: ShapedArray) -> NamedSharding | None:
        """The sharding over explicit axes of the type of an array with this sharding; None if there is none."""
        return _explicit(self.mesh, self.spec, len(aval.shape), aval.split)

    def unconstrained(self, ndim: int) -> tuple[int, ...]:
        """The dimensions that the partitioner may split freely."""
        return tuple([i for i, entry in enumerate(self.spec) if entry is UNCONSTRAINED])

    def settled(self, have: Any) -> NamedSharding:
        """This sharding, with unconstrained dimensions filled from the array's sharding `have`."""
        if UNCONSTRAINED not in self.spec.partitions:
            return self
        old = have.spec if isinstance(have, NamedSharding) and have.mesh == self.mesh else ()
        old = (*old, *(None,) * (len(self.spec) - len(old)))
        free = lambda entry: not any(a in self.spec_axes for a in axes_of(entry))
        entries = [(o if free(o) else None) if e is UNCONSTRAINED else e for e, o in zip(self.spec, old)]
        return self.update(spec=self.spec.update(entries))

    def full(self, ndim: int) -> NamedSharding:
        """Over explicit axes, the same sharding with an entry for each dimension, as types have it."""
        missing = ndim - len(self.spec)
        if missing <= 0 or not self.mesh.explicit_axes:
            return self
        return self.update(spec=self.spec.update((*self.spec, *(None,) * missing)))

    @property
    def spec_axes(self) -> tuple[Any, ...]:
        """The mesh axes that split a dimension."""
        return tuple([name for entry in self.spec for name in axes_of(entry)])

    @property
    def is_fully_replicated(self) -> bool:
        sizes = dict(self.mesh.shape_tuple)
        return not self.spec.unreduced and all(sizes[n] == 1 for entry in self.spec for n in axes_of(entry))

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """Mesh axes that the spec does not name."""
        used = {name for entry in self.spec for name in axes_of(entry)} | self.spec.unreduced | self.spec.reduced
        return frozenset(n for n in self.mesh.axis_names if n not in used)

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Raise ValueError if the spec has more dimensions than the array."""
        if len(self.spec) > len(aval_shape):
            raise ValueError(
                f"{self.spec} has entries for {len(self.spec)} dimensions, but the value has rank {len(aval_shape)}"
            )

    def update(self, **kwargs: Any) -> NamedSharding:
        """A copy with some of `mesh`, `spec`, `memory_kind` changed."""
        fields = dict(mesh=self.mesh, spec=self.spec, memory_kind=self._memory_kind)
        fields.update(kwargs)
        if not isinstance(fields["spec"], PartitionSpec):
            fields["spec"] = PartitionSpec(*fields["spec"])
        return NamedSharding(fields.pop("mesh"), fields.pop("spec"), **fields)

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same split in another memory kind."""
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def __repr__(self) -> str:
        memory = "" if self._memory_kind is None else f", memory_kind={self._memory_kind}"
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{memory})"

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedSharding, (self.mesh, self.spec, self._memory_kind)


# Meshes with explicit axes, which others keep alive: arrays, users, and the results of `_explicit`.
_last_used: weakref.WeakValueDictionary[AbstractMesh, Mesh] = weakref.WeakValueDictionary()


def on_devices(place: NamedSharding, x: Any) -> NamedSharding:
    """A sharding from a type, for an array: over the array's mesh, the current mesh, or the last one used.

    Raises:
      ValueError: none of these meshes has the axes.
    """
    for mesh in (
        getattr(sharding_of(x), "mesh", None) if type(x) is ArrayImpl else None,
        get_mesh(),
        _last_used.get(place.mesh),
    ):
        if isinstance(mesh, Mesh) and (mesh.axis_sizes, mesh.axis_names) == (
            place.mesh.axis_sizes,
            place.mesh.axis_names,
        ):
            types = place.mesh.axis_types
            return place.update(mesh=mesh if mesh.axis_types == types else mesh.update(axis_types=types))
    raise ValueError(f"{place} is over a mesh without devices; make one with these axes current, with jax.set_mesh")


def of_type(aval: Any) -> NamedSharding:
    """The sharding of a type without a split dimension: replicated over the current mesh."""
    return NamedSharding(get_abstract_mesh().update(abstract_device=None), PartitionSpec(*(None,) * len(aval.shape)))


@remembered(4096)
def _explicit(mesh, spec: PartitionSpec, ndim: int, old: NamedSharding | None) -> NamedSharding | None:
    axes = set(mesh.explicit_axes)
    before = () if old is None else old.spec
    before = (*before, *(None,) * ndim)
    found = []
    for i, entry in enumerate(spec):
        kept = axes_of(before[i] if entry is UNCONSTRAINED else entry)
        found.append(tuple([a for a in kept if a in axes]))
    sums = axes | set(mesh.manual_axes)
    unreduced, reduced = spec.unreduced & sums, spec.reduced & sums
    if not any(found) and not unreduced and not reduced:
        return None
    abstract = AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types)
    if isinstance(mesh, Mesh):
        _last_used[abstract] = mesh
    kind = spec.unreduced_kind if unreduced else None
    full = PartitionSpec(
        *found, *(None,) * (ndim - len(found)), unreduced=unreduced, reduced=reduced, unreduced_kind=kind
    )
    return NamedSharding(abstract, full)


class GSPMDSharding(runtime.GSPMDShardingBase):
    """Devices and the `HloSharding` of the compiler's choice.

    Args:
      devices: a sequence of devices.
      op_sharding: an `HloSharding`, or XLA's message of one.
      memory_kind: a memory kind of the devices; by default their default kind.

    Examples:

      >>> from jax.extend import sharding

      >>> everywhere = sharding.GSPMDSharding.get_replicated(jax.devices())
      >>> double = jax.jit(lambda x: 2 * x, out_shardings=everywhere)
      >>> double(jnp.arange(3)).sharding == everywhere
      True
      >>> everywhere.is_fully_replicated, everywhere.shard_shape((4, 2))
      (True, (4, 2))
    """

    _repr_html_ = offers.shown("sharding")

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, GSPMDSharding)
            and self._hlo_sharding == other._hlo_sharding
            and self._memory_kind == other._memory_kind
            and self._internal_device_list == other._internal_device_list
        )

    def __hash__(self) -> int:
        return hash((self._hlo_sharding, self._memory_kind, self._internal_device_list))

    def __reduce__(self) -> tuple[Any, ...]:
        devices, message = list(self._internal_device_list), self._hlo_sharding.to_proto().SerializeToString()
        return _gspmd_from_ids, (devices[0].platform, [d.id for d in devices], message, self._memory_kind)

    @property
    def is_fully_replicated(self) -> bool:
        return self._hlo_sharding.is_replicated()

    def _to_xla_hlo_sharding(self, ndim):
        return self._hlo_sharding

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        """The same split in another memory kind."""
        return GSPMDSharding(self._internal_device_list, self._hlo_sharding, memory_kind=kind)

    def with_dimension(self, position: int, axes: Sequence[int]) -> GSPMDSharding:
        """The sharding of a batch. The new dimension is not split."""
        hlo = self._hlo_sharding
        if hlo.is_replicated() or hlo.is_maximal():
            return self
        sizes = [*hlo.tile_assignment_dimensions()]
        tiles = np.array(list(hlo.tile_assignment_devices())).reshape([*sizes[:position], 1, *sizes[position:]])
        split = runtime.HloSharding.subgroup_with_device_ordering(tiles, hlo.subgroup_types())
        return GSPMDSharding(self._internal_device_list, split, memory_kind=self._memory_kind)

    @classmethod
    def get_replicated(cls, devices: Any, *, memory_kind: Any = None) -> GSPMDSharding:
        """The whole array on every device."""
        return cls(tuple(devices), _REPLICATED, memory_kind=memory_kind)

    def __repr__(self) -> str:
        return f"GSPMDSharding({self._hlo_sharding!r}, memory_kind={self._memory_kind})"


def _gspmd_from_ids(platform, ids, message, memory_kind):
    devices = {d.id: d for d in clients.devices(platform)}
    if missing := [i for i in ids if i not in devices]:
        raise RuntimeError(f"there are no devices {missing} on platform {platform} to unpickle this sharding for")
    proto = runtime.OpSharding()
    proto.ParseFromString(message)
    return GSPMDSharding([devices[i] for i in ids], proto, memory_kind=memory_kind)


def from_hlo(hlo: runtime.HloSharding, device_list: Any, mesh: Any, ndim: int, like: Any = None) -> Any:
    """The compiler's sharding, as a `NamedSharding` over `mesh` if it can be expressed as one.

    Args:
      like: a sharding of another array of this rank. Its spec is used if it is equivalent; otherwise the spec has no
        trailing None.
    """
    if mesh is not None:
        spec = _spec_like(hlo, mesh, ndim, like) or _spec_of(hlo, mesh, ndim)
        if spec is not None:
            return NamedSharding(mesh, spec)
    return GSPMDSharding(device_list, hlo)


def _spec_like(hlo, mesh, ndim: int, like: Any) -> PartitionSpec | None:
    """The spec of a sharding over `mesh` with this tile assignment at the given rank, or None."""
    if not isinstance(like, NamedSharding) or like.mesh != mesh or len(like.spec) > ndim:
        return None
    return like.spec if _named_hlo(mesh, like.spec, ndim) == hlo else None


def _spec_of(hlo, mesh, ndim: int):
    """The partition spec over `mesh` with this tile assignment. The search tries axes for each dimension by size."""
    if hlo.is_replicated():
        return PartitionSpec()
    counts = tile_counts(hlo, ndim)

    def assign(d, free, spec):
        if d == ndim:
            while spec and spec[-1] is None:
                spec.pop()
            candidate = PartitionSpec(*spec)
            return candidate if _named_hlo(mesh, candidate, ndim) == hlo else None
        for axes in _products(free, counts[d], dict(mesh.shape_tuple)):
            found = assign(d + 1, [n for n in free if n not in axes], [*spec, axes or None])
            if found is not None:
                return found
        return None

    return assign(0, list(mesh.axis_names), [])


def _products(free, count, sizes):
    """Ordered selections of axes whose sizes multiply to `count`."""
    if count == 1:
        yield ()
        return
    for name in free:
        if sizes[name] > 1 and count % sizes[name] == 0:
            for rest in _products([n for n in free if n != name], count // sizes[name], sizes):
                yield (name, *rest)


@renamed(axis_shapes="axis_sizes")
def make_mesh(
    axis_sizes: Sequence[int], axis_names: Sequence[Any], axis_types: Any = None, *, devices: Any = None
) -> Mesh:
    """A mesh over the available devices, in their default order.

    Args:
      axis_sizes, axis_names: size and name of each axis.
      axis_types: see `Mesh`; all `Explicit` if not given.
      devices: the devices to use; by default the first ones of the default platform.

    Examples:

      >>> mesh = jax.make_mesh((1, 1), ("data", "model"))
      >>> dict(mesh.shape)
      {'data': 1, 'model': 1}
    """
    axis_sizes = axis_lengths(axis_sizes)
    axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    count = math.prod(axis_sizes)
    found = list(clients.devices() if devices is None else np.asarray(devices, object).flat)
    if len(found) < count:
        raise ValueError(
            coded(
                "BX-MESH-DEVICES",
                f"a mesh of shape {axis_sizes} needs {count} devices, there are {len(found)};"
                " jax.config.update('jax_num_cpu_devices', n), before the first array, makes n of the CPU",
            )
        )
    if axis_types is None:
        axis_types = (AxisType.Explicit,) * len(axis_names)
    array = np.empty(count, object)
    array[:] = found[:count]
    return Mesh(array.reshape(axis_sizes), axis_names, axis_types)


@clients.forget.append
def _forget() -> None:
    _single.clear()
    _last_used.clear()


@clients.before_first_use.append
def _prime(device) -> None:
    """Make C++ look up the functions that it imports by name while the names are ours; see `door.runtime`."""
    with runtime.paths_called_by_name(make_single_device_sharding, check_pspec):
        one = make_single_device_sharding(device)
        value = np.zeros((), np.float32)
        put = runtime.batched_device_put(ShapedArray((), value.dtype), one, [value], [device])
        put._single_device_array_to_np_array_did_copy()
        if device.platform == "cpu":
            runtime.dlpack_managed_tensor_to_buffer(value.__dlpack__(), device, None)


with runtime.paths_called_by_name(make_single_device_sharding, check_pspec):
    NamedSharding(
        AbstractMesh((1,), ("x",), AxisType.Auto), PartitionSpec()
    )  # needs no device: shardings exist before clients
