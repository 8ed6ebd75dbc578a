"""Meshes: arrays of devices with named axes, and the current mesh.

`Mesh` holds devices, `AbstractMesh` only the names, sizes and types of axes. `set_mesh`, `use_abstract_mesh` and
``with mesh:`` make one current in a thread. A device is any hashable object here; its backend defines it.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import math
import operator
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from bedrax.core import offers
from bedrax.core.codes import coded
from bedrax.core.context import UNSET, Changes, Variable, continue_block, enter, leave
from bedrax.core.public import public
from bedrax.core.typing import ArrayLike
from bedrax.parallel import flags

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "Mesh",
    "empty_abstract_mesh",
    "empty_mesh",
    "get_abstract_mesh",
    "get_mesh",
    "physical_mesh",
    "set_mesh",
    "use_abstract_mesh",
]


class AxisType(enum.Enum):
    """The control of the split of arrays over a mesh axis: by the compiler, by types, or by the user's code.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> mesh.axis_types
      (Auto,)
    """

    # The public members, whose names are their reprs.
    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class AbstractDevice(NamedTuple):
    """The kind of the devices of an abstract mesh.

    Examples:

      >>> device = jax.sharding.AbstractDevice(device_kind="TPU v5e", num_cores=1, platform="tpu")
      >>> device.device_kind
      'TPU v5e'
    """

    device_kind: str
    num_cores: int | None
    platform: str | None


def _axis_types(types, count, default: AxisType) -> tuple[AxisType, ...]:
    types = default if types is None else types
    types = (types,) * count if isinstance(types, AxisType) else tuple(types)
    if len(types) != count:
        raise ValueError(f"a mesh has one of axis_types per axis name, got {types} for {count} names")
    for t in types:
        if not isinstance(t, AxisType):
            raise TypeError(f"the types of mesh axes are members of AxisType, got {t!r}")
    return types


def _axis_names(names) -> tuple[Any, ...]:
    names = (names,) if isinstance(names, str) else tuple(names)
    if any(name is None for name in names):
        raise ValueError(f"each axis of a mesh needs a name, got {names}")
    if len(set(names)) != len(names):
        raise ValueError(f"the axis names of a mesh must differ from each other, got {names}")
    return names


def axis_lengths(sizes: Any) -> tuple[int, ...]:
    """The sizes of mesh axes as integers.

    Raises:
      TypeError: they are not a sequence of integers.
      ValueError: one is zero or negative.
    """
    try:
        found = tuple([operator.index(n) for n in sizes])
    except TypeError:
        raise TypeError(f"the sizes of mesh axes are a sequence of integers, got {sizes!r}") from None
    if any(n < 1 for n in found):
        raise ValueError(f"the size of a mesh axis is at least 1, got {found}")
    return found


class _BaseMesh:
    """The common part of concrete and abstract meshes: named axes with sizes and types."""

    axis_names: tuple[Any, ...]
    axis_types: tuple[AxisType, ...]
    axis_sizes: tuple[int, ...]
    size: int
    _repr_html_ = offers.shown("mesh")

    @property
    def shape(self) -> collections.OrderedDict[Any, Any]:
        return collections.OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def empty(self) -> bool:
        return not self.axis_names

    def _axes_of(self, kind):
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        return self._axes_of(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        return self._axes_of(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        return self._axes_of(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        return all(t is AxisType.Auto for t in self.axis_types)

    @property
    def _any_axis_explicit(self) -> bool:  # jaxns
        return AxisType.Explicit in self.axis_types

    @property
    def are_all_axes_explicit(self) -> bool:
        return all(t is AxisType.Explicit for t in self.axis_types)

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        return AxisType.Auto not in self.axis_types

    @property
    def are_all_axes_manual(self) -> bool:
        return all(t is AxisType.Manual for t in self.axis_types)

    def _types_text(self):
        return f"({', '.join(map(repr, self.axis_types))}{',' if len(self.axis_types) == 1 else ''})"

    def _axes_text(self):
        return ", ".join(f"{n!r}: {s}" for n, s in self.shape_tuple)


class AbstractMesh(_BaseMesh):
    """A mesh without devices: names, sizes and types of its axes.

    Args:
      axis_sizes, axis_names: one per axis.
      axis_types: an `AxisType`, or one per axis; all `Explicit` if not given.
      abstract_device: the kind of its devices.

    Examples:

      >>> mesh = jax.sharding.AbstractMesh((4, 2), ("data", "model"))
      >>> mesh.size, dict(mesh.shape)
      (8, {'data': 4, 'model': 2})
    """

    __slots__ = ("_hash", "abstract_device", "axis_names", "axis_sizes", "axis_types", "size")

    def __init__(
        self,
        axis_sizes: tuple[int, ...],
        axis_names: tuple[str, ...],
        axis_types: AxisType | tuple[AxisType, ...] | None = None,
        *,
        abstract_device: Any = None,
    ) -> None:
        self.axis_sizes: tuple[Any, ...] = axis_lengths(axis_sizes)
        self.axis_names: tuple[Any, ...] = _axis_names(axis_names)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(
                f"a mesh has one size per axis name, got sizes {self.axis_sizes} for names {self.axis_names}"
            )
        self.axis_types: tuple[AxisType, ...] = _axis_types(axis_types, len(self.axis_names), AxisType.Explicit)
        self.abstract_device: Any | None = abstract_device
        self.size: int = math.prod(self.axis_sizes)
        self._hash = hash((self.axis_sizes, self.axis_names, self.axis_types, abstract_device))

    _internal_device_list = None  # C++ reads it for a NamedSharding

    @property
    def abstract_mesh(self) -> Any:
        return self

    @property
    def is_multi_process(self) -> Any:
        return self._no_devices("is_multi_process")

    @property
    def devices(self) -> Any:
        return self._no_devices("devices")

    @property
    def device_ids(self) -> Any:
        return self._no_devices("device_ids")

    @property
    def local_devices(self) -> Any:
        return self._no_devices("local_devices")

    @property
    def local_mesh(self) -> Any:
        return self._no_devices("local_mesh")

    def _no_devices(self, what):
        raise ValueError(f"AbstractMesh does not implement {what}: it has no devices; use a Mesh")

    def update(
        self,
        axis_sizes: Any = None,
        axis_names: Any = None,
        axis_types: tuple[AxisType, ...] | None = None,
        **abstract_device: Any,
    ) -> AbstractMesh:
        """A copy with some fields changed."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **abstract_device},
        )

    def update_axis_types(self, name_to_type: Mapping[str, Any]) -> AbstractMesh:
        """A copy with other types of the named axes.

        Raises:
          ValueError: the mesh has no axis of a name.
        """
        if unknown := name_to_type.keys() - {*self.axis_names}:
            raise ValueError(f"the axes of a mesh are {self.axis_names}, got types for {sorted(unknown, key=repr)}")
        return self.update(axis_types=tuple(name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types)))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, AbstractMesh)
            and (self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device)
            == (other.axis_sizes, other.axis_names, other.axis_types, other.abstract_device)
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:  # without the hash: those of texts differ between processes
        return _abstract_mesh, (self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device)

    def __repr__(self) -> str:
        device = self.abstract_device
        extra = (
            ""
            if device is None
            else f", device_kind={device.device_kind}, num_cores={device.num_cores}, platform={device.platform}"
        )
        return f"AbstractMesh({self._axes_text() or ()}, axis_types={self._types_text()}{extra})"


