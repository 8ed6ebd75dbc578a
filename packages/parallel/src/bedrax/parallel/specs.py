"""The split of arrays over the named axes of a mesh: `PartitionSpec`, as data."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from bedrax.core.codes import coded
from bedrax.core.public import public

if TYPE_CHECKING:
    from bedrax.parallel.meshes import AbstractMesh, Mesh


__all__ = [
    "UNCONSTRAINED",
    "DuplicateSpecError",
    "HiPspec",
    "ManualAxisType",
    "P",
    "PartitionSpec",
    "UnconstrainedPartition",
    "UnreducedKind",
]


class UnreducedKind(enum.Enum):
    """The combination of the parts of an unreduced array: their sum, largest or smallest elements.

    Examples:

      >>> jax.P(unreduced={"i"}, unreduced_kind=jax.sharding.UnreducedKind.max).unreduced_kind
      <UnreducedKind.max: 2>
    """

    sum = enum.auto()
    max = enum.auto()
    min = enum.auto()


def _set_of_axes(name: str, axes: Any) -> frozenset[Any]:
    if not isinstance(axes, (set, frozenset)):  # the letters of a text would be axes
        raise TypeError(f"PartitionSpec: {name} is a set of names of mesh axes, got {axes!r} of type {type(axes)}")
    if None in axes:
        raise ValueError(f"PartitionSpec: {name} has names of mesh axes, got None in {axes!r}")
    return frozenset(axes)


def _kind(what: str, unreduced: frozenset, kind: UnreducedKind | None) -> UnreducedKind | None:
    """The kind of partial values over the axes `unreduced`. Default: a sum; None if there are no such axes."""
    if kind is None:
        return UnreducedKind.sum if unreduced else None
    if not isinstance(kind, UnreducedKind):
        raise TypeError(
            public(f"{what}: unreduced_kind is a jax.sharding.UnreducedKind or None, got {kind!r} of type {type(kind)}")
        )
    if not unreduced:
        raise ValueError(
            f"{what}: unreduced_kind is None where no axis is unreduced, got {kind}; name axes in unreduced="
        )
    return kind


def _kind_of_cotangent(what: str, reduced: frozenset, kind: UnreducedKind | None) -> UnreducedKind | None:
    """The kind of the cotangents of values that are reduced over the axes `reduced`."""
    if kind not in (None, UnreducedKind.sum):
        raise NotImplementedError(f"{what}: the cotangent of partial values has a type for sums only, not for {kind}")
    return UnreducedKind.sum if reduced else None


class UnconstrainedPartition:
    """`PartitionSpec.UNCONSTRAINED`: the partitioner chooses how to split this dimension."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unconstrained, ()


def _unconstrained():
    return UNCONSTRAINED


UNCONSTRAINED = UnconstrainedPartition()


def _partition(entry):
    if entry is None or entry is UNCONSTRAINED or isinstance(entry, str):
        return entry
    if isinstance(entry, (tuple, list)):
        entry = tuple(entry)
        if not entry:
            return None
        return entry[0] if len(entry) == 1 else entry
    return entry


