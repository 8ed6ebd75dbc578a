"""Kernels for GPUs with plain loads and stores, copies, barriers and matrix products
(`jax.experimental.pallas.mosaic_gpu`).

Blocks of the grid, blocks of a cluster and threads run one after the other, each to its end. So a barrier that needs
another thread first is an error. Layouts of registers and memory do not change values and are left out.
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from bedrax import lax, pytree
from bedrax import numpy as jnp
from bedrax.core.avals import ShapedArray
from bedrax.core.defining import named as named_function
from bedrax.pallas import copies, masked
from bedrax.pallas.calls import Blocks, scratch_memory
from bedrax.pallas.cores import on_cores
from bedrax.pallas.inside import allocate, assert_while_running, in_grid, named, position, when
from bedrax.pallas.modes import force_gpu_interpret_mode, interpreted, set_gpu_interpret_mode
from bedrax.pallas.specs import BlockSpec as _BlockSpec
from bedrax.pallas.specs import CompilerParams as _CompilerParams
from bedrax.pallas.specs import InterpretGPUParams, MemoryRef, SemaphoreType
from bedrax.state import Ref, freeze, new_ref
from bedrax.state.operations import as_view

__all__ = [
    "ACC",
    "Barrier",
    "BlockSpec",
    "CompilerParams",
    "GMEM",
    "InterpretGPUParams",
    "Layout",
    "LoweringSemantics",
    "MemorySpace",
    "Mesh",
    "NDLoopInfo",
    "OOBFillMode",
    "REGS",
    "SMEM",
    "SemaphoreType",
    "TraceScope",
    "WGMMAAccumulatorRef",
    "atomic_add",
    "atomic_and",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xor",
    "barrier_arrive",
    "barrier_arrive_and_wait",
    "barrier_test",
    "barrier_wait",
    "broadcasted_iota",
    "commit_smem",
    "commit_smem_to_gmem_group",
    "copy_gmem_to_smem",
    "copy_smem_to_gmem",
    "emit_pipeline",
    "find_swizzle",
    "force_gpu_interpret_mode",
    "kernel",
    "layout_cast",
    "load",
    "max",
    "min",
    "mma",
    "nd_loop",
    "planar_snake",
    "prod",
    "semaphore_signal",
    "semaphore_wait",
    "set_gpu_interpret_mode",
    "set_max_registers",
    "store",
    "sum",
    "wait_gmem_to_smem",
    "wait_smem_to_gmem",
    "wgmma",
    "wgmma_accumulator_load",
    "wgmma_wait",
]


class MemorySpace(enum.Enum):
    """Memories of a GPU. A member called with a shape and a dtype is memory for such an array.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref, total_ref):
      ...     total_ref[...] = x_ref[...].sum()
      ...     out_ref[...] = x_ref[...] / total_ref[...]
      ...
      >>> run(body, jnp.ones(4), jnp.ones(4), scratch_types=[plgpu.MemorySpace.SMEM((), jnp.float32)])
      Array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """

    GMEM = "gmem"
    SMEM = "smem"
    REGS = "regs"

    def __call__(self, shape: Sequence[int], dtype: Any, *, transforms: Sequence[Any] = ()) -> MemoryRef:
        """Memory of this kind for an array; `transforms` are layouts, and must be empty."""
        if transforms:
            raise NotImplementedError(f"{self.name}: memory has one layout here, leave transforms={transforms} out")
        return MemoryRef(ShapedArray(tuple(shape), dtype), self)


GMEM: Final = MemorySpace.GMEM
SMEM: Final = MemorySpace.SMEM
REGS: Final = MemorySpace.REGS


class OOBFillMode(enum.IntEnum):
    """The values that a copy reads outside of an array.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref, shared_ref):
      ...     plgpu.copy_gmem_to_smem(x_ref, shared_ref, oob_mode=plgpu.OOBFillMode.PROMISE_IN_BOUNDS)
      ...     plgpu.wait_gmem_to_smem(0)
      ...     out_ref[...] = shared_ref[...]
      ...
      >>> run(body, jnp.arange(2), jnp.array([3, 4]), scratch_types=[plgpu.SMEM((2,), jnp.int32)])
      Array([3, 4], dtype=int32)
    """

    UNDEFINED = 0
    PROMISE_IN_BOUNDS = 1
    ZEROS = 2


class LoweringSemantics(enum.Enum):
    """Whether a compiler treats a kernel as a program of each lane or of groups of warps.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Lane).lowering_semantics
      <LoweringSemantics.Lane: 1>
    """

    Lane = 1
    Warpgroup = 2


class TraceScope(enum.Enum):
    """The threads in a profile.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> plgpu.CompilerParams(profile_trace_scope=plgpu.TraceScope.WARP).profile_trace_scope
      <TraceScope.WARP: 'warp'>
    """

    WARP = "warp"
    WARPGROUP = "warpgroup"


class Layout(enum.Enum):
    """The layout of the elements of an array in registers. There are no registers here, so a layout changes nothing.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> plgpu.layout_cast(jnp.arange(3), plgpu.Layout.WG_STRIDED)
      Array([0, 1, 2], dtype=int32)
    """

    MMA_ACC, MMA_LHS, MMA_RHS, SMEM_GMEM_COPY, TCGEN05, TCGEN05_M64_COLLECTIVE = range(6)
    TCGEN05_M64_COLLECTIVE_NATIVE, TCGEN05_TMEM_NATIVE, TCGEN05_TRANSPOSED, TILED, TMA_INDICES, TMA_INDICES_4 = range(
        6, 12
    )
    WGMMA, WGMMA_8BIT, WGMMA_TRANSPOSED, WGMMA_UPCAST_2X, WGMMA_UPCAST_4X, WG_SPLAT, WG_STRIDED = range(12, 19)


@dataclass(frozen=True, kw_only=True)
class CompilerParams(_CompilerParams):
    """Options for the compiler of kernels for GPUs. They are stored only: the compiler does not run here.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> params = plgpu.CompilerParams(approx_math=True)
      >>> params.max_concurrent_steps
      1
      >>> run(lambda x_ref, out_ref: out_ref.set(x_ref[...] + 1), jnp.arange(2), jnp.arange(2), compiler_params=params)
      Array([1, 2], dtype=int32)
    """

    approx_math: bool = False
    dimension_semantics: Sequence[Any] | None = None
    max_concurrent_steps: int = 1
    unsafe_no_auto_barriers: bool = False
    reduction_scratch_bytes: int = 2048
    profile_space: int = 0
    profile_dir: str = ""
    profile_trace_scope: TraceScope = TraceScope.WARPGROUP
    profile_bounds_check: bool = False
    lowering_semantics: LoweringSemantics = LoweringSemantics.Warpgroup
    skip_device_barrier: bool = False
    is_multi_process: bool = False


@dataclass
class BlockSpec(_BlockSpec):
    """The part of an array in one run; `block_shape`, `index_map`, `memory_space` are those of `pl.BlockSpec`.

    Attributes:
      transforms, collective_axes: none; others raise NotImplementedError, because memory has one layout and blocks run
        one after the other.
      delay_release: the number of steps that a block is kept after its own.
      oob_fill_mode: the values outside of the array.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> rows = plgpu.BlockSpec((1, 2), lambda i: (i, 0), delay_release=1)
      >>> rows.block_shape
      (1, 2)
      >>> plgpu.BlockSpec((1, 2), lambda i: (i, 0), collective_axes=("x",))
      Traceback (most recent call last):
      ...
      NotImplementedError: BlockSpec: memory has one layout here, and blocks of a cluster follow one another; ...
    """

    transforms: Sequence[Any] = ()
    delay_release: int = 0
    collective_axes: tuple[Hashable, ...] | None = None
    oob_fill_mode: OOBFillMode = OOBFillMode.ZEROS

    def __post_init__(self) -> None:
        if self.transforms or self.collective_axes:
            raise NotImplementedError(
                "BlockSpec: memory has one layout here, and blocks of a cluster follow one another; leave transforms and"
                f" collective_axes out, got {self.transforms} and {self.collective_axes}"
            )


@dataclass(frozen=True, kw_only=True)
class Barrier:
    """Memory for barriers: each releases waiting threads after a number of arrivals.

    Attributes:
      num_arrivals: the number of copies and threads that arrive before a wait ends.
      num_barriers: the shape of an array of barriers; () for one.
      orders_tensor_core: for units that compute in parallel to threads; there are none here.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref, shared_ref, barrier_ref):
      ...     for i in range(2):
      ...         plgpu.copy_gmem_to_smem(x_ref.at[i], shared_ref.at[i], barrier_ref)
      ...     plgpu.barrier_wait(barrier_ref)  # two copies have arrived
      ...     out_ref[...] = shared_ref[...]
      ...
      >>> memory = [plgpu.SMEM((2,), jnp.int32), plgpu.Barrier(num_arrivals=2)]
      >>> run(body, jnp.arange(2), jnp.array([3, 4]), scratch_types=memory)
      Array([3, 4], dtype=int32)
    """

    num_arrivals: int = 1
    num_barriers: int | Sequence[int] = ()
    orders_tensor_core: bool = False

    @property
    def dtype(self) -> Any:
        return np.dtype(np.int32)

    @property
    def memory_space(self) -> Any:
        return self

    starts_as_zero = True

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of barriers."""
        return (self.num_barriers,) if isinstance(self.num_barriers, int) else tuple(self.num_barriers)

    @property
    def inner_aval(self) -> ShapedArray:
        """The type of the array of barriers: the numbers of arrivals."""
        return ShapedArray(self.shape, self.dtype)