def _abstract_mesh(axis_sizes, axis_names, axis_types, abstract_device):
    return AbstractMesh(axis_sizes, axis_names, axis_types, abstract_device=abstract_device)


class Mesh(_BaseMesh, contextlib.ContextDecorator):
    """An array of devices with named axes; also a context manager that makes it the current mesh.

    Args:
      devices: array (or nested sequence) of devices, one at least.
      axis_names: one name per axis of it.
      axis_types: an `AxisType`, or one per axis; all `Auto` if not given.

    Examples:

      >>> from jax.interpreters import mlir

      >>> mesh = mlir.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("rows", "columns"))
      >>> dict(mesh.shape), mesh.axis_names
      ({'rows': 1, 'columns': 1}, ('rows', 'columns'))

      >>> mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))
      >>> mesh.axis_names
      ('i',)
    """

    def __init__(
        self, devices: ArrayLike, axis_names: str | tuple[str, ...], axis_types: tuple[AxisType, ...] | None = None
    ) -> None:
        array = np.array(devices, object)
        axis_names = _axis_names(axis_names)
        if array.ndim != len(axis_names):
            raise ValueError(
                coded(
                    "BX-MESH-NAMES",
                    f"Mesh needs one axis name per axis of devices, got devices of shape {array.shape} and axis_names"
                    f" {axis_names}",
                )
            )
        if not array.size:
            raise ValueError(f"Mesh needs a device at least, got devices of shape {array.shape} for {axis_names}")
        array.flags.writeable = False
        self.devices = array
        self.axis_names: tuple[Any, ...] = axis_names
        self.axis_types: tuple[AxisType, ...] = _axis_types(axis_types, len(axis_names), AxisType.Auto)
        self.axis_sizes: tuple[int, ...] = array.shape
        self.size: int = math.prod(array.shape) if array.ndim else 0
        self._flat_devices_tuple = tuple(array.flat)
        self._hash = hash((axis_names, self._flat_devices_tuple, array.shape, self.axis_types))

    @property
    def device_ids(self) -> Any:
        return np.vectorize(lambda d: d.id, otypes=[int])(self.devices)

    @property
    def is_scalar(self) -> Any:
        return self.size == 1

    @functools.cached_property
    def abstract_mesh(self) -> AbstractMesh:
        device = self._flat_devices_tuple[0] if self._flat_devices_tuple else None
        kind = None
        if hasattr(device, "device_kind"):
            kind = AbstractDevice(device.device_kind, getattr(device, "num_cores", None), device.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=kind)

    @property
    def is_multi_process(self) -> bool:
        return len({d.process_index for d in self._flat_devices_tuple}) > 1

    @property
    def local_devices(self) -> list[Any]:
        return [d for d in self._flat_devices_tuple if d.process_index == d.client.process_index()]

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh with the devices of this process."""
        if not self.is_multi_process:
            return self
        mine = np.vectorize(lambda d: d.process_index == d.client.process_index(), otypes=[bool])(self.devices)
        where = np.argwhere(mine)
        low, high = where.min(0), where.max(0) + 1
        part = tuple(slice(a, b) for a, b in zip(low, high))
        if not mine[part].all():
            raise ValueError(
                "The devices of this process do not form a contiguous part of the mesh, which has shape"
                f" {self.devices.shape}: they are at {where.tolist()}"
            )
        return Mesh(self.devices[part], self.axis_names, self.axis_types)

    def update(self, devices: Any = None, axis_names: tuple[str, ...] | None = None, axis_types: Any = None) -> Mesh:
        """A copy with some fields changed."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __enter__(self) -> Any:
        if flags.disallow_mesh_context_manager.value:
            raise RuntimeError(
                public(
                    "`with mesh:` is not allowed, because jax_disallow_mesh_context_manager is set: write"
                    " `with jax.set_mesh(mesh):`"
                )
            )
        enter(self, {_entered: (*_entered.value, self)})
        return self

    __exit__ = leave

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Mesh)
            and self._hash == other._hash
            and self.axis_names == other.axis_names
            and self.axis_sizes == other.axis_sizes
            and self.axis_types == other.axis_types
            and self._flat_devices_tuple == other._flat_devices_tuple
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"Mesh({self._axes_text()}, axis_types={self._types_text()})"

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names!r}, axis_types={self._types_text()})"


