"""The arguments of a kernel: grids, blocks and memories, as data."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from bedrax.core import dims
from bedrax.core.avals import ShapedArray


class MemorySpace(enum.Enum):
    """The memory of a block. Interpreted kernels keep all blocks in one memory.

    A member called with a shape and a dtype is memory for such an array, a `MemoryRef`.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref, doubled_ref):
      ...     doubled_ref[...] = 2 * x_ref[...]
      ...     out_ref[...] = doubled_ref[...] + 1
      ...
      >>> memory = pl.MemorySpace.ANY((3,), jnp.float32)
      >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), jnp.float32), scratch_shapes=[memory], interpret=True)
      >>> f(jnp.arange(3.))
      Array([1., 3., 5.], dtype=float32)

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref, sum_ref, count_ref):
      ...     sum_ref[...] = x_ref[0] + x_ref[1]
      ...     count_ref[0] = 2
      ...     out_ref[...] = sum_ref[...] / count_ref[0]
      ...
      >>> scratch = [pltpu.MemorySpace.VMEM((3,), jnp.float32), pltpu.MemorySpace.SMEM((1,), jnp.int32)]
      >>> mean = pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), jnp.float32), scratch_shapes=scratch, interpret=True)
      >>> mean(jnp.array([[1., 2., 3.], [3., 4., 9.]]))
      Array([2., 3., 6.], dtype=float32)
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"
    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        """Memory of this kind for an array."""
        return MemoryRef(ShapedArray(tuple(shape), dtype), self)

    def __str__(self) -> str:
        return self.value


ANY: Final = MemorySpace.ANY
HOST: Final = MemorySpace.HOST


class SemaphoreType(enum.Enum):
    """Kinds of semaphores. A member is memory for one; a call of it with a shape is memory for an array of them.

    A semaphore is an int32 that starts as 0.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(out_ref, sem_ref):
      ...     plgpu.semaphore_signal(sem_ref, 2)
      ...     out_ref[...] = pl.semaphore_read(sem_ref)
      ...
      >>> run(body, jnp.array(0), scratch_types=[plgpu.SemaphoreType.REGULAR])
      Array(2, dtype=int32)

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref, sem_ref):
      ...     pltpu.async_copy(x_ref, out_ref, sem_ref).wait()
      ...
      >>> x = jnp.arange(3)
      >>> pl.pallas_call(kernel, x, scratch_shapes=[pltpu.SemaphoreType.DMA], interpret=True)(x)
      Array([0, 1, 2], dtype=int32)
    """

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    shape = property(lambda self: ())
    dtype = property(lambda self: np.dtype(np.int32))
    memory_space = property(lambda self: MemorySpace.SEMAPHORE)
    inner_aval = property(lambda self: ShapedArray((), np.dtype(np.int32)))

    def __call__(self, shape: Sequence[int]) -> MemoryRef:
        """Memory for an array of semaphores of this kind."""
        return MemoryRef(ShapedArray(tuple(shape), np.dtype(np.int32)), MemorySpace.SEMAPHORE)


@dataclass(frozen=True)
class ACC:
    """The accumulators of a matrix unit: called with a shape and a dtype it is memory that starts as 0.

    Attributes:
      mxu_id: the number of the unit; `matmul_acc_lhs` and `matmul_pop` use the unit of their accumulator.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     def product(acc_ref):  # memory of unit 1
      ...         pltpu.matmul_push_rhs(x_ref[...], 0, 1)
      ...         pltpu.matmul_acc_lhs(acc_ref, x_ref[...], load_staged_rhs=0)
      ...         out_ref[...] = pltpu.matmul_pop(acc_ref)
      ...     pl.run_scoped(product, pltpu.ACC(1)((2, 2), jnp.float32))
      ...
      >>> x = 3 * jnp.eye(2)
      >>> pl.pallas_call(kernel, x, interpret=True)(x)
      Array([[9., 0.],
             [0., 9.]], dtype=float32)
    """

    mxu_id: int

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        """Memory of these accumulators for an array of rank 2."""
        return MemoryRef(ShapedArray(tuple(shape), dtype), self)


def starts_as_zero(memory: Any, space: Any) -> bool:
    """Whether memory, or all memory of its kind, holds 0 before the first write."""
    return space is MemorySpace.SEMAPHORE or isinstance(space, ACC) or getattr(memory, "starts_as_zero", False)


