"""Pipelines inside of kernels: a loop over a grid, with blocks of larger references in its body."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bedrax import lax, pytree
from bedrax.core.avals import aval_of
from bedrax.pallas.calls import Blocks, specs_of
from bedrax.pallas.inside import grid_around, in_grid, position
from bedrax.pallas.specs import BlockSpec, Buffered, GridDimensionSemantics
from bedrax.state import Ref, new_ref
from bedrax.state.operations import as_view


@dataclass(frozen=True)
class PipelineStep:
    """The position of a pipeline in its grid.

    Attributes:
      index: the position along each axis, int32 scalars.
      local_index: the number of the step, counted by each core separately.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> row = pl.BlockSpec((1,), lambda i: (i,))
      >>> def kernel(x_ref, out_ref):
      ...     def step(at, x, out):  # `at` is a PipelineStep
      ...         out[...] = x[...] * 10 + at.index[0] + at.local_index
      ...     pltpu.emit_pipeline(step, grid=(3,), in_specs=[row], out_specs=[row], _explicit_indices=True)(x_ref, out_ref)
      ...
      >>> pl.pallas_call(kernel, jnp.arange(3), interpret=True)(jnp.arange(3))
      Array([ 0, 12, 24], dtype=int32)
    """

    index: tuple[Any, ...]
    local_index: Any


class BufferType(enum.Enum):
    """The use of a block in a pipeline: read, written, both, or nothing.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> pltpu.BufferedRef.output(pl.BlockSpec((8,), lambda i: (i,)), jnp.float32).buffer_type
      <BufferType.OUTPUT: 2>
    """

    INPUT = 1
    OUTPUT = 2
    INPUT_OUTPUT = 3
    MANUAL = 4


@dataclass(frozen=True)
class BufferedRef:
    """The buffers of a pipeline for the blocks of one reference: an entry of `allocations`.

    An interpreted pipeline copies each block at its step. The blocks of the first `prefetched_count` steps are
    those of `window_ref`. `BufferedRef.input`, `output`, `input_output` and `create` make one.

    Attributes:
      spec: a `BlockSpec`.
      buffer_type: a `BufferType`.
      in_buffer_count, out_buffer_count: the numbers of buffers of a device for reading and for writing.
      window_ref: None, or a reference to the stacked blocks that exist already.
      prefetched_count: the number of these blocks.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> buffer = pltpu.BufferedRef.input(pl.BlockSpec((8,), lambda i: (i,)), jnp.float32, buffer_count=3)
      >>> buffer.buffer_count, buffer.is_input, buffer.is_output
      (3, True, False)
    """

    spec: BlockSpec
    buffer_type: BufferType
    in_buffer_count: int = 0
    out_buffer_count: int = 0
    window_ref: Any = None
    prefetched_count: int = 0

    is_allocated = True  # it is its own memory

    @classmethod
    def create(
        cls,
        spec: BlockSpec,
        dtype_or_type: Any,
        buffer_type: BufferType,
        buffer_count: int | tuple[int, int],
        *,
        prefetched_count: int = 0,
    ) -> BufferedRef:
        """Buffers of a type.

        Args:
          spec: a `BlockSpec`.
          dtype_or_type: a dtype, or an object with one. The block of an interpreted pipeline has that of its array.
          buffer_type: a `BufferType`.
          buffer_count: the number of buffers; a pair is (for reading, for writing).
          prefetched_count: the number of blocks of `window_ref` before the pipeline begins.

        Raises:
          ValueError: a count is out of range.
        """
        if dtype_or_type is None:
            raise ValueError("BufferedRef: a dtype, or what has one, is needed as dtype_or_type, got None")
        Buffered(buffer_count, prefetched_count=prefetched_count)  # checks them
        reads, writes = buffer_count if isinstance(buffer_count, tuple) else (buffer_count, 1)
        if buffer_type is BufferType.OUTPUT:
            reads, writes = 0, reads
        elif buffer_type is not BufferType.INPUT_OUTPUT:
            writes = 0
        return cls(spec, buffer_type, reads, writes, None, prefetched_count)

    @classmethod
    def input(cls, spec: BlockSpec, dtype_or_type: Any, buffer_count: int = 2, **options: Any) -> BufferedRef:
        """Buffers for reading; the arguments are those of `create`."""
        return cls.create(spec, dtype_or_type, BufferType.INPUT, buffer_count, **options)

    @classmethod
    def output(cls, spec: BlockSpec, dtype_or_type: Any, buffer_count: int = 2, **options: Any) -> BufferedRef:
        """Buffers for writing; the arguments are those of `create`."""
        return cls.create(spec, dtype_or_type, BufferType.OUTPUT, buffer_count, **options)

    @classmethod
    def input_output(
        cls, spec: BlockSpec, dtype_or_type: Any, buffer_count: int | tuple[int, int] = (2, 1), **options: Any
    ) -> BufferedRef:
        """Buffers for reading and writing; the arguments are those of `create`."""
        return cls.create(spec, dtype_or_type, BufferType.INPUT_OUTPUT, buffer_count, **options)

    @property
    def buffer_count(self) -> int:
        """The number of buffers; one may serve for reading and writing."""
        both = self.in_buffer_count and self.out_buffer_count
        return self.in_buffer_count + self.out_buffer_count - bool(both)

    @property
    def is_input(self) -> Any:
        return self.buffer_type in (BufferType.INPUT, BufferType.INPUT_OUTPUT)

    @property
    def is_output(self) -> Any:
        return self.buffer_type in (BufferType.OUTPUT, BufferType.INPUT_OUTPUT)

    @property
    def is_input_output(self) -> Any:
        return self.buffer_type is BufferType.INPUT_OUTPUT

    def with_spec(self, spec: BlockSpec) -> BufferedRef:
        """Buffers like these for another `BlockSpec`."""
        return replace(self, spec=spec)

    def with_window_ref(self, window_ref: Any) -> BufferedRef:
        """Buffers like these, with the blocks that exist already: a reference, or None."""
        return replace(self, window_ref=window_ref)


def _steps(
    grid: Sequence[Any], core_axis: Any, core_axis_name: Any, semantics: Sequence[Any] | None
) -> tuple[tuple, list]:
    """The share of this core in a grid: its sizes, and its start along each axis."""
    sizes, begin = list(grid), [np.int32(0)] * len(grid)
    if semantics is not None and len(semantics) != len(grid):
        raise ValueError(
            f"emit_pipeline: dimension_semantics has an entry per axis of the grid {grid}, got {semantics}"
        )
    if core_axis is not None and core_axis_name is not None:
        raise ValueError("emit_pipeline: give core_axis, axes of the grid around, or core_axis_name, not both")
    if core_axis is None and core_axis_name is None:
        return tuple(sizes), begin
    if core_axis_name is not None:
        count, number = lax.axis_size(core_axis_name), lax.axis_index(core_axis_name)
    else:
        axes = core_axis if isinstance(core_axis, tuple) else (core_axis,)
        ids, around = grid_around("emit_pipeline: core_axis")
        count, number = 1, np.int32(0)
        for axis in axes:
            count, number = count * around[axis], number * around[axis] + ids[axis]
    parallel = [
        i
        for i, s in enumerate(semantics or ())
        if (s if isinstance(s, str) else s.value) != GridDimensionSemantics.ARBITRARY.value
    ]
    if not parallel:
        raise ValueError(
            f"emit_pipeline: {count} cores share an axis of the grid {tuple(grid)} that dimension_semantics calls parallel,"
            f" got {semantics}"
        )
    even = [i for i in parallel if isinstance(grid[i], int) and isinstance(count, int) and grid[i] % count == 0]
    axis = (even or parallel)[0]
    count, total = (lax.convert_element_type(x, np.int32) for x in (count, grid[axis]))
    each, more = lax.div(total, count), lax.rem(total, count)
    sizes[axis] = each + lax.convert_element_type(lax.lt(number, more), np.int32)
    begin[axis] = number * each + lax.min(number, more)
    return tuple(sizes), begin


@dataclass
class _Part:
    """A reference, and its use in a pipeline."""

    ref: Any
    blocks: Blocks
    buffered: BufferedRef | None
    whole: bool  # the body gets the reference itself

    def place(self, ids: Sequence[Any]) -> Any:
        return self.blocks.start(ids, ())

    def read(self, place: Any) -> Any:
        return self.blocks.take(self.blocks.pad(as_view(self.ref)[...]), place)

    def open(self, place: Any, number: Any) -> Any:
        """A reference to the block of a step."""
        if self.whole:
            return self.ref
        block, there = self.read(place), self.buffered
        if there is not None and there.prefetched_count and there.window_ref is not None:
            last = np.int32(there.prefetched_count - 1)
            early = lax.dynamic_index_in_dim(there.window_ref[...], lax.min(number, last), 0, keepdims=False)
            block = lax.select(lax.broadcast(lax.le(number, last), aval_of(block).shape), early, block)
        return new_ref(block, memory_space=self.blocks.spec.memory_space)

    def close(self, place: Any, ref: Any) -> None:
        if not self.whole:
            view = as_view(self.ref)
            view[...] = self.blocks.unpad(self.blocks.put(self.blocks.pad(view[...]), place, ref[...]))


def _listed(specs: Any) -> tuple:
    return tuple(specs) if isinstance(specs, (tuple, list)) else (specs,)


def _parts(what: str, specs: tuple, refs: tuple, buffered: Sequence[Any]) -> tuple[list[_Part], Any]:
    leaves, tree = pytree.tree_flatten(refs, is_leaf=lambda x: isinstance(x, Ref))
    parts = []
    for i, (spec, ref) in enumerate(zip(specs_of(what, specs, refs), leaves, strict=True)):
        whole = spec.block_shape is None
        mine = buffered[i] if i < len(buffered) else None
        parts.append(_Part(ref, Blocks.of(spec, as_view(ref).shape), mine, whole))
    return parts, tree


class _Pipeline:
    """The arguments of `emit_pipeline`, and operations on the pipeline."""

    def __init__(
        self,
        body: Callable[..., Any],
        grid: tuple[int, ...],
        in_specs: list[BlockSpec],
        out_specs: list[BlockSpec],
        core_axis: int | None,
        core_axis_name: str | None,
        semantics: tuple[str, ...] | None,
        explicit: bool,
    ) -> None:
        self.body, self.grid, self.explicit = body, tuple(grid), explicit
        self.in_specs, self.out_specs = _listed(in_specs), _listed(out_specs)
        self.shared = (core_axis, core_axis_name, semantics)

    def split(self, refs: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        count = len(self.in_specs)
        if len(refs) != count + len(self.out_specs):
            raise ValueError(
                f"a pipeline of {count} arguments and {len(self.out_specs)} results is called with as many references, got"
                f" {len(refs)}"
            )
        return refs[:count], refs[count:]

    def run(self, *refs: Any, scratches: Sequence[Any] = (), allocations: Any = None, **more: Any) -> None:
        """Run the body at every position of the grid.

        Args:
          *refs: references to arguments, then to results, in the order of the specs.
          scratches: further arguments of the body, after the blocks.
          allocations: None, or a `BufferedRef` for each reference.
        """
        if any(x is not None for x in more.values()):
            raise NotImplementedError(
                f"a pipeline is called with references, scratches and allocations here, got {sorted(more)}: every step of an"
                " interpreted pipeline copies its blocks, so there is no cycle that could be left out or joined"
            )
        ins, outs = self.split(refs)
        buffered = pytree.tree_leaves(allocations, is_leaf=lambda x: isinstance(x, BufferedRef)) if allocations else []
        reads, in_tree = _parts("in_specs", self.in_specs, ins, buffered)
        writes, out_tree = _parts("out_specs", self.out_specs, outs, buffered[len(reads) :])
        sizes, begin = _steps(self.grid, *self.shared)

        def one(n, _):
            n = lax.convert_element_type(n, np.int32)
            ids = [lax.add(b, i) for b, i in zip(begin, position(n, sizes), strict=True)]
            with in_grid(ids, self.grid):
                blocks = [part.open(part.place(ids), n) for part in reads]
                places = [part.place(ids) for part in writes]
                written = [part.open(at, n) for part, at in zip(writes, places, strict=True)]
                step = (PipelineStep(tuple(ids), n),) if self.explicit else ()
                arguments = (*pytree.tree_unflatten(in_tree, blocks), *pytree.tree_unflatten(out_tree, written))
                self.body(*step, *arguments, *scratches)
                for part, at, ref in zip(writes, places, written, strict=True):
                    part.close(at, ref)

        total = 1
        for n in sizes:
            total = total * n
        lax.fori_loop(0, total, one, None)

    def allocate(self, *refs: Any) -> tuple[BufferedRef, ...]:
        """A `BufferedRef` for each reference. `run_scoped` passes it on unchanged."""
        ins, outs = self.split(refs)
        reads, _ = _parts("in_specs", self.in_specs, ins, ())
        writes, _ = _parts("out_specs", self.out_specs, outs, ())
        made = []
        for parts, make in ((reads, BufferedRef.input), (writes, BufferedRef.output)):
            for part in parts:
                mode = part.blocks.spec.pipeline_mode or Buffered(2)
                count = mode.buffer_count if isinstance(mode.buffer_count, int) else mode.buffer_count[0]
                made.append(make(part.blocks.spec, part.ref.dtype, count, prefetched_count=mode.prefetched_count))
        return tuple(made)

    def prefetch(self, *inputs: Any) -> tuple[BufferedRef, ...]:
        """Copy the blocks of the first steps, as many as the `Buffered` of each spec states.

        Args:
          *inputs: references to the arguments.

        Returns:
          `allocations` for the pipeline.
        """
        reads, _ = _parts("in_specs", self.in_specs, inputs, ())
        sizes, begin = _steps(self.grid, *self.shared)
        made = []
        for part in reads:
            spec = part.blocks.spec
            mode = spec.pipeline_mode or Buffered(2)
            count = 0 if part.whole else mode.prefetched_count or 1
            found = []
            for n in range(count):
                ids = [lax.add(b, i) for b, i in zip(begin, position(np.int32(n), sizes), strict=True)]
                with in_grid(ids, self.grid):
                    found.append(part.read(part.place(ids)))
            buffers = mode.buffer_count if isinstance(mode.buffer_count, int) else mode.buffer_count[0]
            buffer = BufferedRef.input(spec, part.ref.dtype, max(buffers, count), prefetched_count=count)
            made.append(buffer.with_window_ref(_stacked(found)) if found else buffer)
        return tuple(made)


def _stacked(blocks: list) -> Ref:
    return new_ref(lax.concatenate([lax.expand_dims(x, (0,)) for x in blocks], 0))


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: tuple[Any, ...],
    in_specs: Any = (),
    out_specs: Any = (),
    tiling: Any = None,
    core_axis: tuple[int, ...] | int | None = None,
    core_axis_name: tuple[str, ...] | str | None = None,
    dimension_semantics: tuple[Any, ...] | None = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    output_wait_read_only: bool = False,
    _explicit_indices: bool = False,
) -> Callable[..., None]:
    """Returns a function that runs a body at every position of a grid, on blocks of references.

    In the body, `program_id` and `num_programs` are those of this grid.

    Args:
      body: called with a reference to a block of each argument, then of each result, then `scratches`.
      grid: a tuple of sizes, which may be computed; the steps run one after the other, the last axis fastest.
      in_specs, out_specs: a `BlockSpec` for each argument and result. Without a `block_shape`, the body gets the
        reference itself.
      core_axis: axes of the surrounding grid, whose runs share the steps. None: each run executes all.
      core_axis_name: axes of a mesh of cores, which share the steps. None: each core executes all.
      dimension_semantics: for each axis of `grid` a `GridDimensionSemantics`, or its value. Cores share the first
        parallel axis with a size that they divide, else the first parallel one.
      tiling, trace_scopes, no_pipelining, output_wait_read_only: for a compiler; not used.
      _explicit_indices: pass a `PipelineStep` to the body first.

    Returns:
      A function ``(*references, scratches=(), allocations=None)``.

    Raises:
      ValueError: in a call, if specs do not fit references, or cores have no axis to share.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> rows = pl.BlockSpec((1, 2), lambda i: (i, 0))
      >>> def kernel(x_ref, out_ref):
      ...     def step(x_row, out_row):
      ...         out_row[...] = x_row[...] * 10 + pl.program_id(0)
      ...     pltpu.emit_pipeline(step, grid=(3,), in_specs=[rows], out_specs=[rows])(x_ref, out_ref)
      ...
      >>> x = jnp.arange(6).reshape(3, 2)
      >>> pl.pallas_call(kernel, x, interpret=True)(x)
      Array([[ 0, 10],
             [21, 31],
             [42, 52]], dtype=int32)
    """
    return _Pipeline(
        body, grid, in_specs, out_specs, core_axis, core_axis_name, dimension_semantics, _explicit_indices
    ).run


def emit_pipeline_with_allocations(
    body: Callable[..., None], *, grid: tuple[Any, ...], in_specs: Any = (), out_specs: Any = ()
) -> tuple[Callable[..., None], Callable[..., tuple[BufferedRef, ...]]]:
    """`emit_pipeline`, and a function of the references that makes its `allocations`.

    Args:
      body, grid, in_specs, out_specs: see `emit_pipeline`.

    Returns:
      ``(pipeline, make_allocations)``.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> row = pl.BlockSpec((1,), lambda i: (i,))
      >>> def kernel(x_ref, out_ref):
      ...     def step(x, out):
      ...         out[...] = -x[...]
      ...     run, make = pltpu.emit_pipeline_with_allocations(step, grid=(3,), in_specs=[row], out_specs=[row])
      ...     pl.run_scoped(lambda buffers: run(x_ref, out_ref, allocations=buffers), make(x_ref, out_ref))
      ...
      >>> pl.pallas_call(kernel, jnp.arange(3), interpret=True)(jnp.arange(3))
      Array([ 0, -1, -2], dtype=int32)
    """
    pipeline = _Pipeline(body, grid, in_specs, out_specs, None, None, None, False)
    return pipeline.run, pipeline.allocate


def emit_pipeline_with_async_prefetch(
    body: Callable[..., None],
    *,
    grid: tuple[Any, ...],
    in_specs: Any = (),
    out_specs: Any = (),
    mesh: Any,
    tiling: Any = None,
    core_axis: tuple[int, ...] | int | None = None,
    core_axis_name: tuple[str, ...] | str | None = None,
    dimension_semantics: tuple[Any, ...] | None = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    _explicit_indices: bool = False,
) -> tuple[Callable[..., None], Callable[..., tuple[BufferedRef, ...]]]:
    """`emit_pipeline`, and a function that copies the blocks of its first steps before it begins.

    Args:
      body, grid, in_specs, out_specs, tiling, core_axis, core_axis_name, dimension_semantics, trace_scopes,
        no_pipelining, _explicit_indices: see `emit_pipeline`. A spec's ``Buffered(prefetched_count=n)`` is the number
        of steps whose blocks are copied; default 1.
      mesh: the mesh of cores that runs it; `core_axis_name` is of its axes.

    Returns:
      ``(pipeline, prefetch)``; ``prefetch(*arguments)`` returns the `allocations` of the pipeline.

    Raises:
      ValueError: the mesh does not have this axis.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> row, mesh = pl.BlockSpec((1,), lambda i: (i,)), pltpu.TensorCoreMesh(axis_name="core")
      >>> def kernel(x_ref, out_ref):
      ...     def step(x, out):
      ...         out[...] = -x[...]
      ...     run, prefetch = pltpu.emit_pipeline_with_async_prefetch(step, grid=(3,), in_specs=[row], out_specs=[row], mesh=mesh)
      ...     buffers = prefetch(x_ref)  # the first block is copied now
      ...     run(x_ref, out_ref, allocations=buffers)
      ...
      >>> pl.pallas_call(kernel, jnp.arange(3), interpret=True)(jnp.arange(3))
      Array([ 0, -1, -2], dtype=int32)
    """
    names = core_axis_name if isinstance(core_axis_name, tuple) else (core_axis_name,)
    if core_axis_name is not None and not set(names) <= set(mesh.shape):
        raise ValueError(
            f"emit_pipeline_with_async_prefetch: {names} are not axes of the mesh, which has {dict(mesh.shape)}"
        )
    pipeline = _Pipeline(
        body, grid, in_specs, out_specs, core_axis, core_axis_name, dimension_semantics, _explicit_indices
    )
    return pipeline.run, pipeline.prefetch


__all__ = [
    "BufferType",
    "BufferedRef",
    "PipelineStep",
    "emit_pipeline",
    "emit_pipeline_with_allocations",
    "emit_pipeline_with_async_prefetch",
]
