"""What a kernel is given: grids, blocks and memories, as data."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bedrax.core import dims
from bedrax.core.avals import ShapedArray


class MemorySpace(enum.Enum):
    """Where a block is kept. Interpreted kernels keep all in one memory.

    A member called with a shape and a dtype is memory for such an array, a `MemoryRef`.
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"
    VMEM = "vmem"
    SMEM = "smem"
    HBM = "hbm"

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        """Memory of this kind for an array."""
        return MemoryRef(ShapedArray(tuple(shape), dtype), self)

    def __str__(self):
        return self.value


ANY, HOST = MemorySpace.ANY, MemorySpace.HOST


@dataclass(frozen=True)
class MemoryRef:
    """Memory for an array of a type: an entry of `scratch_shapes`, or what `run_scoped` is to make.

    Attributes:
      inner_aval: the type of the array. `shape` and `dtype` are its.
      memory_space: a `MemorySpace`.
    """

    inner_aval: Any
    memory_space: Any

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)


class Blocked(NamedTuple):
    """An axis that is cut into blocks; the index counts blocks. An int stands for it."""

    block_size: int


@dataclass(frozen=True)
class Element:
    """A window of an axis; the index counts elements of the axis after it was padded. So windows may overlap.

    Attributes:
      block_size: the window's length.
      padding: how many elements there are in front of the axis and behind it, of any value.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Squeezed:
    """One position of an axis, which the block does not have. None stands for it."""


squeezed = Squeezed()


@dataclass(frozen=True)
class BoundedSlice:
    """A window whose length the index map decides. Calls with such blocks raise NotImplementedError."""

    block_size: int


BlockDim = Element | Squeezed | Blocked | BoundedSlice


@dataclass(frozen=True)
class Buffered:
    """How many buffers a pipeline has for a block: a `BlockSpec`'s `pipeline_mode`.

    Interpreted kernels have no pipeline, and no use for it.
    """

    buffer_count: int
    use_lookahead: bool = False
    revisit: Any = None


@dataclass
class BlockSpec:
    """Which part of an array one run of a kernel sees.

    Attributes:
      block_shape: for each axis an int (its blocks' length), None (one position, and no axis in the block), `Element`...;
        None: the whole array.
      index_map: ``(*program ids, *prefetched scalars) -> index of the block along each axis``; by default 0.
      pipeline_mode: how the compiler would move blocks.
      memory_space: where the block would be kept.
    """

    block_shape: Sequence[Any] | None = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Buffered | None = None
    memory_space: Any = dataclasses.field(default=None, kw_only=True)

    def replace(self, **changes: Any) -> BlockSpec:
        """A copy with some attributes changed."""
        return dataclasses.replace(self, **changes)


class _NoBlockSpec:
    """Stands for the block that is the whole array."""

    def __repr__(self):
        return "NoBlockSpec"


no_block_spec = _NoBlockSpec()


@dataclass
class GridSpec:
    """A grid, its blocks and scratch memory, together.

    Attributes:
      grid: an int or a tuple; an entry is a size, or a pair (name, size).
      in_specs, out_specs: trees of `BlockSpec`, like the arguments and `out_shape`, or a prefix of them.
      scratch_shapes: memory that all runs of the kernel share: a sequence, or a dictionary of keyword arguments.
    """

    grid: Any = ()
    in_specs: Any = no_block_spec
    out_specs: Any = no_block_spec
    scratch_shapes: Any = ()
    num_scalar_prefetch = 0


class PrefetchScalarGridSpec(GridSpec):
    """A grid with arguments that its index maps see.

    Args:
      num_scalar_prefetch: how many of the first arguments these are; the kernel gets references to them, too, first.
      grid, in_specs, out_specs, scratch_shapes: as of `GridSpec`.
    """

    def __init__(
        self, num_scalar_prefetch: int, grid: Any = (), in_specs: Any = no_block_spec, out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):  # fmt: skip
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


@dataclass(frozen=True)
class CostEstimate:
    """What a kernel costs, for a compiler: `cost_estimate` of `pallas_call`. Nothing is computed from it here.

    Attributes:
      flops, transcendentals: how many operations, and how many of the kind of exp and sin.
      bytes_accessed: how many bytes of its arguments and results it reads and writes.
      remote_bytes_transferred: how many bytes it sends to other devices.
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0


@dataclass(frozen=True)
class CompilerParams:
    """Base of the options for compilers of kernels."""


class Options:
    """Options for a compiler or an interpreter of kernels for TPUs, by name. They are carried along: none applies here."""

    def __init__(self, **options: Any):
        self.__dict__.update(options)

    def __eq__(self, other):
        return type(other) is type(self) and vars(self) == vars(other)

    def __hash__(self):
        return hash(tuple(sorted(vars(self), key=str)))

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


class TPUCompilerParams(Options, CompilerParams):
    """Options for the compiler of kernels for TPUs (`jax.experimental.pallas.tpu.CompilerParams`), by name.

    They are attributes (`dimension_semantics`, `vmem_limit_bytes`...) and carried along: the compiler does not run here.
    """


class InterpretParams(Options):
    """Given as ``interpret=``, it is true; its options are about the hardware that an interpreter imitates."""


VMEM, SMEM, HBM = MemorySpace.VMEM, MemorySpace.SMEM, MemorySpace.HBM


class Dim(NamedTuple):
    """An axis of a block, read: its length, whether the index counts elements, whether the axis stays, padding."""

    size: int
    elements: bool
    stays: bool
    padding: tuple[int, int]


def read_dims(spec: BlockSpec, shape: tuple) -> tuple[Dim, ...]:
    """The axes of the blocks of an array of a shape.

    Raises:
      ValueError: the rank of the block is not that of the array.
      NotImplementedError: a block of varying length.
    """
    if spec.block_shape is None:
        return tuple(Dim(n, False, True, (0, 0)) for n in shape)
    if len(spec.block_shape) != len(shape):
        raise ValueError(
            f"the block shape {tuple(spec.block_shape)} has {len(spec.block_shape)} axes, the array has {len(shape)}: its"
            f" shape is {shape}"
        )
    found = []
    for entry in spec.block_shape:
        if entry is None or isinstance(entry, Squeezed):
            found.append(Dim(1, False, False, (0, 0)))
        elif isinstance(entry, Element):
            found.append(Dim(entry.block_size, True, True, tuple(entry.padding)))  # type: ignore[arg-type]
        elif isinstance(entry, BoundedSlice):
            raise NotImplementedError("blocks of varying length (BoundedSlice) are not supported")
        else:
            found.append(Dim(entry.block_size if isinstance(entry, Blocked) else int(entry), False, True, (0, 0)))
    return tuple(found)


def read_grid(grid: Any) -> tuple[tuple, tuple]:
    """(sizes, names or None) of the axes of a grid."""
    entries = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    named = [e if isinstance(e, tuple) else (None, e) for e in entries]
    for _, size in named:
        if dims.is_constant_dim(size) and int(size) < 0:
            raise ValueError(f"the sizes of a grid are not negative, got {entries}")
    return tuple(n for _, n in named), tuple(name for name, _ in named)