@dataclass(frozen=True)
class MemoryRef:
    """Memory for an array of a type: an entry of `scratch_shapes`, or an argument of `run_scoped`.

    Attributes:
      inner_aval: the type of the array, with its `shape` and `dtype`.
      memory_space: a `MemorySpace`.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> memory = pl.ANY((2, 3), jnp.int32)
      >>> isinstance(memory, pl.MemoryRef), memory.shape, memory.dtype, memory.memory_space is pl.MemorySpace.ANY
      (True, (2, 3), dtype('int32'), True)
    """

    inner_aval: Any
    memory_space: Any

    @property
    def shape(self) -> Any:
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        return self.inner_aval.dtype


class Blocked(NamedTuple):
    """An axis that is cut into blocks; the index counts blocks. An int is an abbreviation of it.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = x_ref[::-1]
      ...
      >>> pairs = pl.BlockSpec((pl.Blocked(2),), lambda i: (i,))  # block i: elements 2 i and 2 i + 1
      >>> out = jax.ShapeDtypeStruct((6,), jnp.int32)
      >>> pl.pallas_call(kernel, out, grid=(3,), in_specs=[pairs], out_specs=pairs, interpret=True)(jnp.arange(6))
      Array([1, 0, 3, 2, 5, 4], dtype=int32)
    """

    block_size: int