@dataclass(frozen=True)
class WGMMAAccumulatorRef:
    """Memory for the sums of matrix products; it starts as 0, or as the argument of `init`.

    Attributes:
      shape: the shape of the product.
      dtype: the dtype of the sums.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref):
      ...     def product(acc_ref):
      ...         plgpu.wgmma(acc_ref, x_ref, x_ref)
      ...         out_ref[...] = acc_ref[...]
      ...     pl.run_scoped(product, plgpu.WGMMAAccumulatorRef.init(jnp.ones((2, 2))))
      ...
      >>> run(body, jnp.eye(2), jnp.array([[1., 2.], [3., 4.]]))
      Array([[ 8., 11.],
             [16., 23.]], dtype=float32)

      >>> def body(x_ref, out_ref):
      ...     def product(acc_ref):
      ...         plgpu.wgmma(acc_ref, x_ref, x_ref)
      ...         out_ref[...] = acc_ref[...]
      ...     pl.run_scoped(product, plgpu.ACC((2, 2)))
      ...
      >>> run(body, jnp.eye(2), jnp.array([[1., 2.], [3., 4.]]))
      Array([[ 7., 10.],
             [15., 22.]], dtype=float32)
    """

    shape: tuple[int, int]
    dtype: Any = np.float32
    first: Any = field(default=None, repr=False, compare=False)

    memory_space = MemorySpace.REGS
    starts_as_zero = True

    @property
    def inner_aval(self) -> Any:
        return ShapedArray(tuple(self.shape), np.dtype(self.dtype))

    @classmethod
    def init(cls, array: Any) -> WGMMAAccumulatorRef:
        """Memory like an array, with the values of the array."""
        return cls(tuple(array.shape), array.dtype, array)


ACC = WGMMAAccumulatorRef