# Specs are resolved during tracing, so the meshes of a thread are part of the key of every trace and executable.
_entered = Variable("mesh_blocks", ())  # the meshes of the enclosing ``with mesh:`` blocks, the innermost one last
_concrete = Variable("mesh", None)  # that of `set_mesh`
_abstract = Variable("abstract_mesh", None)  # that of `use_abstract_mesh`


def changed_types(mesh: _BaseMesh, kind: AxisType, axes: Sequence[str] | None) -> tuple[AxisType, ...]:
    """The types of a mesh's axes, with another kind for some (None: all)."""
    return tuple([kind if axes is None or n in axes else t for n, t in zip(mesh.axis_names, mesh.axis_types)])


def with_axis_types(kind: AxisType, axes: Sequence[str] | None) -> Changes:
    """Context manager: some axes of the current meshes have another kind."""

    def changed(mesh):
        return None if mesh is None else mesh.update(axis_types=changed_types(mesh, kind, axes))

    blocks = tuple(map(changed, _entered.value))
    return Changes({_entered: blocks, _concrete: changed(_concrete.value), _abstract: changed(_abstract.value)})


empty_abstract_mesh: Final = AbstractMesh((), ())


@functools.cache
def empty_mesh() -> Mesh:
    """The current mesh if none is set."""
    return Mesh(np.empty((), object), ())