def axes_of(entry: str | tuple[str, ...] | None) -> tuple[Any, ...]:
    """The mesh axes in an entry of a spec."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


class HiPspec:
    """The distribution of a value of a library's type over a mesh, in place of a `PartitionSpec`, for `jax.shard_map`.

    Libraries derive from it, with ``==`` and ``hash``, and define ``to_lo()``: a `PartitionSpec` for each array that
    represents the value. The type of the value defines ``shard(mesh, manual_axes, check_vma, spec)`` and ``unshard(mesh,
    check_vma, spec)``: the type of a block, and of the whole of blocks of the type.

    Examples:

      >>> from jax.experimental import hijax

      >>> class Rows(hijax.HiPspec):
      ...     def to_lo(self):
      ...         return jax.P("i"), jax.P("i")
      ...
      >>> Rows().to_lo()
      (P('i',), P('i',))
    """

    def to_lo(self) -> Sequence[PartitionSpec]:
        raise NotImplementedError(
            f"the class {type(self).__name__} must define `to_lo`: a PartitionSpec for each array"
        )


class PartitionSpec:
    """The split of each dimension of an array over mesh axes.

    Args:
      partitions: per dimension a mesh axis name, a tuple of them, `None` (not split), or `PartitionSpec.UNCONSTRAINED`.
        Dimensions without an entry are not split.
      unreduced: mesh axes over which the values are parts, such as partial sums.
      reduced: mesh axes over which the values are sums.
      unreduced_kind: the combination of the parts, an `UnreducedKind`. Default: a sum.

    Raises:
      TypeError: `unreduced` or `reduced` is not a set, or `unreduced_kind` is neither an `UnreducedKind` nor None.
      ValueError: an axis is two of: splitting a dimension, unreduced, reduced; an axis is None; or there is a kind
        without unreduced axes.

    Examples:

      >>> jax.P("data", None, ("x", "y"))
      P('data', None, ('x', 'y'))
    """

    __slots__ = ("_hash", "_partitions", "reduced", "unreduced", "unreduced_kind")
    UNCONSTRAINED = UNCONSTRAINED

    def __init__(
        self,
        *partitions: Any,
        unreduced: set[str] | frozenset[Any] = frozenset(),
        reduced: set[str] | frozenset[Any] = frozenset(),
        unreduced_kind: Any = None,
    ) -> None:
        self._partitions = tuple([_partition(p) for p in partitions])
        self.unreduced: frozenset[Any] = _set_of_axes("unreduced", unreduced)
        self.reduced: frozenset[Any] = _set_of_axes("reduced", reduced)
        self.unreduced_kind: UnreducedKind | None = _kind("PartitionSpec", self.unreduced, unreduced_kind)
        if self.unreduced or self.reduced:
            splitting = {name for entry in self._partitions for name in axes_of(entry)}
            roles = {"splitting a dimension": splitting, "unreduced": self.unreduced, "reduced": self.reduced}
            for (one, axes), (other, more) in itertools.combinations(roles.items(), 2):
                if both := sorted(map(str, axes & more)):
                    raise ValueError(
                        f"PartitionSpec: the axes {both} of {self!r} are both {one} and {other}; give each axis one role"
                    )
        self._hash = None

    @property
    def partitions(self) -> Any:
        return self._partitions

    _key = property(lambda self: (self._partitions, self.unreduced, self.reduced, self.unreduced_kind))

    def __getitem__(self, i: Any) -> Any:
        return self._partitions[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def index(self, value: Any) -> Any:
        """Position of the first dimension with the split `value`."""
        return self._partitions.index(_partition(value))

    def count(self, value: Any) -> Any:
        """The number of dimensions with the split `value`."""
        return self._partitions.count(_partition(value))

    def update(
        self,
        partitions: tuple[str, ...] | None = None,
        unreduced: set[str] | frozenset[Any] | None = None,
        reduced: Any = None,
        unreduced_kind: UnreducedKind | None = None,
    ) -> PartitionSpec:
        """A copy with some fields replaced. `unreduced_kind` becomes None if no axes are unreduced."""
        unreduced = self.unreduced if unreduced is None else unreduced
        if unreduced_kind is None and unreduced:
            unreduced_kind = self.unreduced_kind
        return PartitionSpec(
            *(self._partitions if partitions is None else partitions),
            unreduced=unreduced,
            reduced=self.reduced if reduced is None else reduced,
            unreduced_kind=unreduced_kind,
        )

    def to_tangent_spec(self) -> PartitionSpec:
        """The spec of tangents."""
        return self

    def to_ct_spec(self) -> PartitionSpec:
        """The spec of cotangents, with `reduced` and `unreduced` exchanged.

        Raises:
          NotImplementedError: the values are parts of another kind than a sum.
        """
        kind = _kind_of_cotangent("PartitionSpec", self.reduced, self.unreduced_kind)
        return PartitionSpec(*self._partitions, unreduced=self.reduced, reduced=self.unreduced, unreduced_kind=kind)

    def to_lo(self) -> list[PartitionSpec]:
        """The specs of the arrays that represent the value: the spec itself."""
        return [self]

    def __add__(self, other: PartitionSpec | tuple[str, ...]) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            kinds = {self.unreduced_kind, other.unreduced_kind} - {None}
            if len(kinds) > 1:
                raise TypeError(f"{self!r} and {other!r} cannot be joined: their values are parts of different kinds")
            return PartitionSpec(
                *self,
                *other,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
                unreduced_kind=kinds.pop() if kinds else None,
            )
        if isinstance(other, tuple):
            return self.update((*self, *other))
        raise NotImplementedError(f"a PartitionSpec and a {type(other).__name__} cannot be joined")

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            raise NotImplementedError(f"a {type(other).__name__} and a PartitionSpec cannot be joined")
        return self.update((*other, *self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self._key == other._key

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._key)
        return self._hash

    def __repr__(self) -> str:
        parts = [repr(p) for p in self._partitions]
        text = f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
        extra = [f"{name}={_set_text(getattr(self, name))}" for name in ("unreduced", "reduced") if getattr(self, name)]
        extra += [f"unreduced_kind={self.unreduced_kind.name}"] if self.unreduced_kind else []
        return f"P{text}" if not extra else f"P({', '.join(parts + extra)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_spec, self._key


def _make_spec(partitions, unreduced, reduced, unreduced_kind=None):
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced, unreduced_kind=unreduced_kind)


def _set_text(names) -> str:
    return "{" + ", ".join(sorted(map(repr, names))) + "}"


P = PartitionSpec


class _Infer:
    """The default of specs: the types of arguments have the split."""

    def __repr__(self) -> str:
        return "Infer"


Infer: Final = _Infer()


class DuplicateSpecError(ValueError):
    """A partition spec uses one mesh axis for two dimensions."""

    def __init__(self, message: str, mesh: Mesh, pspec: PartitionSpec) -> None:
        super().__init__(message)
        self.mesh: Mesh = mesh
        self.pspec = pspec


def check_pspec(
    mesh: AbstractMesh | Mesh, spec: PartitionSpec | tuple[str, ...], manual_axes: frozenset[Any] = frozenset()
) -> None:
    """Raise if `spec` names axes that `mesh` lacks, or one of them twice (also called from C++)."""
    if not isinstance(spec, PartitionSpec):
        raise TypeError(f"the spec of a NamedSharding is a PartitionSpec, got {spec!r} of type {type(spec)}")
    splitting = [name for entry in spec for name in axes_of(entry)]
    for name in (*splitting, *spec.unreduced, *spec.reduced):
        if name not in mesh.axis_names:
            raise ValueError(
                coded(
                    "BX-SPEC-AXIS",
                    f"{spec} names the axis {name!r}, which the mesh does not have; it has {tuple(mesh.axis_names)}",
                )
            )
    for name in splitting:
        if splitting.count(name) > 1:
            raise DuplicateSpecError(
                f"{spec} names the mesh axis {name!r} twice; an axis splits one dimension", mesh, spec
            )
    left = [name for name in mesh.auto_axes if name in spec.unreduced or name in spec.reduced]
    if left:
        raise ValueError(
            public(
                f"{spec}: partial sums are a fact of types, so their axes are Explicit (or Manual); the mesh has {left}"
                " of type Auto. Make it with axis_types=(jax.sharding.AxisType.Explicit, ...)"
            )
        )


class ManualAxisType:
    """The mesh axes of a type inside `shard_map`. Immutable.

    Args (the first three are sets of names of axes):
      varying: axes over which the values differ.
      unreduced: axes over which the values are parts, such as partial sums.
      reduced: axes over which the values are sums, so that cotangents are partial sums.
      unreduced_kind: the combination of the parts, an `UnreducedKind`. Default: a sum.

    Raises:
      TypeError: an argument is not a set, or `unreduced_kind` is neither an `UnreducedKind` nor None.
      ValueError: an axis is both varying, and reduced or unreduced, or there is a kind without unreduced axes.

    Examples:

      >>> mesh = jax.make_mesh((1,), ("i",))
      >>> def f(block):
      ...     print(jax.typeof(block).manual_axis_type)
      ...     return jax.lax.psum(block, "i")
      >>> y = jax.shard_map(f, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P())(np.arange(4.))
      ManualAxisType(varying={'i'})
    """

    __slots__ = ("reduced", "unreduced", "unreduced_kind", "varying")

    def __init__(
        self,
        *,
        varying: frozenset[str] | set[str] | str = frozenset(),
        unreduced: frozenset[str] | set[str] = frozenset(),
        reduced: frozenset[str] | set[str] = frozenset(),
        unreduced_kind: UnreducedKind | str | None = None,
    ) -> None:
        for name, axes in (("varying", varying), ("unreduced", unreduced), ("reduced", reduced)):
            if not isinstance(axes, set | frozenset):
                raise TypeError(f"ManualAxisType({name}=...) is a set of names of mesh axes, got {axes!r}")
            object.__setattr__(self, name, frozenset(axes))
        object.__setattr__(self, "unreduced_kind", _kind("ManualAxisType", self.unreduced, unreduced_kind))
        for name in ("unreduced", "reduced"):
            if both := self.varying & getattr(self, name):
                raise ValueError(f"ManualAxisType: the axes {sorted(both, key=str)} are both varying and {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a ManualAxisType is immutable; .update({name}=...) gives another one")

    @property
    def empty(self) -> bool:
        """Whether it has no axes."""
        return not (self.varying or self.unreduced or self.reduced)

    @property
    def vur(self) -> frozenset[Any]:
        """The axes over which devices may hold different values: varying or unreduced ones."""
        return self.varying | self.unreduced

    def to_ct_mat(self) -> ManualAxisType:
        """The same for cotangents, with `reduced` and `unreduced` exchanged.

        Raises:
          NotImplementedError: the values are parts of another kind than a sum.
        """
        kind = _kind_of_cotangent("ManualAxisType", self.reduced, self.unreduced_kind)
        return ManualAxisType(varying=self.varying, unreduced=self.reduced, reduced=self.unreduced, unreduced_kind=kind)

    def invarying(self, mesh: AbstractMesh) -> frozenset[Any]:
        """The manual axes of a mesh over which all devices hold the same value."""
        return frozenset(mesh.manual_axes) - self.vur

    def update(self, **kwargs: Any) -> ManualAxisType:
        """A copy with some fields replaced. `unreduced_kind` becomes None if no axes are unreduced."""
        fields = {**{name: getattr(self, name) for name in self.__slots__}, **kwargs}
        if not fields["unreduced"] and "unreduced_kind" not in kwargs:
            fields["unreduced_kind"] = None
        return ManualAxisType(**fields)

    def __eq__(self, other: object) -> bool:
        return type(other) is ManualAxisType and all(getattr(self, n) == getattr(other, n) for n in self.__slots__)

    def __hash__(self) -> int:
        return hash((ManualAxisType, self.varying, self.unreduced, self.reduced, self.unreduced_kind))

    def __reduce__(self) -> tuple[Any, ...]:
        return _manual_axis_type, (self.varying, self.unreduced, self.reduced, self.unreduced_kind)

    def __repr__(self) -> str:
        sets = [f"{name}={set(axes)}" for name in ("varying", "unreduced", "reduced") if (axes := getattr(self, name))]
        sets += [f"unreduced_kind={self.unreduced_kind}"] if self.unreduced_kind else []
        return f"ManualAxisType({', '.join(sets)})"


def _manual_axis_type(varying, unreduced, reduced, unreduced_kind=None):
    return ManualAxisType(varying=varying, unreduced=unreduced, reduced=reduced, unreduced_kind=unreduced_kind)