@dataclass(frozen=True, kw_only=True)
class Mesh:
    """Axes of a grid, of clusters of its blocks, and of threads.

    Attributes:
      grid, grid_names: sizes and names.
      cluster, cluster_names: sizes and names.
      num_threads, thread_name: size and name of the axis of threads, or None.
      kernel_name: the name in messages.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> plgpu.Mesh(grid=(2, 3), grid_names=("i", "j"), num_threads=2, thread_name="t").shape
      {'i': 2, 'j': 3, 't': 2}
    """

    grid: Sequence[int] = ()
    grid_names: Sequence[str] = ()
    cluster: Sequence[int] = ()
    cluster_names: Sequence[str] = ()
    num_threads: int | None = None
    thread_name: str | None = None
    kernel_name: str | None = None

    def __post_init__(self) -> None:
        if len(self.grid) != len(self.grid_names) or len(self.cluster) != len(self.cluster_names):
            raise ValueError(f"Mesh: there is a name per axis of grid and cluster, got {self}")
        if (self.num_threads is None) != (self.thread_name is None):
            raise ValueError(f"Mesh: num_threads and thread_name must be given together, got {self}")

    @property
    def blocks(self) -> dict[Hashable, int]:
        """The axes of blocks: those of the grid, and of clusters."""
        return dict(zip((*self.grid_names, *self.cluster_names), (*self.grid, *self.cluster), strict=True))

    @property
    def shape(self) -> dict[Hashable, int]:
        """All axes: name -> size."""
        return {**self.blocks, **({self.thread_name: self.num_threads} if self.thread_name is not None else {})}  # type: ignore[dict-item]


def kernel(
    body: Callable[..., None] | None = None,
    out_shape: Any = None,
    *,
    out_type: Any = (),
    scratch_types: Any = (),
    scratch_shapes: Any = None,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    grid: tuple[int, ...] = (),
    grid_names: tuple[str, ...] = (),
    cluster: tuple[int, ...] = (),
    cluster_names: tuple[str, ...] = (),
    num_threads: int | None = None,
    thread_name: str | None = None,
    interpret: Any = None,
    debug: bool = False,
    kernel_name: str | None = None,
) -> Any:
    """Returns a function that runs a kernel for GPUs at every position of a grid, one after the other.

    Args:
      body: called with a reference to each argument, then to each result, then the scratch memory. `jax.lax.axis_index`
        of the names of axes returns its position. None: the result is a decorator.
      out_type: a tree of objects with a shape and a dtype; the results have its structure. `out_shape` is its old name.
      scratch_types: memory of each block, which its threads share: a sequence, or a dictionary of keyword arguments.
        `scratch_shapes` is its old name.
      grid, grid_names, cluster, cluster_names, num_threads, thread_name, kernel_name: see `Mesh`.
      interpret: true, or `InterpretGPUParams`. Kernels are not compiled here.
      debug: print the types of arguments at each call.
      compiler_params, cost_estimate: for a compiler; not used.

    Raises:
      NotImplementedError: a call without an option that selects interpretation.
      ValueError: axes without names.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> def body(x_ref, out_ref, shared_ref):
      ...     i = lax.axis_index("rows")
      ...     shared_ref[...] = x_ref[i]
      ...     out_ref[i] = shared_ref[...] * 10 + i
      ...
      >>> x, memory = jnp.arange(4).reshape(2, 2), [plgpu.SMEM((2,), jnp.int32)]
      >>> f = plgpu.kernel(body, out_type=x, scratch_types=memory, grid=(2,), grid_names=("rows",), interpret=True)
      >>> f(x)
      Array([[ 0, 10],
             [21, 31]], dtype=int32)
    """
    out_type = out_type if out_shape is None else out_shape
    scratch_types = scratch_types if scratch_shapes is None else scratch_shapes
    if body is None:
        return functools.partial(
            kernel,
            out_type=out_type,
            scratch_types=scratch_types,
            compiler_params=compiler_params,
            cost_estimate=cost_estimate,
            grid=grid,
            grid_names=grid_names,
            cluster=cluster,
            cluster_names=cluster_names,
            num_threads=num_threads,
            thread_name=thread_name,
            interpret=interpret,
            debug=debug,
            kernel_name=kernel_name,
        )
    mesh = Mesh(
        grid=grid,
        grid_names=grid_names,
        cluster=cluster,
        cluster_names=cluster_names,
        num_threads=num_threads,
        thread_name=thread_name,
        kernel_name=kernel_name or named(body),
    )
    threads = {} if thread_name is None else {thread_name: num_threads}
    is_ref = lambda x: isinstance(x, Ref)

    def run(*args):
        as_ref = lambda x: x if is_ref(x) else new_ref(lax.asarray(x), memory_space=GMEM)
        refs, made = pytree.tree_map(as_ref, args, is_leaf=is_ref), allocate(out_type)
        if debug:
            types = pytree.tree_map(lambda ref: ref.aval.short(), (refs, made), is_leaf=is_ref)
            print(f"kernel {mesh.kernel_name}: axes {mesh.shape}, arguments and results {types}")
        outs = made if isinstance(out_type, (tuple, list)) else (made,)

        def block():
            scratch, by_name = scratch_memory(scratch_types)
            on_cores(threads, lambda: body(*refs, *outs, *scratch, **by_name))  # type: ignore[arg-type]

        on_cores(mesh.blocks, block)
        return pytree.tree_map(freeze, made, is_leaf=is_ref)

    return interpreted(f"kernel {mesh.kernel_name}", run, interpret)


# ---- loads, stores, arithmetic


def load(src: Ref, idx: Any = None, *, layout: Any = None, optimized: bool = True) -> Any:
    """``src[idx]``, of a reference or a view of one.

    Args:
      idx: a NumPy-style index; None: all.
      layout, optimized: for a compiler; not used.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> run(lambda x_ref, out_ref: out_ref.set(plgpu.load(x_ref.at[1])), jnp.arange(2), jnp.array([[1, 2], [3, 4]]))
      Array([3, 4], dtype=int32)
    """
    return as_view(src)[... if idx is None else idx]


def store(dst: Ref, value: Any, *, optimized: bool = True) -> None:
    """Compute ``dst[...] = value``.

    Args:
      dst: a reference, or a view of one.
      value: an array or number; it is broadcast to the shape and converted to the dtype of `dst`.
      optimized: for a compiler; no effect here.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> run(lambda x_ref, out_ref: plgpu.store(out_ref, x_ref[...] > 3), jnp.array([True, True]), jnp.array([3, 4]))
      Array([False,  True], dtype=bool)
    """
    masked.store(dst, value)


_ATOMIC_ARGUMENTS: Final = """

Args:
  ref: a reference, or a view of one.
  val: an array or number; it is broadcast to the shape and converted to the dtype of `ref`.
  optimized: for a compiler; no effect here.
"""


