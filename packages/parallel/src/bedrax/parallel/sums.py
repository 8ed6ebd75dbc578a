"""Partial sums in types: the axes over which an array is the sum, the maximum or the minimum of parts.

The `split` of a type is a sharding over an abstract mesh. Its spec has the axes that split dimensions, the axes over
which values are parts (`unreduced`), and those over which values are sums, so that cotangents are parts (`reduced`).
Both kinds are explicit axes, or manual ones inside `shard_map`. The value of an array is the combination of its parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bedrax.core import offers
from bedrax.core.avals import ShapedArray
from bedrax.parallel.meshes import AbstractMesh, get_abstract_mesh
from bedrax.parallel.specs import ManualAxisType, PartitionSpec, axes_of


class Split(NamedTuple):
    """The split in a type where no backend has shardings; a place, see `bedrax.lax.primitives.placement`."""

    mesh: AbstractMesh
    spec: PartitionSpec

    assignment = layout = memory_kind = None

    @property
    def partial(self) -> bool:
        """Whether it has axes of partial sums, or of sums."""
        return bool(self.spec.unreduced or self.spec.reduced)

    def dual(self) -> Split:
        """The split of cotangents."""
        return self._replace(spec=self.spec.to_ct_spec())

    def update(self, **changes: Any) -> Split:
        """A copy with some fields changed."""
        return self._replace(**changes)

    def result_types(self, prim: Any, types: Any, params: dict[str, Any], out: Any) -> Any:
        """The types `out` of an operation's results, with their splits, if this is the split of an operand's type."""
        return offers.offered("types with splits")(prim, types, params, out)

    def with_dimension(self, position: int, axes: Any) -> Split:
        """The split of a batch."""
        spec = (*self.spec, *(None,) * (position - len(self.spec)))
        return self._replace(spec=self.spec.update((*spec[:position], axes, *spec[position:])))

    def without_dimension(self, d: int) -> Split | None:
        """The split of the elements along a dimension; None if nothing is split."""
        return tidy(self, self.spec.update([e for i, e in enumerate(self.spec) if i != d]))

    def sharding_of_type(self, aval: ShapedArray) -> Split | None:
        """The split itself."""
        return tidy(self, self.spec)


def tidy(split: Any, spec: PartitionSpec) -> Any:
    """A split with another spec; None if that names no axis."""
    named = spec.unreduced or spec.reduced or any(axes_of(e) for e in spec)
    return split.update(spec=spec) if named else None


def split_over(mesh: Any, spec: PartitionSpec) -> Any:
    """The split of a type over a mesh; None if the spec names no axis."""
    if not (spec.unreduced or spec.reduced or any(axes_of(e) for e in spec)):
        return None
    abstract = AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types)
    return offers.offered("sharding over a mesh", Split)(abstract, spec)


def manual_axis_type_of(aval: ShapedArray) -> ManualAxisType:
    """The manual axes of a type."""
    if aval.split is None:
        return ManualAxisType(varying=aval.vma)
    manual, spec = frozenset(aval.split.mesh.manual_axes), aval.split.spec
    unreduced = spec.unreduced & manual
    kind = spec.unreduced_kind if unreduced else None
    return ManualAxisType(varying=aval.vma, unreduced=unreduced, reduced=spec.reduced & manual, unreduced_kind=kind)


def split_by_manual(aval: ShapedArray, axes: ManualAxisType, mesh: Any = None) -> Any:
    """The split of a type, with the partial sums of a `ManualAxisType` over manual axes.

    Args:
      mesh: that of a type without a split; None: the current one.

    Raises:
      ValueError: the current mesh lacks such an axis.
    """
    split, named = aval.split, axes.unreduced | axes.reduced
    if split is not None:
        mesh = split.mesh
    elif mesh is None:
        mesh = get_abstract_mesh()
    manual = frozenset(mesh.manual_axes)
    if not named and (split is None or not manual & (split.spec.unreduced | split.spec.reduced)):
        return split
    if not named <= manual:
        raise ValueError(
            f"{axes}: the axes {sorted(map(str, named - manual))} are not manual axes of the mesh in force, which has"
            f" {tuple(mesh.manual_axes)}: types have partial sums over manual axes inside shard_map"
        )
    spec = PartitionSpec(*[None] * len(aval.shape)) if split is None else split.spec
    unreduced, reduced = (
        (old - manual) | new for old, new in ((spec.unreduced, axes.unreduced), (spec.reduced, axes.reduced))
    )
    kind = (axes.unreduced_kind or spec.unreduced_kind) if unreduced else None
    spec = PartitionSpec(*spec, unreduced=unreduced, reduced=reduced, unreduced_kind=kind)
    return split_over(mesh, spec) if split is None else tidy(split, spec)


def without_axes(spec: PartitionSpec, axes: Any) -> PartitionSpec:
    """A spec without some axes."""
    unreduced = spec.unreduced - axes
    return PartitionSpec(
        *(tuple(a for a in axes_of(e) if a not in axes) for e in spec),
        unreduced=unreduced,
        reduced=spec.reduced - axes,
        unreduced_kind=spec.unreduced_kind if unreduced else None,
    )