@dataclass(frozen=True)
class Element:
    """A window of an axis; the index counts elements of the padded axis. So windows may overlap.

    Attributes:
      block_size: the window's length.
      padding: the numbers of elements before and after the axis, of any value.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[0] = x_ref[0] + x_ref[1] + x_ref[2]
      ...
      >>> window = pl.BlockSpec((pl.Element(3),), lambda i: (i,))  # windows overlap: elements i, i + 1 and i + 2
      >>> out, one = jax.ShapeDtypeStruct((3,), jnp.int32), pl.BlockSpec((1,), lambda i: (i,))
      >>> pl.pallas_call(kernel, out, grid=(3,), in_specs=[window], out_specs=one, interpret=True)(jnp.arange(5))
      Array([3, 6, 9], dtype=int32)
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Squeezed:
    """One position of an axis, which the block does not have. None is an abbreviation of it.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     print(x_ref.shape)
      ...     out_ref[...] = x_ref[...] + 100
      ...
      >>> row = pl.BlockSpec((pl.Squeezed(), 3), lambda i: (1 - i, 0))
      >>> out, whole = jax.ShapeDtypeStruct((2, 3), jnp.int32), pl.BlockSpec((None, 3), lambda i: (i, 0))
      >>> f = pl.pallas_call(kernel, out, grid=(2,), in_specs=[row], out_specs=whole, interpret=True)
      >>> f(jnp.arange(6).reshape(2, 3))
      (3,)
      Array([[103, 104, 105],
             [100, 101, 102]], dtype=int32)
    """


squeezed: Final = Squeezed()


@dataclass(frozen=True)
class BoundedSlice:
    """A window with a length from the index map. Calls with such blocks raise NotImplementedError.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = x_ref[...]
      ...
      >>> some = pl.BlockSpec((pl.BoundedSlice(4),), lambda i: (pl.ds(0, i),))
      >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((4,), jnp.int32), grid=(2,), in_specs=[some], interpret=True)
      >>> try:
      ...     f(jnp.arange(4))
      ... except NotImplementedError as e:
      ...     print(str(e).splitlines()[0])
      ...
      blocks of varying length (BoundedSlice) are not supported
    """

    block_size: int


@dataclass(frozen=True)
class Indirect:
    """An axis with positions from an array of indices. Calls with such blocks raise NotImplementedError.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> spec = pl.BlockSpec((pl.Indirect(2), 4), lambda i: (i, 0))
      >>> pl.pallas_call(lambda x_ref, out_ref: None, jnp.ones((2, 4)), in_specs=[spec], interpret=True)(jnp.ones((8, 4)))
      Traceback (most recent call last):
      ...
      NotImplementedError: blocks of positions that an array chooses (Indirect) are not supported; gather before the kernel, ...
    """

    block_size: int


BlockDim = Element | Squeezed | Blocked | BoundedSlice | Indirect


class RevisitMode(enum.Enum):
    """Whether a pipeline may return to a block of a result after another one. Interpreted pipelines always may.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> pl.Buffered(2, revisit=pl.RevisitMode.ANY).revisit
      <RevisitMode.ANY: 'any'>
    """

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclass(frozen=True)
class Buffered:
    """The number of buffers of a pipeline for a block: a `BlockSpec`'s `pipeline_mode`.

    An interpreted pipeline copies a block at its step, for any number of buffers. Exceptions are
    blocks that were copied before the pipeline began (`prefetched_count`, `emit_pipeline_with_async_prefetch`).

    Attributes:
      buffer_count: at least 1; a pair is (for reading, for writing) of a block that is argument and result.
      use_lookahead: whether a device fetches the next changed block early.
      revisit: a `RevisitMode` or None.
      prefetched_count: the number of first steps whose blocks exist before the pipeline begins; at most the
        number of buffers for reading.

    Raises:
      ValueError: a number is out of range.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = -x_ref[...]
      ...
      >>> spec = pl.BlockSpec((2,), lambda i: (i,), pipeline_mode=pl.Buffered(3))
      >>> spec.pipeline_mode.buffer_count
      3
      >>> out = jax.ShapeDtypeStruct((4,), jnp.int32)
      >>> pl.pallas_call(kernel, out, grid=(2,), in_specs=[spec], out_specs=spec, interpret=True)(jnp.arange(4))
      Array([ 0, -1, -2, -3], dtype=int32)
    """

    buffer_count: int | tuple[int, int]
    use_lookahead: bool = False
    revisit: RevisitMode | None = None
    prefetched_count: int = 0

    def __post_init__(self) -> None:
        counts = self.buffer_count if isinstance(self.buffer_count, tuple) else (self.buffer_count,)
        if len(counts) > 2 or any(n < 1 for n in counts):
            raise ValueError(f"Buffered: buffer_count is 1 or more, or a pair of such numbers, got {self.buffer_count}")
        if not 0 <= self.prefetched_count <= counts[0]:
            raise ValueError(
                f"Buffered: prefetched_count is between 0 and the number of buffers, {counts[0]}, got"
                f" {self.prefetched_count}"
            )


@dataclass
class BlockSpec:
    """The part of an array in one run of a kernel.

    Attributes:
      block_shape: for each axis an int (the length of its blocks), None (one position, and no axis in the block),
        `Element`...; None: the whole array.
      index_map: ``(*program ids, *prefetched scalars) -> index of the block along each axis``. Default: 0.
      pipeline_mode: the transport of blocks by a compiler.
      memory_space: the memory of the block.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def double(x_ref, out_ref):
      ...     out_ref[...] = 2 * x_ref[...]
      ...
      >>> rows = pl.BlockSpec((2,), lambda i: (i,))
      >>> out = jax.ShapeDtypeStruct((6,), jnp.int32)
      >>> f = pl.pallas_call(double, out_shape=out, grid=(3,), in_specs=[rows], out_specs=rows, interpret=True)
      >>> f(jnp.arange(6))
      Array([ 0,  2,  4,  6,  8, 10], dtype=int32)
    """

    block_shape: Sequence[Any] | None = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Buffered | None = None
    memory_space: Any = dataclasses.field(default=None, kw_only=True)

    def replace(self, **changes: Any) -> BlockSpec:
        """A copy with some attributes changed."""
        return dataclasses.replace(self, **changes)


class _NoBlockSpec:
    """Marks the block that is the whole array."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec: Final = _NoBlockSpec()


@dataclass
class GridSpec:
    """A grid, its blocks and scratch memory, together.

    Attributes:
      grid: an int or a tuple; an entry is a size, or a pair (name, size).
      in_specs, out_specs: trees of `BlockSpec`, like the arguments and `out_shape`, or a prefix of them.
      scratch_shapes: memory that all runs of the kernel share: a sequence, or a dictionary of keyword arguments.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref, total_ref):
      ...     total_ref[...] = jnp.where(pl.program_id(0) == 0, 0, total_ref[...]) + x_ref[...]
      ...     out_ref[...] = total_ref[...]
      ...
      >>> one = pl.BlockSpec((1,), lambda i: (i,))
      >>> spec = pl.GridSpec(grid=(4,), in_specs=[one], out_specs=one, scratch_shapes=[pl.MemorySpace.ANY((1,), jnp.int32)])
      >>> out = jax.ShapeDtypeStruct((4,), jnp.int32)
      >>> pl.pallas_call(kernel, out, grid_spec=spec, interpret=True)(jnp.array([5, 1, 2, 4]))
      Array([ 5,  6,  8, 12], dtype=int32)
    """

    grid: Any = ()
    in_specs: Any = no_block_spec
    out_specs: Any = no_block_spec
    scratch_shapes: Any = ()
    num_scalar_prefetch = 0