def _atomic(name: str, doc: str, example: str) -> Callable[..., None]:
    change = getattr(masked, name)

    def operation(ref: Ref, val: Any, *, optimized: bool = True) -> None:
        change(ref, None, val)

    return named_function(operation, name, __name__, f"Compute ``ref[...] = {doc}``.{_ATOMIC_ARGUMENTS}", example)


atomic_add: Final = _atomic(
    "atomic_add",
    "ref[...] + val",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import mosaic_gpu as plgpu
    >>> def run(body, out, *args, **options):
    ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
    ...

    >>> def body(out_ref):
    ...     plgpu.store(out_ref, 5)
    ...     plgpu.atomic_add(out_ref, 3)
    ...
    >>> run(body, jnp.arange(2))
    Array([8, 8], dtype=int32)
    """,
)
atomic_max: Final = _atomic(
    "atomic_max",
    "maximum(ref[...], val)",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import mosaic_gpu as plgpu
    >>> def run(body, out, *args, **options):
    ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
    ...

    >>> def body(out_ref):
    ...     plgpu.store(out_ref, 5)
    ...     plgpu.atomic_max(out_ref, jnp.array([3, 7]))
    ...
    >>> run(body, jnp.arange(2))
    Array([5, 7], dtype=int32)
    """,
)
atomic_min: Final = _atomic(
    "atomic_min",
    "minimum(ref[...], val)",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import mosaic_gpu as plgpu
    >>> def run(body, out, *args, **options):
    ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
    ...

    >>> def body(out_ref):
    ...     plgpu.store(out_ref, 5)
    ...     plgpu.atomic_min(out_ref, jnp.array([3, 7]))
    ...
    >>> run(body, jnp.arange(2))
    Array([3, 5], dtype=int32)
    """,
)
atomic_and: Final = _atomic(
    "atomic_and",
    "ref[...] & val",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import mosaic_gpu as plgpu
    >>> def run(body, out, *args, **options):
    ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
    ...

    >>> def body(out_ref):
    ...     plgpu.store(out_ref, 0b0110)
    ...     plgpu.atomic_and(out_ref, 0b0011)
    ...
    >>> run(body, jnp.arange(1))
    Array([2], dtype=int32)
    """,
)
atomic_or: Final = _atomic(
    "atomic_or",
    "ref[...] | val",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import mosaic_gpu as plgpu
    >>> def run(body, out, *args, **options):
    ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
    ...

    >>> def body(out_ref):
    ...     plgpu.store(out_ref, 0b0110)
    ...     plgpu.atomic_or(out_ref, 0b0011)
    ...
    >>> run(body, jnp.arange(1))
    Array([7], dtype=int32)
    """,
)
atomic_xor: Final = _atomic(
    "atomic_xor",
    "ref[...] ^ val",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import mosaic_gpu as plgpu
    >>> def run(body, out, *args, **options):
    ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
    ...

    >>> def body(out_ref):
    ...     plgpu.store(out_ref, 0b0110)
    ...     plgpu.atomic_xor(out_ref, 0b0011)
    ...
    >>> run(body, jnp.arange(1))
    Array([5], dtype=int32)
    """,
)


def _reduction(name: str, doc: str, example: str) -> Callable[..., Any]:
    reduce = getattr(jnp, name)

    def operation(x: Any, axis: Any = None, keepdims: bool = False, *, accumulator_ilp: int | None = None) -> Any:
        return reduce(x, axis=axis, keepdims=keepdims)

    text = f"""{doc} over axes of an array.

    Args:
      x: an array.
      axis: an int, a sequence of ints, or None for all.
      keepdims: keep these axes, with length 1.
      accumulator_ilp: the number of partial results on a GPU; not used.
    """
    return named_function(operation, name, __name__, text, example)


sum: Final = _reduction(
    "sum",
    "The sum",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import mosaic_gpu as plgpu
    >>> def run(body, out, *args, **options):
    ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
    ...

    >>> run(lambda x_ref, out_ref: out_ref.set(plgpu.sum(x_ref[...], axis=0)), jnp.arange(2), jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """,
)
max: Final = _reduction(
    "max",
    "The largest element",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import mosaic_gpu as plgpu
    >>> def run(body, out, *args, **options):
    ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
    ...

    >>> run(lambda x_ref, out_ref: out_ref.set(plgpu.max(x_ref[...], axis=1)), jnp.arange(2), jnp.array([[1, 2], [3, 4]]))
    Array([2, 4], dtype=int32)
    """,
)
min: Final = _reduction(
    "min",
    "The least element",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import mosaic_gpu as plgpu
    >>> def run(body, out, *args, **options):
    ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
    ...

    >>> run(lambda x_ref, out_ref: out_ref.set(plgpu.min(x_ref[...], axis=1)), jnp.arange(2), jnp.array([[1, 2], [3, 4]]))
    Array([1, 3], dtype=int32)
    """,
)
prod: Final = _reduction(
    "prod",
    "The product",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import mosaic_gpu as plgpu
    >>> def run(body, out, *args, **options):
    ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
    ...

    >>> run(lambda x_ref, out_ref: out_ref.set(plgpu.prod(x_ref[...], axis=0)), jnp.arange(2), jnp.array([[1, 2], [3, 4]]))
    Array([3, 8], dtype=int32)
    """,
)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *, layout: Any = None) -> Any:
    """Return an array whose elements are their own positions along an axis.

    Args:
      dtype: the dtype of the result, of numbers.
      shape: the shape of the result.
      dimension: the axis along which positions are counted.
      layout: how a GPU arranges the array in registers; no effect here.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> plgpu.broadcasted_iota(jnp.int32, (2, 3), 1, layout=plgpu.Layout.WGMMA)
      Array([[0, 1, 2],
             [0, 1, 2]], dtype=int32)
    """
    return lax.broadcasted_iota(dtype, tuple(shape), dimension)


