"""Kernels and the operations around them (`jax.experimental.pallas.fuser`).

Interpreted kernels are array operations, which XLA fuses with those around them. So `fuse` calls a kernel on computed
arguments, and its results are those of a fused kernel. Block specs are propagated through elementwise functions
only.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bedrax import lax, pytree
from bedrax.core.avals import abstractify, struct_of
from bedrax.core.passes import all_equations, called_program
from bedrax.core.staging import make_jaxpr
from bedrax.lax.primitives.shaping import broadcast_in_dim_p
from bedrax.pallas.calls import is_spec
from bedrax.pallas.specs import BlockSpec, no_block_spec


@dataclass(frozen=True)
class Fusion:
    """A function with the types of its arguments and its result: the argument of a `fusible` for an array.

    Attributes:
      func: the function; a call of the fusion calls it.
      in_type: ``(args, kwargs)`` with types of arrays as leaves.
      out_type: a tree of types.
      strict_mode: whether the blocks of joining paths must be the same.

    Examples:

      >>> from jax.experimental.pallas import fuser

      >>> @fuser.fusible
      ... def total(x, out):
      ...     print(isinstance(x, fuser.Fusion), x.shape, x.dtype)
      ...     return x().sum()
      ...
      >>> total(jnp.arange(4))
      True (4,) int32
      Array(6, dtype=int32)
    """

    func: Callable[..., Any]
    in_type: tuple[tuple[Any, ...], dict[str, Any]]
    out_type: Any
    strict_mode: bool = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)

    @property
    def shape(self) -> Any:
        return pytree.tree_map(lambda t: t.shape, self.out_type)

    @property
    def dtype(self) -> Any:
        return pytree.tree_map(lambda t: t.dtype, self.out_type)

    @property
    def type(self) -> Any:
        return self.out_type

    @property
    def in_shape(self) -> Any:
        return pytree.tree_map(lambda t: t.shape, self.in_type)

    @property
    def in_dtype(self) -> Any:
        return pytree.tree_map(lambda t: t.dtype, self.in_type)


class _Seen(threading.local):
    fusibles: int = 0


_seen = _Seen()


def fusible(f: Callable[..., Any] | None = None, *, output_fusion_prefix: Any = True) -> Any:
    """A function of kernels that `fuse` may combine with other operations.

    Args:
      f: takes a `Fusion` for each array among its arguments, and then None for each leaf of `output_fusion_prefix`,
        because no operation on the results is fused here. None: the result is a decorator.
      output_fusion_prefix: a tree.

    Returns:
      A function of arrays.

    Examples:

      >>> from jax.experimental.pallas import fuser

      >>> @fuser.fusible
      ... def double(x, out):  # x is a Fusion; out is None or a function of the result
      ...     y = 2 * x()
      ...     return y if out is None else out(y)
      ...
      >>> double(jnp.array([1, 2]))
      Array([2, 4], dtype=int32)
    """
    if f is None:
        return functools.partial(fusible, output_fusion_prefix=output_fusion_prefix)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        _seen.fusibles += 1
        trivial = lambda x: Fusion(lambda: x, ((), {}), struct_of(abstractify(x)))
        nothing = pytree.tree_map(lambda _: None, output_fusion_prefix)
        return f(*pytree.tree_map(trivial, args), nothing, **kwargs)

    return call


def fuse(
    f: Callable[..., Any] | None = None,
    *,
    resolve_fusion_dtypes: bool = True,
    debug: bool = False,
    strict_mode: bool = True,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
) -> Any:
    """A function that calls a `fusible`; its results are those of the fused function.

    Args:
      f: a function of arrays. None: the result is a decorator.
      static_argnums, static_argnames: arguments that `f` is called with unchanged; the others become arrays.
      debug: print the program that is called.
      resolve_fusion_dtypes, strict_mode: for a compiler that fuses; there is none here.

    Raises:
      ValueError: in a call, if `f` calls no `fusible`.

    Examples:

      >>> from jax.experimental.pallas import fuser

      >>> @fuser.fusible
      ... def double(x, out):
      ...     return 2 * x()
      ...
      >>> f = fuser.fuse(lambda x: double(x + 1) - 3)
      >>> f(jnp.array([1, 2]))
      Array([1, 3], dtype=int32)
    """
    if f is None:
        return functools.partial(
            fuse,
            resolve_fusion_dtypes=resolve_fusion_dtypes,
            debug=debug,
            strict_mode=strict_mode,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    numbers = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums or ())
    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames or ())

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        arrays = lambda tree: pytree.tree_map(lax.asarray, tree)
        fixed = {n % len(args) for n in numbers if -len(args) <= n < len(args)}
        given = [x if i in fixed else arrays(x) for i, x in enumerate(args)]
        named = {k: x if k in names else arrays(x) for k, x in kwargs.items()}
        before = _seen.fusibles
        if debug:
            moving = [i for i in range(len(given)) if i not in fixed]

            def of_arrays(*xs):
                filled = list(given)
                for i, x in zip(moving, xs, strict=True):
                    filled[i] = x
                return f(*filled, **named)

            print(make_jaxpr(of_arrays)(*(given[i] for i in moving)))
        out = f(*given, **named)
        if _seen.fusibles == before:
            raise ValueError(f"fuse: {getattr(f, '__name__', f)!s} calls no function that is decorated with fusible")
        return out

    return call


def get_fusion_values(
    fusion: Callable[..., Any], *args: Any, **kwargs: Any
) -> tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]:
    """The arrays that a function closes over, and the function with these as its first argument.

    Args:
      fusion: a function of arrays that does not write to references.
      *args, **kwargs: its arguments, or objects with their shapes and dtypes.

    Returns:
      ``(function, values, ())``; ``function(values, *args, **kwargs)`` is ``fusion(*args, **kwargs)``. The empty tuple
      is for scalars that select blocks; functions here have none.

    Raises:
      ValueError: it reads or writes references.

    Examples:

      >>> from jax.experimental.pallas import fuser

      >>> weights = jnp.array([1, 10])
      >>> f, values, _ = fuser.get_fusion_values(lambda x: x * weights, jnp.arange(2))
      >>> values
      (Array([ 1, 10], dtype=int32),)
      >>> f((weights + 1,), jnp.array([3, 4]))
      Array([ 6, 44], dtype=int32)
    """
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    program, out = make_jaxpr(lambda *xs: _call(fusion, in_tree, xs), return_shape=True)(*map(_struct, leaves))
    if program.effects:
        raise ValueError(f"get_fusion_values: the function reads or writes references: {program.effects}")
    out_tree = pytree.tree_structure(out)

    def function(values: Any, *args: Any, **kwargs: Any) -> Any:
        env = dict(zip(program.constvars, values, strict=True))
        env.update(zip(program.invars, pytree.tree_leaves((args, kwargs)), strict=True))
        return pytree.tree_unflatten(out_tree, _evaluate(program, env))

    return function, tuple(program.consts), ()


def _call(f: Callable[..., Any], in_tree: Any, leaves: Sequence[Any]) -> Any:
    args, kwargs = pytree.tree_unflatten(in_tree, leaves)
    return f(*args, **kwargs)


def _struct(x: Any) -> Any:
    return struct_of(abstractify(x))


def _evaluate(program: Any, env: dict) -> list:
    read = lambda atom: env[atom] if atom in env else atom.val
    for eqn in program.eqns:
        outs = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        env.update(zip(eqn.outvars, outs if isinstance(outs, (list, tuple)) else [outs], strict=True))
    return [read(atom) for atom in program.outvars]


_REFUSED = ("scan", "while", "cond")


def evaluate(f: Callable[..., Any], *, allow_transpose: bool = True) -> Callable[..., Any]:
    """A function of arrays that is called in a fusion, after a check of its operations.

    Args:
      f: a function of arrays.
      allow_transpose: whether it may transpose.

    Raises:
      NotImplementedError: in a call, if `f` has loops or conditions.
      ValueError: in a call, if `f` transposes without `allow_transpose`.

    Examples:

      >>> from jax.experimental.pallas import fuser

      >>> fuser.evaluate(lambda x: x + 1)(jnp.arange(3))
      Array([1, 2, 3], dtype=int32)
      >>> fuser.evaluate(lambda x: x.T, allow_transpose=False)(jnp.ones((2, 3)))
      Traceback (most recent call last):
      ...
      ValueError: evaluate: the function transposes, and allow_transpose is False
    """

    def call(*args: Any) -> Any:
        program = make_jaxpr(f)(*args)
        names = {eqn.primitive.name for eqn in all_equations(program)}
        if names & set(_REFUSED):
            raise NotImplementedError(
                f"evaluate: loops and conditions are not fused, got {sorted(names & set(_REFUSED))}"
            )
        if not allow_transpose and "transpose" in names:
            raise ValueError("evaluate: the function transposes, and allow_transpose is False")
        return f(*args)

    return call


def block_spec_with_prefetch(block_specs: Any, scalar_prefetch_smem_refs: Sequence[Any]) -> Any:
    """Block specs whose index maps have additional arguments, after the program ids.

    Args:
      block_specs: a tree of `BlockSpec`, None and `no_block_spec`.
      scalar_prefetch_smem_refs: the arguments.

    Returns:
      A tree of the same structure.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import fuser

      >>> spec = pl.BlockSpec((1,), lambda i, which: (which[i],))
      >>> filled = fuser.block_spec_with_prefetch(spec, [(2, 0, 1)])
      >>> filled.index_map(0)
      (2,)
    """
    more = tuple(scalar_prefetch_smem_refs)

    def one(spec):
        if not isinstance(spec, BlockSpec) or spec.index_map is None:
            return spec
        index_map = spec.index_map
        return spec.replace(index_map=lambda *ids: index_map(*ids, *more))

    return pytree.tree_map(one, block_specs, is_leaf=is_spec)


def filter_no_block_specs(values: Any, block_specs: Any) -> tuple[Any, Any]:
    """Values and their block specs, with None in both for values without a block (`no_block_spec`).

    Args:
      values: a tree.
      block_specs: a tree of the same structure, of `BlockSpec` and `no_block_spec`.

    Returns:
      ``(values, block_specs)``.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import fuser

      >>> spec = pl.BlockSpec((1,), lambda i: (i,))
      >>> values, specs = fuser.filter_no_block_specs(("array", "scalar"), (spec, pl.no_block_spec))
      >>> values, specs == (spec, None)
      (('array', None), True)
    """
    keep = lambda x, spec: None if spec is no_block_spec else x
    leaves, tree = pytree.tree_flatten(block_specs, is_leaf=is_spec)
    parts = tree.flatten_up_to(values)
    kept = pytree.tree_unflatten(tree, [keep(x, s) for x, s in zip(parts, leaves, strict=True)])
    return kept, pytree.tree_unflatten(tree, [keep(s, s) for s in leaves])


def make_scalar_prefetch_handler(*args: Any) -> Callable[..., Any]:
    """A function that selects a part of its arguments: ``handler(*xs)`` is ``xs[args[0]][args[1]]...``.

    Examples:

      >>> from jax.experimental.pallas import fuser

      >>> handler = fuser.make_scalar_prefetch_handler(1, "rows")
      >>> handler("first", {"rows": "second"})
      'second'
    """
    return lambda *xs: functools.reduce(lambda tree, key: tree[key], args, xs)


_ELEMENTWISE = ("elementwise", "conversions")


def _shape_of_all(what: str, f: Callable[..., Any], args: tuple, kwargs: dict) -> tuple[tuple, Any]:
    """(shape, types of results) of an elementwise function of arrays of one shape."""
    leaves, in_tree = pytree.tree_flatten((args, kwargs))
    program, out = make_jaxpr(lambda *xs: _call(f, in_tree, xs), return_shape=True)(*map(_struct, leaves))
    shapes = {v.aval.shape for v in (*program.invars, *program.constvars, *program.outvars) if v.aval.shape}
    wrong = []
    for eqn in all_equations(program):
        scalar = all(not v.aval.shape for v in eqn.invars)
        if (
            eqn.primitive.family not in _ELEMENTWISE
            and called_program(eqn.primitive, eqn.params) is None
            and not (eqn.primitive is broadcast_in_dim_p and scalar)
        ):
            wrong.append(eqn.primitive.name)
        shapes |= {v.aval.shape for v in eqn.outvars if v.aval.shape}
    if wrong or len(shapes) > 1:
        raise NotImplementedError(
            f"{what}: blocks are propagated through elementwise functions of arrays of one shape only; this one"
            f" has {', '.join(sorted(set(wrong))) or f'shapes {sorted(shapes)}'}. Compute it before or after the kernel"
        )
    return next(iter(shapes), ()), out


def _check_prefetch(what: str, handler: Any, grid_len: int | None, specs: Sequence[Any]) -> None:
    """Check the arguments for prefetched scalars. Index maps already take the additional arguments."""
    if handler is not None and grid_len is None:
        raise ValueError(f"{what}: grid_len, the number of axes of the grid, is needed with a scalar_prefetch_handler")
    if grid_len is not None and grid_len < 0:
        raise ValueError(f"{what}: grid_len is not negative, got {grid_len}")
    if not all(is_spec(s) for s in specs):
        raise TypeError(f"{what}: BlockSpecs are needed, got {specs}")


def _leaves(specs: Any) -> list:
    return pytree.tree_leaves(specs, is_leaf=is_spec)


def pull_block_spec(
    f: Callable[..., Any],
    out_block_specs: Any,
    *,
    scalar_prefetch_handler: Any = None,
    grid_len: int | None = None,
    strict_mode: bool = True,
) -> Callable[..., tuple[Callable[..., Any], Any, Any]]:
    """The blocks of a function's arguments that blocks of its results need.

    Args:
      f: an elementwise function of arrays of one shape.
      out_block_specs: a `BlockSpec` for each result. Index maps stay unchanged.
      scalar_prefetch_handler: None, or a result of `make_scalar_prefetch_handler`, which needs `grid_len`. No block of
        such a function depends on a prefetched scalar, so it is not called.
      grid_len: None, or the number of axes of the grid.
      strict_mode: whether results need equal index maps, or only equal block shapes.

    Returns:
      A function of the arguments (or of their types) that returns ``(kernel_fn, specs of args, specs of kwargs)``;
      ``kernel_fn(program_ids, scalar_prefetch, *args, **kwargs)`` is `f` of blocks. A scalar has `no_block_spec`.

    Raises:
      NotImplementedError: in a call, if `f` is not elementwise.
      ValueError: in a call, if the blocks of results differ.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import fuser

      >>> rows = pl.BlockSpec((2, 4), lambda i: (i, 0))
      >>> x, scale = jnp.ones((8, 4)), 3.0
      >>> kernel_fn, (x_spec, scale_spec), _ = fuser.pull_block_spec(lambda x, scale: jnp.tanh(x) * scale, rows)(x, scale)
      >>> x_spec is rows, scale_spec
      (True, NoBlockSpec)
      >>> kernel_fn((0,), (), x[:2], scale).shape
      (2, 4)
    """
    specs = _leaves(out_block_specs)
    _check_prefetch("pull_block_spec", scalar_prefetch_handler, grid_len, specs)

    def pull(*args: Any, **kwargs: Any) -> tuple[Callable[..., Any], Any, Any]:
        shape, _ = _shape_of_all("pull_block_spec", f, args, kwargs)
        one = _one_spec("pull_block_spec", specs, strict_mode)
        mine = lambda tree: pytree.tree_map(lambda x: one if shape_of(x) == shape else no_block_spec, tree)

        def kernel_fn(program_ids: Any, scalar_prefetch: Any, *args: Any, **kwargs: Any) -> Any:
            del program_ids, scalar_prefetch  # no element depends on the position of its block
            return f(*args, **kwargs)

        return kernel_fn, mine(args), mine(kwargs)

    return pull


def shape_of(x: Any) -> tuple[Any, ...]:
    """The shape of an array, or of another object with a shape."""
    return abstractify(x).shape if not hasattr(x, "shape") else tuple(x.shape)


def _one_spec(what: str, specs: Sequence[Any], strict: bool) -> Any:
    found = [s for s in specs if isinstance(s, BlockSpec)]
    if not found:
        return no_block_spec
    first = found[0]
    for spec in found[1:]:
        same = spec.index_map is first.index_map or not strict
        if tuple(spec.block_shape or ()) != tuple(first.block_shape or ()) or not same:
            raise ValueError(
                f"{what}: blocks that are combined must have one shape and index map, got {first} and {spec}"
            )
    return first


def push_block_spec(
    f: Callable[..., Any],
    *in_spec_args: Any,
    scalar_prefetch_handler: Any = None,
    grid_len: int | None = None,
    strict_mode: bool = True,
    return_out_type: bool = False,
    **in_spec_kwargs: Any,
) -> Callable[..., Any]:
    """The blocks of a function's results for blocks of its arguments.

    Args:
      f: an elementwise function of arrays of one shape.
      *in_spec_args, **in_spec_kwargs: a `BlockSpec` for each argument, or `no_block_spec`.
      scalar_prefetch_handler, grid_len: see `pull_block_spec`.
      strict_mode: whether arguments need equal index maps, or only equal block shapes.
      return_out_type: also return the types of the results.

    Returns:
      A function of the arguments (or of their types) that returns a `BlockSpec` for each result, or that and a tree of
      `ShapeDtypeStruct`.

    Raises:
      NotImplementedError: in a call, if `f` is not elementwise.
      ValueError: in a call, if the blocks of arguments differ.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import fuser

      >>> rows = pl.BlockSpec((2, 4), lambda i: (i, 0))
      >>> spec, out = fuser.push_block_spec(lambda x: x > 0, rows, return_out_type=True)(jnp.ones((8, 4)))
      >>> spec is rows, out
      (True, ShapeDtypeStruct(shape=(8, 4), dtype=bool))
    """
    specs = _leaves((in_spec_args, in_spec_kwargs))
    _check_prefetch("push_block_spec", scalar_prefetch_handler, grid_len, specs)

    def push(*args: Any, **kwargs: Any) -> Any:
        shape, out = _shape_of_all("push_block_spec", f, args, kwargs)
        one = _one_spec("push_block_spec", specs, strict_mode)
        out_specs = pytree.tree_map(lambda t: one if tuple(t.shape) == shape else no_block_spec, out)
        return (out_specs, out) if return_out_type else out_specs

    return push


def push_pull_block_spec(
    f: Callable[..., Any],
    *block_specs: Any,
    scalar_prefetch_handler: Any = None,
    grid_len: int | None = None,
    **block_spec_kwargs: Any,
) -> Callable[..., tuple[Any, ...]]:
    """The blocks that a function of a kernel's results needs of its other arguments, and the blocks of its results.

    Args:
      f: an elementwise function ``(values, *results, **results)`` of arrays of one shape.
      *block_specs, **block_spec_kwargs: a `BlockSpec` for each of the kernel's results.
      scalar_prefetch_handler, grid_len: see `pull_block_spec`.

    Returns:
      A function of the arguments of `f` (or of their types) that returns ``(kernel_fn, specs of values, specs of
      kwargs, types of f's results, specs of f's results)``, where ``kernel_fn(program_ids, scalar_prefetch, values,
      *results, **results)`` is `f` of blocks.

    Raises:
      NotImplementedError: in a call, if `f` is not elementwise.
      ValueError: in a call, if blocks differ.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import fuser

      >>> rows = pl.BlockSpec((2, 4), lambda i: (i, 0))
      >>> after = lambda values, y: y * values[0]  # what is done with the result y of a kernel
      >>> kernel_fn, specs, _, out, out_spec = fuser.push_pull_block_spec(after, rows)((3.0,), jnp.ones((8, 4)))
      >>> specs, out_spec is rows, out.shape
      ((NoBlockSpec,), True, (8, 4))
    """
    options = dict(scalar_prefetch_handler=scalar_prefetch_handler, grid_len=grid_len)

    def push_pull(values: Any, *args: Any, **kwargs: Any) -> tuple:
        push = push_block_spec(f, no_block_spec, *block_specs, return_out_type=True, **options, **block_spec_kwargs)
        out_specs, out = push(values, *args, **kwargs)
        kernel_fn, specs, by_name = pull_block_spec(f, out_specs, strict_mode=False, **options)(values, *args, **kwargs)
        return kernel_fn, specs[0], by_name, out, out_specs

    return push_pull