class PrefetchScalarGridSpec(GridSpec):
    """A grid with arguments for its index maps.

    Args:
      num_scalar_prefetch: the number of these arguments, which are the first ones; the kernel also gets references to
        them.
      grid, in_specs, out_specs, scratch_shapes: see `GridSpec`.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(which_ref, x_ref, out_ref):
      ...     out_ref[...] = x_ref[...]
      ...
      >>> chosen = pl.BlockSpec((1, 2), lambda i, which: (which[i], 0))  # the map reads the first argument
      >>> row = pl.BlockSpec((1, 2), lambda i, which: (i, 0))
      >>> spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(3,), in_specs=[chosen], out_specs=row)
      >>> take = pl.pallas_call(kernel, jax.ShapeDtypeStruct((3, 2), jnp.int32), grid_spec=spec, interpret=True)
      >>> take(jnp.array([3, 0, 3]), jnp.arange(8).reshape(4, 2))
      Array([[6, 7],
             [0, 1],
             [6, 7]], dtype=int32)
    """

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ) -> None:
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


@dataclass(frozen=True)
class CostEstimate:
    """The cost of a kernel, for a compiler: `cost_estimate` of `pallas_call`. It is not used here.

    Attributes:
      flops, transcendentals: the number of operations, and of operations like exp and sin.
      bytes_accessed: the number of bytes of its arguments and results that it reads and writes.
      remote_bytes_transferred: the number of bytes that it sends to other devices.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = jnp.exp(x_ref[...])
      ...
      >>> x = jnp.zeros(8)
      >>> cost = pl.CostEstimate(flops=0, transcendentals=x.size, bytes_accessed=2 * x.nbytes)
      >>> cost
      CostEstimate(flops=0, transcendentals=8, bytes_accessed=64, remote_bytes_transferred=0)
      >>> pl.pallas_call(kernel, x, cost_estimate=cost, interpret=True)(x).sum()
      Array(8., dtype=float32)
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0


@dataclass(frozen=True)
class CompilerParams:
    """Base of the options for compilers of kernels.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> from jax.experimental.pallas import tpu, triton
      >>> options = [tpu.CompilerParams(dimension_semantics=("parallel",)), triton.CompilerParams(num_warps=4)]
      >>> [isinstance(o, pl.CompilerParams) for o in options]  # each compiler has options of its own
      [True, True]
    """


class Options:
    """Options for a compiler or an interpreter of kernels for TPUs, by name. They are stored only: none applies
    here."""

    def __init__(self, **options: Any) -> None:
        self.__dict__.update(options)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(sorted(vars(self), key=str)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


class DeviceIdType(enum.Enum):
    """The name of another device: its position in a mesh, or its number. Interpreted kernels run on one device.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(sem_ref):
      ...     pl.semaphore_signal(sem_ref, device_id=1, device_id_type=pl.DeviceIdType.LOGICAL)
      ...
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((), jnp.int32), interpret=True)()
      Traceback (most recent call last):
      ...
      NotImplementedError: semaphore_signal: device_id, device_id_type names another device or core, ...
    """

    MESH = "mesh"
    LOGICAL = "logical"


class LoweringException(Exception):
    """An error of the compiler of kernels for TPUs. It does not run here, and raises none.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = x_ref[...] + 1
      ...
      >>> f = pl.pallas_call(kernel, jnp.arange(2), interpret=True)
      >>> try:
      ...     y = f(jnp.arange(2))
      ... except pltpu.LoweringException:  # of the compiler for TPUs
      ...     y = jnp.arange(2) + 1
      ...
      >>> y
      Array([1, 2], dtype=int32)
    """


class SparseCorePushStreamWarning(UserWarning):
    """A warning of the compiler of kernels for the sparse cores of TPUs, which does not run here.

    Examples:

      >>> from jax.experimental.pallas import tpu_sc as plsc

      >>> import warnings
      >>> warnings.simplefilter("error", plsc.SparseCorePushStreamWarning)  # as a program for a TPU may say
    """


class GridDimensionSemantics(enum.Enum):
    """Whether the steps along an axis of a grid may be distributed over cores, or run in order (`ARBITRARY`).

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> order = (pltpu.GridDimensionSemantics.PARALLEL, pltpu.GridDimensionSemantics.ARBITRARY)
      >>> pltpu.CompilerParams(dimension_semantics=order).dimension_semantics[0].value
      'parallel'
    """

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


class SideEffectType(enum.Enum):
    """The optimizations of a compiler for a kernel with unused results.

    Examples:

      >>> from jax.experimental.pallas import tpu as pltpu

      >>> params = pltpu.CompilerParams(has_side_effects=pltpu.SideEffectType.DATAFLOW_SIDE_EFFECTING)
      >>> params.has_side_effects.value
      'dataflow_side_effecting'
    """

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


@dataclass(frozen=True)
class TPUCompilerParams(CompilerParams):
    """Options for the compiler of kernels for TPUs (`jax.experimental.pallas.tpu.CompilerParams`).

    They are stored only: the compiler does not run here.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = 3 * x_ref[...]
      ...
      >>> x, block = jnp.arange(4), pl.BlockSpec((2,), lambda i: (i,))
      >>> params = pltpu.CompilerParams(dimension_semantics=("parallel",), vmem_limit_bytes=2**20)
      >>> params.vmem_limit_bytes
      1048576
      >>> pl.pallas_call(kernel, x, grid=2, in_specs=[block], out_specs=block, compiler_params=params, interpret=True)(x)
      Array([0, 3, 6, 9], dtype=int32)
    """

    dimension_semantics: Sequence[Any] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: Any = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False
    opt_level: Any = None


_NO_RACES = "runs, cores and threads run one after the other here, so there are no races"
_IMITATED = "arrays have the values of this machine; no device is imitated"
# Options of an interpreter that imitates hardware: name -> (default, the other accepted values, the reason for no
# others).
INTERPRETER_OPTIONS: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "detect_races": (False, (), _NO_RACES),
    "on_race": ("raise", ("warn",), "it is 'raise' or 'warn'"),
    "out_of_bounds_reads": ("raise", (), "an index out of bounds is clamped, like that of jax.lax.dynamic_slice"),
    "skip_floating_point_ops": (False, (), "results are computed"),
    "uninitialized_memory": ("nan", ("zero",), "it is 'nan' or 'zero'"),
    "num_cores_or_threads": (1, (), "cores run one after the other; leave it out, results are the same"),
    "vector_clock_size": (None, (), _NO_RACES),
    "logging_mode": (None, (), _IMITATED),
    "dma_execution_mode": ("on_wait", ("eager",), "it is 'eager' or 'on_wait'"),
    "random_seed": (None, (), "runs of a grid are executed in order, the last axis fastest"),
    "grid_point_recorder": (None, (), "call jax.debug.callback with jax.experimental.pallas.program_id in the kernel"),
    "allow_hbm_allocation_in_run_scoped": (False, (True,), "it is a boolean"),
    "buffer_bounds": ("logical", (), _IMITATED),
}
GPU_INTERPRETER_OPTIONS: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "num_tma_threads_per_device": (5, (), _NO_RACES),
    "inline_mgpu": ("error", (), "instructions of a GPU that are written inline do not run here"),
}
_TPU_ONLY = (
    "dma_execution_mode",
    "random_seed",
    "grid_point_recorder",
    "allow_hbm_allocation_in_run_scoped",
    "buffer_bounds",
)


class InterpretParams(Options):
    """As the argument ``interpret=`` it is true, and has the options for the interpretation of kernels for TPUs.

    Args:
      uninitialized_memory: the value of unwritten memory: ``"nan"`` (the least integer), ``"zero"``.
      on_race: ``"raise"`` or ``"warn"``; there are no races, because all runs are executed one after the other.
      dma_execution_mode: ``"on_wait"`` or ``"eager"``: a copy is made at its start, which both permit.
      allow_hbm_allocation_in_run_scoped: a boolean; there is one memory, and every kind of it is accepted.
      detect_races, out_of_bounds_reads, skip_floating_point_ops, num_cores_or_threads, vector_clock_size, logging_mode,
        random_seed, grid_point_recorder, buffer_bounds: their defaults.

    Raises:
      NotImplementedError: another value; the message has the reason.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = x_ref[...] ** 2
      ...
      >>> x = jnp.arange(4)
      >>> pl.pallas_call(kernel, x, interpret=pltpu.InterpretParams())(x)
      Array([0, 1, 4, 9], dtype=int32)
    """

    table = INTERPRETER_OPTIONS

    def __init__(self, **options: Any) -> None:
        unknown = sorted(options.keys() - self.table.keys())
        if unknown:
            raise TypeError(f"{type(self).__name__} has no {', '.join(unknown)}; it has {', '.join(self.table)}")
        for name, value in options.items():
            default, others, why = self.table[name]
            if value != default and value not in others:
                raise NotImplementedError(f"{type(self).__name__}: {name}={value!r} is not supported: {why}")
        super().__init__(**{name: options.get(name, row[0]) for name, row in self.table.items()})


class InterpretGPUParams(InterpretParams):
    """Options for the interpretation of kernels for GPUs, for the argument ``interpret=``.

    Args:
      uninitialized_memory: the value of unwritten memory: ``"nan"`` (the least integer), ``"zero"``.
      on_race: ``"raise"`` or ``"warn"``; there are no races, because blocks and threads run one after the other.
      detect_races, out_of_bounds_reads, skip_floating_point_ops, num_cores_or_threads, vector_clock_size, logging_mode,
        num_tma_threads_per_device, inline_mgpu: their defaults.

    Raises:
      NotImplementedError: another value; the message has the reason.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> how = plgpu.InterpretGPUParams(uninitialized_memory="zero")
      >>> plgpu.kernel(lambda out_ref: None, out_type=jnp.arange(2), interpret=how)()
      Array([0, 0], dtype=int32)
    """

    table: dict[str, tuple[Any, tuple[Any, ...], str]] = {
        k: v for k, v in INTERPRETER_OPTIONS.items() if k not in _TPU_ONLY
    } | GPU_INTERPRETER_OPTIONS


for _kind in (InterpretParams, InterpretGPUParams):  # for help()
    _kind.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=row[0]) for name, row in _kind.table.items()]
    )

VMEM: Final = MemorySpace.VMEM
SMEM: Final = MemorySpace.SMEM
HBM: Final = MemorySpace.HBM
CMEM: Final = MemorySpace.CMEM
SEMAPHORE: Final = MemorySpace.SEMAPHORE
VMEM_SHARED: Final = MemorySpace.VMEM_SHARED
PARALLEL, ARBITRARY = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.ARBITRARY
CORE_PARALLEL, SUBCORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL, GridDimensionSemantics.SUBCORE_PARALLEL


class Dim(NamedTuple):
    """An axis of a block: its length, whether the index counts elements, whether the axis stays, padding."""

    size: int
    elements: bool
    stays: bool
    padding: tuple[int, int]


def read_dims(spec: BlockSpec, shape: tuple[Any, ...]) -> tuple[Dim, ...]:
    """The axes of the blocks of an array of a shape.

    Raises:
      ValueError: the ranks of the block and of the array differ.
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
            size = known_length(entry.block_size, "the length of a block")
            found.append(Dim(size, True, True, tuple(entry.padding)))  # type: ignore[arg-type]
        elif isinstance(entry, BoundedSlice):
            raise NotImplementedError("blocks of varying length (BoundedSlice) are not supported")
        elif isinstance(entry, Indirect):
            raise NotImplementedError(
                "blocks of positions that an array chooses (Indirect) are not supported; gather before the kernel, or read"
                " ref[indices] in it"
            )
        else:
            size = entry.block_size if isinstance(entry, Blocked) else entry
            found.append(Dim(known_length(size, "the length of a block"), False, True, (0, 0)))
    return tuple(found)


def known_length(n: Any, what: str) -> Any:
    """A length as a Python integer, whose arithmetic does not overflow; symbolic ones unchanged.

    Raises:
      TypeError: it is not an integer; `what` names it.
    """
    return dims.integer(n, what) if dims.is_constant_dim(n) else n


def read_grid(grid: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """(sizes, names or None) of the axes of a grid."""
    entries = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    named = [e if isinstance(e, tuple) else (None, e) for e in entries]
    sizes = tuple([known_length(n, "the size of an axis of a grid") for _, n in named])
    if any(isinstance(n, int) and n < 0 for n in sizes):
        raise ValueError(f"the sizes of a grid are not negative, got {entries}")
    return sizes, tuple(name for name, _ in named)