def layout_cast(x: Any, new_layout: Any) -> Any:
    """Return `x`. A GPU would rearrange it in registers.

    Args:
      x: an array.
      new_layout: how a GPU arranges the array in registers; no effect here.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> x = plgpu.broadcasted_iota(jnp.int32, (2, 2), 0)
      >>> plgpu.layout_cast(x, plgpu.Layout.WGMMA) is x  # elements have no place in registers here
      True
    """
    return x


def mma(acc: Any, a: Any, b: Any, /) -> Any:
    """Return ``acc + a @ b``.

    Args:
      acc: a matrix ``[m, n]`` of floats.
      a, b: matrices ``[m, k]`` and ``[k, n]`` of one dtype.

    Returns:
      A matrix ``[m, n]`` with the dtype of `acc`. The product has this dtype, too.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> plgpu.mma(jnp.ones((2, 2)), jnp.array([[1., 2.], [3., 4.]]), jnp.eye(2))
      Array([[2., 3.],
             [4., 5.]], dtype=float32)
    """
    return lax.add(acc, lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=acc.dtype))


def _held(x: Any) -> Any:
    return as_view(x)[...] if isinstance(x, Ref) else x


def wgmma(acc: Ref, a: Any, b: Any) -> None:
    """``acc[...] += a @ b``.

    Args:
      acc: a reference to memory of `WGMMAAccumulatorRef`.
      a, b: references to matrices, or views; `a` may be an array.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, y_ref, out_ref):
      ...     def product(acc_ref):
      ...         plgpu.wgmma(acc_ref, x_ref[...] * 2, y_ref)
      ...         plgpu.wgmma_wait(0)
      ...         out_ref[...] = acc_ref[...]
      ...     pl.run_scoped(product, plgpu.ACC((2, 2)))
      ...
      >>> run(body, jnp.eye(2), jnp.eye(2), jnp.array([[1., 2.], [3., 4.]]))
      Array([[2., 4.],
             [6., 8.]], dtype=float32)
    """
    view = as_view(acc)
    view[...] = mma(view[...], _held(a), _held(b))


def wgmma_wait(n: int) -> None:
    """Wait until at most `n` matrix products are pending: all are complete after their call.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref):
      ...     def product(acc_ref):
      ...         for _ in range(2):
      ...             plgpu.wgmma(acc_ref, x_ref, x_ref)
      ...         plgpu.wgmma_wait(1)  # the first product is done
      ...         plgpu.wgmma_wait(0)  # both are
      ...         out_ref[...] = acc_ref[...]
      ...     pl.run_scoped(product, plgpu.ACC((2, 2)))
      ...
      >>> run(body, jnp.eye(2), 3 * jnp.eye(2))
      Array([[18.,  0.],
             [ 0., 18.]], dtype=float32)
    """
    _count("wgmma_wait", n)


def wgmma_accumulator_load(acc: Ref, *, wait_n: int | None = 0) -> Any:
    """Return the value of an accumulator.

    Args:
      acc: a reference to the accumulator (memory of `ACC`), or a view of it.
      wait_n: first call ``wgmma_wait(wait_n)``; None: do not wait.

    Raises:
      ValueError: `wait_n` is negative.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref):
      ...     def product(acc_ref):
      ...         plgpu.wgmma(acc_ref, x_ref, x_ref)
      ...         out_ref[...] = plgpu.wgmma_accumulator_load(acc_ref)
      ...     pl.run_scoped(product, plgpu.ACC((2, 2)))
      ...
      >>> run(body, jnp.eye(2), 3 * jnp.eye(2))
      Array([[9., 0.],
             [0., 9.]], dtype=float32)
    """
    if wait_n is not None:
        wgmma_wait(wait_n)
    return as_view(acc)[...]


# ---- copies and barriers


def _count(what: str, n: int) -> None:
    if n < 0:
        raise ValueError(f"{what}: a number that is not negative is needed, got {n}")


def _if(predicate: Any, run: Callable[[], None]) -> None:
    when(True if predicate is None else predicate)(run)


def copy_gmem_to_smem(
    src: Ref,
    dst: Ref,
    barrier: Ref | None = None,
    *,
    collective_axes: Any = None,
    leader_tracked: Any = None,
    oob_mode: OOBFillMode | None = None,
    predicate: Any = None,
) -> None:
    """Copy, and arrive at a barrier.

    Args:
      src, dst: references of one shape and dtype, or views.
      barrier: a reference to a barrier, or None: then `wait_gmem_to_smem` waits.
      predicate: None, or a boolean: whether to copy.
      oob_mode: None or `OOBFillMode.PROMISE_IN_BOUNDS`; others raise NotImplementedError.
      collective_axes, leader_tracked: None; others raise NotImplementedError, because blocks run one after the other.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref, shared_ref, barrier_ref):
      ...     plgpu.copy_gmem_to_smem(x_ref.at[1:], shared_ref, barrier_ref)
      ...     plgpu.barrier_wait(barrier_ref)
      ...     out_ref[...] = shared_ref[...] * 2
      ...
      >>> memory = [plgpu.SMEM((2,), jnp.int32), plgpu.Barrier()]
      >>> run(body, jnp.arange(2), jnp.array([3, 4, 5]), scratch_types=memory)
      Array([ 8, 10], dtype=int32)
    """
    if (
        collective_axes is not None
        or leader_tracked is not None
        or oob_mode not in (None, OOBFillMode.PROMISE_IN_BOUNDS)
    ):
        raise NotImplementedError(
            "copy_gmem_to_smem: blocks follow one another and copies are inside of arrays here; leave collective_axes,"
            " leader_tracked and oob_mode out"
        )

    def run():
        copies.sync_copy(src, dst)
        if barrier is not None:
            barrier_arrive(barrier)

    _if(predicate, run)