def get_mesh() -> Mesh:
    """The mesh that `set_mesh` made current (an empty one without it).

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",))
      >>> with jax.set_mesh(mesh):
      ...     jax.get_mesh() == mesh
      True

      >>> with jax.set_mesh(jax.make_mesh((1,), ("i",))):
      ...     print(jax.sharding.get_mesh().axis_names)
      ...
      ('i',)
    """
    return _concrete.value or empty_mesh()


def get_abstract_mesh() -> AbstractMesh:
    """The current abstract mesh (an empty one without it).

    Examples:

      >>> with jax.set_mesh(jax.make_mesh((1,), ("i",))):
      ...     jax.get_abstract_mesh().axis_names
      ('i',)

      >>> with jax.set_mesh(jax.make_mesh((1,), ("i",))):
      ...     print(jax.sharding.get_abstract_mesh().axis_names)
      ...
      ('i',)
    """
    abstract = _abstract.value
    if abstract is not None:
        return abstract
    concrete = _concrete.value
    return concrete.abstract_mesh if concrete is not None else empty_abstract_mesh


def physical_mesh() -> Mesh:
    """The mesh of the innermost ``with mesh:`` block (an empty one without it)."""
    entered = _entered.value
    return entered[-1] if entered else empty_mesh()


def mesh_of_specs() -> Mesh:
    """The mesh of a bare spec: the current one, with its devices in the shape of the current abstract mesh."""
    mesh = get_mesh()
    mesh = physical_mesh() if mesh.empty else mesh
    abstract = _abstract.value
    return mesh if mesh.empty or abstract is None else in_shape_of(abstract, mesh)


def in_shape_of(abstract: AbstractMesh, mesh: Mesh) -> Mesh:
    """The devices of a mesh with the axes of another one if the numbers agree; else the mesh unchanged."""
    if abstract.size != mesh.size or (abstract.shape_tuple, abstract.axis_types) == (mesh.shape_tuple, mesh.axis_types):
        return mesh
    return Mesh(mesh.devices.reshape(abstract.axis_sizes), abstract.axis_names, axis_types=abstract.axis_types)


class set_mesh:
    """Make a mesh the current one of this thread, from now on or as a context manager. None: no mesh is current.

    Attributes:
      prev_mesh: the former current mesh, or None.
      prev_abstract_mesh: the abstract mesh of a surrounding `use_abstract_mesh`, or None.

    Raises:
      ValueError: the argument is neither a `Mesh` nor None.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",))
      >>> with jax.set_mesh(mesh):
      ...     x = jnp.zeros(4, out_sharding=jax.P("i"))
      ...
      >>> x.sharding.spec
      P('i',)
    """

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(public(f"set_mesh needs a jax.sharding.Mesh or None, got {type(mesh)}"))
        self.prev_mesh: Any = _concrete.value
        self.prev_abstract_mesh: Any = _abstract.value
        self.thread: int = threading.get_ident()
        self._saved: dict[Any, Any] = {_concrete: _concrete.local_value}
        _concrete.set_local(UNSET if mesh is None else mesh)

    def __enter__(self) -> Any:
        if self.thread != threading.get_ident():
            raise RuntimeError(
                "set_mesh sets the mesh of the thread that calls it: call it in the thread that enters it"
            )
        mesh = _concrete.value
        continue_block(self, self._saved)
        return mesh

    __exit__ = leave


class use_abstract_mesh:
    """Context manager: sets the current abstract mesh, which it returns.

    Attributes:
      mesh: the abstract mesh.
      prev: inside, the former abstract mesh, or None.

    Raises:
      ValueError: the argument is no `AbstractMesh`.

    Examples:

      >>> with jax.use_abstract_mesh(jax.sharding.AbstractMesh((4,), ("i",))):
      ...     jax.get_abstract_mesh().size
      4

      >>> mesh = jax.sharding.AbstractMesh((4,), ("i",))
      >>> with jax.sharding.use_abstract_mesh(mesh):
      ...     print(jax.sharding.get_abstract_mesh().axis_names)
      ...
      ('i',)
    """

    __slots__ = ("mesh", "prev")
    prev: Any

    def __init__(self, mesh: AbstractMesh) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(public(f"use_abstract_mesh needs a jax.sharding.AbstractMesh, got {type(mesh)}"))
        self.mesh: AbstractMesh = mesh

    def __enter__(self) -> Any:
        self.prev = _abstract.value
        enter(self, {_abstract: self.mesh})
        return self.mesh

    __exit__ = leave
