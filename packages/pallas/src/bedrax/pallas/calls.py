"""`pallas_call`, interpreted: a loop over the grid, in which the kernel reads and writes references to blocks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bedrax import lax, pytree
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.lax.dynamic_slices import dynamic_slice, dynamic_update_slice
from bedrax.pallas.inside import allocate, in_grid, named, position, type_of, uninitialized
from bedrax.pallas.modes import interpreted
from bedrax.pallas.specs import (
    BlockSpec,
    CompilerParams,
    CostEstimate,
    Dim,
    GridSpec,
    no_block_spec,
    read_dims,
    read_grid,
)
from bedrax.state import Ref, freeze, new_ref


def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] | None = None,
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: CompilerParams | None = None,
    cost_estimate: CostEstimate | None = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """Returns a function that runs a kernel at every position of a grid.

    Args:
      kernel: called with a reference to a block of each argument, then of each result, then the scratch memory.
      out_shape: a tree of objects with a shape and a dtype; the results have its structure.
      grid_spec: `grid`, `in_specs`, `out_specs` and `scratch_shapes` together.
      grid: sizes; the kernel runs once for each position, one after the other, the last axis fastest.
      in_specs, out_specs: the blocks of a run; trees of `BlockSpec` or prefixes of them. Default: the whole arrays.
      scratch_shapes: memory for all runs.
      input_output_aliases: number of an argument -> number of a result that starts with its values.
      debug: print the types of blocks at each call.
      interpret: true. Kernels are not compiled here.
      name: the name in messages.
      compiler_params, cost_estimate, metadata: for a compiler; not used.

    Returns:
      A function of arrays.

    Raises:
      NotImplementedError: a call without `interpret`.
      ValueError: specs that do not fit the arrays or the grid.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def add_kernel(x_ref, y_ref, out_ref):
      ...     out_ref[...] = x_ref[...] + y_ref[...]
      ...
      >>> x = jnp.arange(4.)
      >>> add = pl.pallas_call(add_kernel, out_shape=jax.ShapeDtypeStruct((4,), jnp.float32), interpret=True)
      >>> add(x, 10 * x)
      Array([ 0., 11., 22., 33.], dtype=float32)
    """
    spec = GridSpec(grid, in_specs, out_specs, scratch_shapes) if grid_spec is None else grid_spec
    if grid_spec is not None and (grid != () or in_specs is not no_block_spec or out_specs is not no_block_spec):
        raise ValueError("pallas_call: grid, in_specs and out_specs are part of grid_spec; give one or the other")
    call = _Call(kernel, name or named(kernel), out_shape, spec, dict(input_output_aliases or {}), debug)
    run = interpreted(f"pallas_call of {call.name}", call.run, interpret)
    return functools.wraps(kernel, updated=())(run)


def is_spec(x: Any) -> bool:
    return x is None or x is no_block_spec or isinstance(x, BlockSpec)


def specs_of(what: str, specs: Any, tree: Any) -> list[BlockSpec]:
    """One spec for each leaf of a tree."""
    leaves: list[Any] = []
    if isinstance(specs, list) and isinstance(tree, tuple):
        specs = tuple(specs)
    if isinstance(tree, list) and isinstance(specs, tuple):
        specs = list(specs)

    def add(spec, part):
        found = BlockSpec() if spec is None or spec is no_block_spec else spec
        leaves.extend([found] * len(pytree.tree_leaves(part)))

    try:
        pytree.tree_map(add, specs, tree, is_leaf=is_spec)
    except (ValueError, TypeError) as e:
        raise ValueError(f"pallas_call: {what} has the structure of its arrays, {tree!r}, got {specs!r}: {e}") from None
    return leaves


class Blocks(NamedTuple):
    """The blocks of one array."""

    spec: BlockSpec
    dims: tuple[Dim, ...]
    shape: tuple[Any, ...]  # of the array
    padded: tuple[Any, ...]  # pairs (before, after)

    @classmethod
    def of(cls, spec: BlockSpec, shape: tuple[Any, ...]) -> Blocks:
        dims = read_dims(spec, shape)
        padded = tuple(
            d.padding if d.elements else (0, -n % d.size if d.size else 0) for n, d in zip(shape, dims, strict=True)
        )
        return cls(spec, dims, shape, padded)

    @property
    def block_shape(self) -> tuple[Any, ...]:
        return tuple(d.size for d in self.dims if d.stays)

    def pad(self, x: Any) -> Any:
        """The array, padded to whole blocks."""
        if not any(map(any, self.padded)):
            return x
        filling = uninitialized(ShapedArray((), aval_of(x).dtype))
        return lax.pad(x, filling, [(before, behind, 0) for before, behind in self.padded])

    def unpad(self, x: Any) -> Any:
        """The array without the padding of `pad`."""
        if not any(map(any, self.padded)):
            return x
        low = [before for before, _ in self.padded]
        return lax.slice(x, low, [a + n for a, n in zip(low, self.shape, strict=True)])

    def start(self, ids: Sequence[Any], prefetched: Sequence[Ref]) -> list[Any]:
        """The start of the block of a run."""
        index_map = self.spec.index_map
        if index_map is None or self.spec.block_shape is None:
            return [np.int32(0)] * len(self.dims)
        index = index_map(*ids, *prefetched)
        index = tuple(index) if isinstance(index, (tuple, list)) else (index,)
        if len(index) != len(self.dims):
            raise ValueError(
                f"an index map returns one index per axis of its array, {len(self.dims)} for shape {self.shape}, got"
                f" {len(index)}"
            )
        return [
            lax.mul(lax.convert_element_type(i, np.int32), np.int32(1 if d.elements else d.size))
            for i, d in zip(index, self.dims, strict=True)
        ]

    def take(self, x: Any, start: list[Any]) -> Any:
        """The block with this start."""
        if not self.dims:
            return x
        block = dynamic_slice(x, start, [d.size for d in self.dims], allow_negative_indices=False)
        gone = tuple(i for i, d in enumerate(self.dims) if not d.stays)
        return lax.squeeze(block, gone) if gone else block

    def ref(self, x: Any, start: list[Any]) -> Ref:
        """A reference to the block with this start, in the memory of its spec."""
        return new_ref(self.take(x, start), memory_space=self.spec.memory_space)

    def put(self, x: Any, start: list[Any], block: Any) -> Any:
        """The array with the block written to it."""
        if not self.dims:
            return block
        block = lax.reshape(block, [d.size for d in self.dims])
        return dynamic_update_slice(x, block, start, allow_negative_indices=False)


class _Call:
    """A kernel and its options; `run` interprets it."""

    def __init__(
        self,
        kernel: Callable[..., Any],
        name: str,
        out_shape: Any,
        spec: GridSpec,
        aliases: dict[Any, Any],
        debug: bool,
    ) -> None:
        self.kernel, self.name, self.out_shape, self.spec = kernel, name, out_shape, spec
        self.aliases, self.debug = aliases, debug
        self.sizes, _ = read_grid(spec.grid)

    def run(self, *args: Any) -> Any:
        """The results for arrays."""
        count = self.spec.num_scalar_prefetch
        scalars = [new_ref(x) for x in pytree.tree_leaves(args[:count])]
        leaves, in_tree = pytree.tree_flatten(args[count:])
        outs, out_tree = pytree.tree_flatten(self.out_shape)
        out_avals = [type_of(x) for x in outs]
        ins = [
            Blocks.of(s, aval_of(x).shape)
            for s, x in zip(specs_of("in_specs", self.spec.in_specs, args[count:]), leaves, strict=True)
        ]
        many = isinstance(self.out_shape, (tuple, list))
        results = [
            Blocks.of(s, a.shape)
            for s, a in zip(specs_of("out_specs", self.spec.out_specs, self.out_shape), out_avals, strict=True)
        ]
        if self.debug:
            print(f"pallas_call of {self.name}: grid {self.sizes}, blocks {[b.block_shape for b in (*ins, *results)]}")
        starts = self._initial(leaves, count, out_avals)
        given = [b.pad(lax.asarray(x)) for b, x in zip(ins, leaves, strict=True)]
        made = [new_ref(b.pad(x)) for b, x in zip(results, starts, strict=True)]
        scratch, named_scratch = self._scratch()

        def one(n, _):
            ids = position(n, self.sizes)
            with in_grid(ids, self.sizes):
                blocks = [b.ref(x, b.start(ids, scalars)) for b, x in zip(ins, given, strict=True)]
                places = [b.start(ids, scalars) for b in results]
                written = [b.ref(r[...], p) for b, r, p in zip(results, made, places, strict=True)]
                tree = pytree.tree_unflatten(out_tree, written)
                self.kernel(
                    *scalars,
                    *pytree.tree_unflatten(in_tree, blocks),
                    *(tree if many else (tree,)),
                    *scratch,
                    **named_scratch,
                )
                for b, r, p, w in zip(results, made, places, written, strict=True):
                    r[...] = b.put(r[...], p, w[...])

        total = 1
        for n in self.sizes:
            total = total * n
        lax.fori_loop(0, total, one, None)
        return pytree.tree_unflatten(out_tree, [b.unpad(freeze(r)) for b, r in zip(results, made, strict=True)])

    def _initial(self, leaves, count, out_avals) -> list:
        """The values of the results before the kernel writes to them."""
        found = [uninitialized(a) for a in out_avals]
        for source, result in self.aliases.items():
            if not (count <= source < count + len(leaves) and 0 <= result < len(found)):
                raise ValueError(
                    f"input_output_aliases={self.aliases}: there are {count + len(leaves)} arguments (the first {count} of them"
                    f" prefetched) and {len(found)} results"
                )
            x, wanted = lax.asarray(leaves[source - count]), out_avals[result]
            if x.shape != wanted.shape or x.dtype != wanted.dtype:
                raise ValueError(
                    f"input_output_aliases={self.aliases}: argument {source} is {aval_of(x).str_short()}, result {result} is"
                    f" {wanted.str_short()}; they are one array"
                )
            found[result] = lax.convert_element_type(x, wanted.dtype)  # not weakly typed
        return found

    def _scratch(self) -> tuple[list, dict]:
        return scratch_memory(self.spec.scratch_shapes)


def scratch_memory(shapes: Any) -> tuple[list[Any], dict[Any, Any]]:
    """References for the scratch memory of a kernel: its last arguments, and the arguments by name."""
    if isinstance(shapes, dict):
        return [], {k: allocate(v) for k, v in shapes.items()}
    return [allocate(m) for m in shapes], {}


def run_scoped(f: Callable[..., Any], *types: Any, collective_axes: Any = (), **kw_types: Any) -> Any:
    """Call a function with its own memory.

    Args:
      f: called with a reference for each of `types` and `kw_types`, trees of memory (`MemoryRef`) or of shapes.
      collective_axes: axes of a mesh; only ().

    Returns:
      The result of `f`.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     def largest(best_ref):
      ...         best_ref[...] = x_ref[0]
      ...         @pl.loop(1, 4)
      ...         def _(i):
      ...             best_ref[...] = jnp.maximum(best_ref[...], x_ref[i])
      ...         return best_ref[...]
      ...     out_ref[...] = pl.run_scoped(largest, pl.ANY((), jnp.int32))
      ...
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((), jnp.int32), interpret=True)(jnp.array([3, 8, 5, 1]))
      Array(8, dtype=int32)
    """
    if collective_axes not in ((), None):
        raise NotImplementedError(
            f"run_scoped: there is no mesh of cores here, got collective_axes={collective_axes!r}"
        )
    return f(*map(allocate, types), **{k: allocate(v) for k, v in kw_types.items()})


def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any) -> Callable[..., Any]:
    """Decorator form of `run_scoped`: the function is called with its own arguments, then with the memory.

    Args:
      types: types of memory, such as ``pl.ANY((2,), jnp.int32)``: one reference each, after the positional arguments.
      collective_axes: only ``()``: kernels have no mesh of cores.
      kw_types: types of memory by the name of a keyword argument.

    Returns:
      A decorator for functions.

    Raises:
      NotImplementedError: `collective_axes` has an axis; raised when the function is called.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     @pl.with_scoped(pl.ANY((2,), jnp.int32))
      ...     def swap_halves(a, b, kept_ref):
      ...         kept_ref[...] = x_ref[pl.ds(a, 2)]
      ...         out_ref[pl.ds(a, 2)] = x_ref[pl.ds(b, 2)]
      ...         out_ref[pl.ds(b, 2)] = kept_ref[...]
      ...     swap_halves(0, 2)
      ...
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((4,), jnp.int32), interpret=True)(jnp.arange(4))
      Array([2, 3, 0, 1], dtype=int32)
    """

    def decorate(f):
        @functools.wraps(f)
        def call(*args, **kwargs):
            scoped = lambda *refs, **named: f(*args, *refs, **kwargs, **named)
            return run_scoped(scoped, *types, collective_axes=collective_axes, **kw_types)

        return call

    return decorate


def run_state(f: Callable[..., None]) -> Callable[[Any], Any]:
    """A function that writes to a tree of references, as a function from their first values to their last values.

    Args:
      f: called with the references, as a tree; its result is dropped.

    Returns:
      A function of a tree of arrays that returns such a tree.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def step(refs):
      ...     position, velocity = refs
      ...     velocity[...] -= 10.
      ...     position[...] += velocity[...]
      ...
      >>> pl.run_state(step)((jnp.float32(100), jnp.float32(0)))
      (Array(90., dtype=float32), Array(-10., dtype=float32))
    """

    def run(init: Any) -> Any:
        refs = pytree.tree_map(new_ref, init)
        f(refs)
        return pytree.tree_map(freeze, refs, is_leaf=lambda r: isinstance(r, Ref))

    return run