def copy_smem_to_gmem(
    src: Ref, dst: Ref, predicate: Any = None, *, commit_group: bool = True, reduction_op: Any = None
) -> None:
    """Copy to the arguments of a kernel.

    Args:
      src, dst: references of one shape and dtype, or views.
      predicate: None, or a boolean: whether to copy.
      commit_group: whether `wait_smem_to_gmem` waits for it; it is always complete.
      reduction_op: None, ``"add"``, ``"min"``, ``"max"``, ``"and"``, ``"or"`` or ``"xor"``: the combination with the
        old values.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref, shared_ref):
      ...     shared_ref[...] = x_ref[...]
      ...     plgpu.commit_smem()
      ...     plgpu.copy_smem_to_gmem(shared_ref, out_ref)
      ...     plgpu.copy_smem_to_gmem(shared_ref, out_ref, reduction_op="add")
      ...     plgpu.wait_smem_to_gmem(0)
      ...
      >>> run(body, jnp.arange(2), jnp.array([3, 4]), scratch_types=[plgpu.SMEM((2,), jnp.int32)])
      Array([6, 8], dtype=int32)
    """
    how = getattr(reduction_op, "name", reduction_op)
    joins = {
        "add": atomic_add,
        "min": atomic_min,
        "max": atomic_max,
        "and": atomic_and,
        "or": atomic_or,
        "xor": atomic_xor,
    }
    if how is not None and str(how).lower() not in joins:
        raise NotImplementedError(f"copy_smem_to_gmem: reduction_op is one of {', '.join(joins)}, got {reduction_op}")
    write = copies.sync_copy if how is None else lambda s, d: joins[str(how).lower()](d, as_view(s)[...])
    _if(predicate, lambda: write(src, dst))


def commit_smem() -> None:
    """Make stores to shared memory visible to copies. Here they are always visible.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref, shared_ref):
      ...     shared_ref[...] = x_ref[...] + 1
      ...     plgpu.commit_smem()  # the copy reads the stored values
      ...     plgpu.copy_smem_to_gmem(shared_ref, out_ref)
      ...
      >>> run(body, jnp.arange(2), jnp.array([3, 4]), scratch_types=[plgpu.SMEM((2,), jnp.int32)])
      Array([4, 5], dtype=int32)
    """


def commit_smem_to_gmem_group() -> None:
    """Let `wait_smem_to_gmem` wait for the copies so far: they are complete.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref, shared_ref):
      ...     shared_ref[...] = x_ref[...] + 1
      ...     for i in range(2):
      ...         plgpu.copy_smem_to_gmem(shared_ref.at[i], out_ref.at[1 - i], commit_group=False)
      ...     plgpu.commit_smem_to_gmem_group()  # one group of two copies
      ...     plgpu.wait_smem_to_gmem(0)
      ...
      >>> run(body, jnp.arange(2), jnp.array([3, 4]), scratch_types=[plgpu.SMEM((2,), jnp.int32)])
      Array([5, 4], dtype=int32)
    """


def wait_smem_to_gmem(n: int, wait_read_only: bool = False) -> None:
    """Wait until at most `n` groups of copies are pending. Here, a copy is complete after its call.

    Args:
      n: a number of groups of copies, not negative.
      wait_read_only: wait only until the sources are read; no effect here.

    Raises:
      ValueError: `n` is negative.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref, shared_ref):
      ...     for i in range(2):
      ...         shared_ref[...] = x_ref[i]
      ...         plgpu.copy_smem_to_gmem(shared_ref, out_ref.at[i])
      ...         plgpu.wait_smem_to_gmem(0, wait_read_only=True)  # the memory is free for the next row
      ...
      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> run(body, x, x, scratch_types=[plgpu.SMEM((2,), jnp.int32)])
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    _count("wait_smem_to_gmem", n)


def wait_gmem_to_smem(n: int) -> None:
    """Wait until at most `n` copies without a barrier are pending: all are complete after their call.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref, shared_ref):
      ...     plgpu.copy_gmem_to_smem(x_ref, shared_ref)
      ...     plgpu.wait_gmem_to_smem(0)
      ...     out_ref[...] = shared_ref[...]
      ...
      >>> run(body, jnp.arange(2), jnp.array([3, 4]), scratch_types=[plgpu.SMEM((2,), jnp.int32)])
      Array([3, 4], dtype=int32)
    """
    _count("wait_gmem_to_smem", n)


def _arrivals(what: str, barrier: Ref) -> tuple[Any, np.int32]:
    view = as_view(barrier)
    if not isinstance(view.aval.memory_space, Barrier) or view.shape:
        raise TypeError(f"{what}: a reference to a barrier is needed (memory of Barrier), got {view.aval.short()}")
    return view, np.int32(view.aval.memory_space.num_arrivals)


def barrier_arrive(barrier: Ref, *, predicate: Any = None) -> None:
    """Count an arrival at a barrier.

    Args:
      barrier: a reference to one barrier (memory of `Barrier`).
      predicate: a boolean scalar; if it is False, nothing is counted. None means True.

    Raises:
      TypeError: `barrier` is not a reference to one barrier.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(out_ref, barrier_ref):
      ...     for i in range(3):
      ...         plgpu.barrier_arrive(barrier_ref, predicate=i < 2)
      ...     out_ref[...] = plgpu.barrier_test(barrier_ref)
      ...
      >>> run(body, jnp.array(True), scratch_types=[plgpu.Barrier(num_arrivals=3)])
      Array(False, dtype=bool)
    """
    view, _ = _arrivals("barrier_arrive", barrier)
    _if(predicate, lambda: view.set(lax.add(view[...], np.int32(1))))


def barrier_test(barrier: Ref) -> Any:
    """Whether the number of arrivals is sufficient for a wait, a boolean scalar.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(out_ref, barrier_ref):
      ...     out_ref[0] = plgpu.barrier_test(barrier_ref)
      ...     plgpu.barrier_arrive(barrier_ref)
      ...     out_ref[1] = plgpu.barrier_test(barrier_ref)
      ...
      >>> run(body, jnp.array([True, True]), scratch_types=[plgpu.Barrier()])
      Array([False,  True], dtype=bool)
    """
    view, needed = _arrivals("barrier_test", barrier)
    return lax.ge(view[...], needed)


def barrier_wait(barrier: Ref) -> None:
    """Wait for the necessary number of arrivals; the next wait needs the same number again.

    Raises:
      jax.errors.JaxRuntimeError: there are too few arrivals: the missing threads run later.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(out_ref, barrier_ref):
      ...     plgpu.barrier_arrive(barrier_ref)
      ...     plgpu.barrier_wait(barrier_ref)
      ...     out_ref[...] = plgpu.barrier_test(barrier_ref)  # the next wait needs another arrival
      ...
      >>> run(body, jnp.array(True), scratch_types=[plgpu.Barrier()])
      Array(False, dtype=bool)
    """
    view, needed = _arrivals("barrier_wait", barrier)
    assert_while_running(
        "barrier_wait: fewer have arrived than the barrier needs, and nothing else runs that could arrive: blocks and"
        " threads of interpreted kernels follow one another",
        lax.ge(view[...], needed),
    )
    view[...] = lax.sub(view[...], needed)


def barrier_arrive_and_wait(barrier: Ref) -> None:
    """`barrier_arrive`, then `barrier_wait`.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref, shared_ref, barrier_ref):
      ...     shared_ref[...] = x_ref[...]
      ...     plgpu.barrier_arrive_and_wait(barrier_ref)
      ...     out_ref[...] = shared_ref[::-1]
      ...
      >>> memory = [plgpu.SMEM((2,), jnp.int32), plgpu.Barrier()]
      >>> run(body, jnp.arange(2), jnp.array([3, 4]), scratch_types=memory)
      Array([4, 3], dtype=int32)
    """
    barrier_arrive(barrier)
    barrier_wait(barrier)


def semaphore_signal(semaphore: Ref, inc: Any = 1, *, device_id: Any = None, memory_scope: str = "sys") -> None:
    """Add `inc` to a semaphore.

    Args:
      semaphore: a reference to one semaphore.
      inc: an int32 scalar.
      device_id: only None: kernels run on one device.
      memory_scope: ``"sys"`` or ``"gpu"``; both have the same effect.

    Raises:
      NotImplementedError: `device_id` is not None.
      ValueError: `memory_scope` is another string.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(out_ref, sem_ref):
      ...     plgpu.semaphore_signal(sem_ref, 3, memory_scope="gpu")
      ...     plgpu.semaphore_wait(sem_ref, 2)
      ...     out_ref[...] = pl.semaphore_read(sem_ref)
      ...
      >>> run(body, jnp.array(0), scratch_types=[plgpu.SemaphoreType.REGULAR])
      Array(1, dtype=int32)
    """
    _scope("semaphore_signal", memory_scope)
    copies.semaphore_signal(semaphore, inc, device_id=device_id)


def semaphore_wait(semaphore: Ref, value: Any = 1, *, decrement: bool = True, memory_scope: str = "sys") -> None:
    """`pl.semaphore_wait` with the memory for which a GPU waits.

    Args:
      semaphore, value, decrement: as in `pl.semaphore_wait`.
      memory_scope: ``"sys"`` or ``"gpu"``; both have the same effect.

    Raises:
      ValueError: `memory_scope` is another string.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(out_ref, sem_ref):
      ...     plgpu.semaphore_signal(sem_ref, 3)
      ...     plgpu.semaphore_wait(sem_ref, 2, decrement=False)
      ...     out_ref[...] = pl.semaphore_read(sem_ref)
      ...
      >>> run(body, jnp.array(0), scratch_types=[plgpu.SemaphoreType.REGULAR])
      Array(3, dtype=int32)
    """
    _scope("semaphore_wait", memory_scope)
    copies.semaphore_wait(semaphore, value, decrement=decrement)


def _scope(what: str, scope: str) -> None:
    if scope not in ("sys", "gpu"):
        raise ValueError(f"{what}: memory_scope is 'sys' or 'gpu', got {scope!r}")


def set_max_registers(n: int, *, action: str) -> None:
    """Set the number of registers of threads. Interpreted threads have no registers, so nothing changes.

    Args:
      n: a multiple of 8.
      action: ``"increase"`` or ``"decrease"``.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(x_ref, out_ref):
      ...     plgpu.set_max_registers(40, action="decrease")
      ...     out_ref[...] = x_ref[...]
      ...
      >>> run(body, jnp.arange(2), jnp.array([3, 4]))
      Array([3, 4], dtype=int32)
    """
    if action not in ("increase", "decrease") or n % 8:
        raise ValueError(f"set_max_registers: a multiple of 8, and 'increase' or 'decrease', got {n} and {action!r}")


# ---- loops


@dataclass(frozen=True)
class NDLoopInfo:
    """The position of a loop.

    Attributes:
      index: the position along each axis of its grid.
      local_index: the number of the step, counted from 0.
      num_local_steps: the number of steps of this index of the axes.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(out_ref):
      ...     @plgpu.nd_loop((2, 3), collective_axes="k")
      ...     def _(info):  # an NDLoopInfo
      ...         out_ref[info.index] = 10 * info.num_local_steps + info.local_index
      ...
      >>> run(body, jnp.zeros((2, 3), jnp.int32), grid=(4,), grid_names=("k",))
      Array([[20, 20, 10],
             [10, 21, 21]], dtype=int32)
    """

    index: tuple[Any, ...]
    local_index: Any
    num_local_steps: Any


def nd_loop(
    grid: Sequence[Any], *, collective_axes: Any, tiling: Sequence[int] | None = None, init_carry: Any = None
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator that runs a function over a grid; each index of named axes runs a part of the steps, in turns.

    Args:
      grid: sizes.
      collective_axes: a name of an axis, or a tuple of names; index `k` of `n` runs the steps ``k, k + n, ...``.
      tiling: None; others raise NotImplementedError.
      init_carry: None for a body ``info -> None``; else the body is ``(info, carry=...) -> carry``.

    Returns:
      A decorator whose result is the last carry.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> def body(out_ref):
      ...     @plgpu.nd_loop((2, 3), collective_axes="k")
      ...     def _(info):
      ...         out_ref[info.index] = lax.axis_index("k")
      ...
      >>> run(body, jnp.zeros((2, 3), jnp.int32), grid=(4,), grid_names=("k",))
      Array([[0, 1, 2],
             [3, 0, 1]], dtype=int32)
    """
    if tiling is not None:
        raise NotImplementedError("nd_loop: steps follow the order of the grid here; leave tiling out")
    sizes, count, first = tuple(grid), lax.axis_size(collective_axes), lax.axis_index(collective_axes)
    total = functools.reduce(lambda a, b: a * b, sizes, 1)
    steps = lax.div(lax.convert_element_type(total + count - 1, np.int32) - first, np.int32(count))

    def run(body: Callable[..., Any]) -> Any:
        def one(k, carry):
            k = lax.convert_element_type(k, np.int32)
            info = NDLoopInfo(tuple(position(first + k * np.int32(count), sizes)), k, steps)
            return body(info) if init_carry is None else body(info, carry=carry)

        return lax.fori_loop(0, steps, one, init_carry)

    return run


def planar_snake(lin_idx: Any, shape: tuple[Any, Any], minor_dim: int, tile_width: int) -> tuple[Any, Any]:
    """The position in a matrix of step number `lin_idx` of a walk that turns at the ends of tiles.

    The minor axis is cut into tiles of `tile_width`. In a tile the walk goes along the minor axis first, then one step
    along the major axis; every other tile passes the major axis backwards. The last tile may be narrower.

    Args:
      lin_idx: an integer.
      shape: two sizes.
      minor_dim: 0 or 1.
      tile_width: positive.

    Returns:
      (row, column).

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> [tuple(int(i) for i in plgpu.planar_snake(step, (2, 4), 1, 2)) for step in range(8)]
      [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3), (0, 2), (0, 3)]
    """
    if minor_dim not in (0, 1):
        raise ValueError(f"planar_snake: minor_dim is 0 or 1, got {minor_dim}")
    major = shape[1 - minor_dim]
    per_tile = tile_width * major
    full = shape[minor_dim] // tile_width
    whole = lin_idx < full * per_tile
    tile = jnp.where(whole, lin_idx // per_tile, full)
    width = jnp.where(whole, tile_width, jnp.maximum(shape[minor_dim] - full * tile_width, 1))
    rest = lin_idx - tile * per_tile
    along, across = rest // width, rest % width
    along = jnp.where(tile % 2 == 0, along, major - 1 - along)
    minor = tile * tile_width + across
    return (minor, along) if minor_dim == 0 else (along, minor)


def find_swizzle(minor_dim_bits: int, what: str = "") -> int:
    """Return the largest of 128, 64, 32 and 16 bytes that divides the length of a row.

    Args:
      minor_dim_bits: the length of a row (the last axis), in bits.
      what: the name of the array in the message of the error.

    Raises:
      ValueError: none of them does; the message has `what`.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu

      >>> plgpu.find_swizzle(64 * 8)
      64
    """
    for swizzle in (128, 64, 32, 16):
        if minor_dim_bits % (8 * swizzle) == 0:
            return swizzle
    raise ValueError(
        f"find_swizzle: rows of {minor_dim_bits} bits{f' of {what}' if what else ''} are not a multiple of 16 bytes"
    )


def emit_pipeline(
    body: Callable[..., Any],
    *,
    grid: tuple[Any, ...],
    in_specs: Sequence[_BlockSpec] = (),
    out_specs: Sequence[_BlockSpec] = (),
    max_concurrent_steps: int = 1,
    init_carry: Any = None,
) -> Callable[..., Any]:
    """Returns a function that runs a body at every position of a grid, on blocks of references.

    Args:
      body: called with the position, a tuple, then a reference to a block of each argument and each result, then the
        carry if there is one, which it returns.
      grid: sizes; the steps run one after the other, the last axis fastest.
      in_specs, out_specs: a `BlockSpec` for each argument and result.
      max_concurrent_steps: the number of overlapping steps on a device; positive.
      init_carry: None or the first carry.

    Returns:
      A function of the references, which returns the last carry.

    Examples:

      >>> from jax.experimental.pallas import mosaic_gpu as plgpu
      >>> def run(body, out, *args, **options):
      ...     return plgpu.kernel(body, out_type=out, interpret=plgpu.InterpretGPUParams(), **options)(*args)
      ...

      >>> rows = plgpu.BlockSpec((1, 2), lambda i: (i, 0))
      >>> def body(x_ref, out_ref, total_ref):
      ...     def step(index, x_row, out_row, carry):
      ...         out_row[...] = x_row[...] * 10
      ...         return carry + x_row[...].sum()
      ...     pipeline = plgpu.emit_pipeline(step, grid=(3,), in_specs=[rows], out_specs=[rows], init_carry=jnp.int32(0))
      ...     total_ref[...] = pipeline(x_ref, out_ref)
      ...
      >>> x = jnp.arange(6).reshape(3, 2)
      >>> run(body, (x, jnp.array(0)), x)
      (Array([[ 0, 10],
             [20, 30],
             [40, 50]], dtype=int32), Array(15, dtype=int32))
    """
    if max_concurrent_steps < 1:
        raise ValueError(f"emit_pipeline: max_concurrent_steps is positive, got {max_concurrent_steps}")
    specs, count, sizes = [*in_specs, *out_specs], len(in_specs), tuple(grid)

    def run(*refs: Ref) -> Any:
        if len(refs) != len(specs):
            raise ValueError(f"a pipeline of {len(specs)} specs is called with as many references, got {len(refs)}")
        views = [as_view(ref) for ref in refs]
        blocks = [Blocks.of(s, v.shape) for s, v in zip(specs, views, strict=True)]

        def one(n, carry):
            ids = position(n, sizes)
            with in_grid(ids, sizes):
                places = [b.start(ids, ()) for b in blocks]
                parts = [new_ref(b.take(b.pad(v[...]), p)) for b, v, p in zip(blocks, views, places, strict=True)]
                carry = body(tuple(ids), *parts, *(() if init_carry is None else (carry,)))
                written = itertools.islice(zip(blocks, views, places, parts, strict=True), count, None)
                for b, v, p, part in written:
                    v[...] = b.unpad(b.put(b.pad(v[...]), p, part[...]))
            return carry if init_carry is not None else None

        return lax.fori_loop(0, math.prod(sizes), one, init_carry)

    return run
