"""Functions for kernels: the position in the grid, loops and conditions, small arithmetic."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from bedrax import lax, pytree
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, abstractify, aval_of
from bedrax.core.public import public
from bedrax.core.tracing import Tracer
from bedrax.lax.filling import full
from bedrax.lax.primitives.callbacks import debug_callback as _debug_callback
from bedrax.lax.primitives.callbacks import debug_print as _debug_print
from bedrax.numpy.index_plans import Slice
from bedrax.pallas import flags
from bedrax.pallas.specs import MemoryRef, known_length, starts_as_zero
from bedrax.state import Ref, empty_ref, new_ref


class _Grids(threading.local):
    stack: tuple[Any, ...] = ()  # (program ids, sizes) of the current grids


_grids = _Grids()


@contextmanager
def in_grid(ids: Sequence[Any], sizes: Sequence[Any]) -> Iterator[None]:
    """Context manager: the kernel runs at position `ids` of a grid of these sizes."""
    saved, _grids.stack = _grids.stack, (*_grids.stack, (tuple(ids), tuple(sizes)))
    try:
        yield
    finally:
        _grids.stack = saved


def position(n: Any, sizes: Sequence[Any]) -> list[Any]:
    """The position in the grid of run number `n`."""
    ids: list[Any] = []
    n = lax.convert_element_type(n, np.int32)
    for size in reversed(sizes):
        size = np.int32(size) if isinstance(size, (int, np.integer)) else lax.convert_element_type(size, np.int32)
        ids.insert(0, lax.rem(n, size))
        n = lax.div(n, size)
    return ids


def grid_around(what: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """(program ids, sizes) of the current grid.

    Raises:
      ValueError: there is none.
    """
    if not _grids.stack:
        raise ValueError(f"{what} needs a kernel around it: only pallas_call has a grid")
    return _grids.stack[-1]


def _axis(what: str, axis: int, part: int) -> Any:
    values = grid_around(f"{what}({axis})")[part]
    if not 0 <= axis < len(values):
        raise ValueError(f"{what}: there is no axis {axis} in a grid of {len(values)} axes")
    return values[axis]


def program_id(axis: int) -> Any:
    """The position of the kernel's run along an axis of the grid, an int32 scalar.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(out_ref):
      ...     out_ref[...] = jnp.full((1,), pl.program_id(0))
      ...
      >>> out = jax.ShapeDtypeStruct((3,), jnp.int32)
      >>> pl.pallas_call(kernel, out, grid=(3,), out_specs=pl.BlockSpec((1,), lambda i: (i,)), interpret=True)()
      Array([0, 1, 2], dtype=int32)
    """
    return _axis("program_id", axis, 0)


def num_programs(axis: int) -> Any:
    """The size of the grid along an axis.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(out_ref):
      ...     out_ref[...] = jnp.full((1,), pl.num_programs(0))
      ...
      >>> out = jax.ShapeDtypeStruct((3,), jnp.int32)
      >>> pl.pallas_call(kernel, out, grid=(3,), out_specs=pl.BlockSpec((1,), lambda i: (i,)), interpret=True)()
      Array([3, 3, 3], dtype=int32)
    """
    return _axis("num_programs", axis, 1)


def when(condition: Any, /) -> Callable[[Callable[[], None]], None]:
    """Decorator that runs a function without arguments if `condition` holds; it acts on references.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = x_ref[...]
      ...     @pl.when(x_ref[0] > 0)
      ...     def _():
      ...         out_ref[0] = 100
      ...
      >>> out = jax.ShapeDtypeStruct((2,), jnp.int32)
      >>> pl.pallas_call(kernel, out, interpret=True)(jnp.array([5, 6]))
      Array([100,   6], dtype=int32)
    """

    def run(body: Callable[[], None]) -> None:
        if isinstance(condition, Tracer):
            lax.cond(condition, lambda: (body(), None)[1], lambda: None)
        elif condition:
            body()

    return run


def loop(
    lower: Any, upper: Any, *, init_carry: Any = None, step: Any = 1, unroll: int | bool | None = None
) -> Callable[..., Any]:
    """Decorator that runs a function for ``i = lower, lower + step, ...`` below `upper`.

    Args:
      lower, upper: integers, or integer arrays of rank 0.
      init_carry: None for a body ``i -> None``; else the body is ``(i, carry) -> carry``.
      step: positive.
      unroll: as in `fori_loop`.

    Returns:
      A decorator whose result is the last carry.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     @pl.loop(0, 8, step=2)
      ...     def _(i):
      ...         out_ref[i] = x_ref[i + 1]
      ...         out_ref[i + 1] = x_ref[i]
      ...
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((8,), jnp.int32), interpret=True)(jnp.arange(8))
      Array([1, 0, 3, 2, 5, 4, 7, 6], dtype=int32)
      >>> pl.loop(1, 5, init_carry=1)(lambda i, product: i * product)
      Array(24, dtype=int32...)
    """
    if isinstance(step, (int, np.integer)) and step <= 0:
        raise ValueError(f"loop: step is positive, got {step}")

    first, last, by = map(_counting, (lower, upper, step))

    def run(body: Callable) -> Any:
        at = lambda i: i * by + first

        def once(i, carry):
            return body(at(i), carry) if init_carry is not None else body(at(i))

        return lax.fori_loop(0, cdiv(last - first, by), once, init_carry, unroll=unroll)

    return run


def _counting(n: Any) -> Any:
    """A number in a signed dtype of 32 bits or more, so that its sums and differences do not wrap around."""
    if isinstance(n, np.integer):
        return int(n)
    if isinstance(n, Array | np.ndarray) and dtypes.is_integer(n.dtype):
        return lax.convert_element_type(n, dtypes.canonicalize_dtype(f"int{max(32, 8 * n.dtype.itemsize)}"))
    return n


def ds(start: Any, size: Any = None, stride: int | None = None) -> Any:
    """A slice with a length.

    Args:
      start: the first position, which may be computed. If it is the only argument, it is the size; None denotes all.
      size: the number of positions, a known int.
      stride: the distance of two positions. Default: 1.

    Raises:
      TypeError: the size is traced, or no integer.

    Examples:

      >>> x = jax.new_ref(jnp.arange(5))
      >>> x[jax.ds(1, 3)]
      Array([1, 2, 3], dtype=int32)
      >>> jax.jit(lambda i: jnp.arange(5)[jax.ds(i, 3)])(2)
      Array([2, 3, 4], dtype=int32)

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = x_ref[pl.ds(1, 2)]
      ...
      >>> out = jax.ShapeDtypeStruct((2,), jnp.int32)
      >>> pl.pallas_call(kernel, out, interpret=True)(jnp.arange(5))
      Array([1, 2], dtype=int32)
    """
    if start is None or (size is None and start is None):
        return slice(None, None, stride)
    if size is None:
        start, size = 0, start
    if isinstance(size, Tracer):
        raise TypeError(f"ds: the size of a slice is a known integer, got {size!r}")
    return Slice(start, known_length(size, "ds: the size of a slice"), 1 if stride is None else stride)


dslice = ds


def cdiv(a: Any, b: Any) -> Any:
    """Return ``a / b``, rounded up.

    Args:
      a: an integer, or an integer array.
      b: a positive integer, or an integer array of a shape that broadcasts with `a`.

    Returns:
      A Python integer if both are integers of Python or NumPy, otherwise an array.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> pl.cdiv(7, 3)
      3
    """
    if isinstance(a, (int, np.integer)) and isinstance(b, (int, np.integer)):
        return -(-int(a) // int(b))
    if isinstance(a, Array | np.ndarray) or isinstance(b, Array | np.ndarray):
        return a // b + (a % b != 0)  # a sum before the division could overflow
    return (a + (b - 1)) // b  # symbolic dimensions


def align_to(a: Any, alignment: Any) -> Any:
    """Return the least multiple of `alignment` that is not less than `a`.

    Args:
      a: an integer, or an integer array.
      alignment: a positive integer, or an integer array of a shape that broadcasts with `a`.

    Returns:
      A Python integer if both are integers of Python or NumPy, otherwise an array.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> pl.align_to(5, 4), pl.align_to(8, 4)
      (8, 8)
    """
    alignment = int(alignment) if isinstance(alignment, np.integer) else alignment
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The least power of 2 that is not less than `x`.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> pl.next_power_of_2(9)
      16
    """
    if x < 0:
        raise ValueError(f"next_power_of_2: a number that is not negative is needed, got {x}")
    return 1 if x == 0 else 2 ** (int(x) - 1).bit_length()


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The distances in elements between neighbours along each axis of an array in C order.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> pl.strides_from_shape((2, 3, 4))
      (12, 4, 1)
      >>> int(np.arange(24).reshape(2, 3, 4)[1, 2, 3]), 1 * 12 + 2 * 4 + 3 * 1
      (23, 23)
    """
    return tuple(int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape)))


def multiple_of(x: Any, values: Sequence[int] | int) -> Any:
    """Return `x`. The caller promises to a compiler that its elements are multiples of `values`.

    Args:
      x: an integer, or an integer array.
      values: the divisor, or one per axis of `x`. It does not change the result, and is not checked.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     start = pl.multiple_of(4 * pl.program_id(0), 4)
      ...     out_ref[pl.ds(start, 4)] = x_ref[pl.ds(start, 4)] + start
      ...
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((8,), jnp.int32), grid=(2,), interpret=True)(jnp.zeros(8, jnp.int32))
      Array([0, 0, 0, 0, 4, 4, 4, 4], dtype=int32)
    """
    return x


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Any:
    """Return ``1 / x``, elementwise.

    Args:
      x: an array of floats.
      approx, full_range: whether a GPU or TPU may be less exact. The result here is always exact.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> pl.reciprocal(jnp.array([2., 4., 8.]), approx=True)
      Array([0.5  , 0.25 , 0.125], dtype=float32)
    """
    return lax.div(lax.full_like(x, 1), x)


def broadcast_to(a: Any, shape: tuple[int, ...]) -> Any:
    """Return an array broadcast to a shape: axes are added in front, and axes of length 1 are repeated.

    Args:
      a: an array of any dtype.
      shape: the shape of the result.

    Raises:
      TypeError: the shapes do not fit.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = pl.broadcast_to(x_ref[...], (2, 3))
      ...
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2, 3), jnp.int32), interpret=True)(jnp.arange(3))
      Array([[0, 1, 2],
             [0, 1, 2]], dtype=int32)
    """
    a = lax.asarray(a)
    offset = len(shape) - len(a.shape)
    if offset < 0:
        raise TypeError(f"broadcast_to: the shape {tuple(shape)} has fewer axes than the array, of shape {a.shape}")
    return lax.broadcast_in_dim(a, shape, tuple(range(offset, len(shape))))


def debug_print(fmt: str, *args: Any) -> None:
    """Print values while the kernel runs, like `jax.debug.print`.

    Args:
      fmt: a text with a ``{}`` for each value.
      *args: arrays.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     pl.debug_print("the first element is {}", x_ref[0])
      ...     out_ref[...] = x_ref[...]
      ...
      >>> y = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), interpret=True)(jnp.array([6, 7]))
      the first element is 6
      >>> jax.effects_barrier()
    """
    _debug_print(fmt, *args)


def debug_check(condition: Any, message: str | Callable[[], str]) -> None:
    """Check a condition while the kernel runs, with `enable_debug_checks` (`jax_pallas_enable_debug_checks`).

    Args:
      condition: a bool scalar.
      message: the message of the error, or a function that returns it.

    Raises:
      jax.errors.JaxRuntimeError: the condition does not hold. It has the message, and is raised at the latest when
        results are waited for.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     pl.debug_check(x_ref[0] >= 0, "there is a square root of numbers that are not negative")
      ...     out_ref[...] = jnp.sqrt(x_ref[...])
      ...
      >>> x = jnp.array([-4., 9.])
      >>> pl.pallas_call(kernel, x, interpret=True)(x)  # checks are not enabled
      Array([nan,  3.], dtype=float32)
      >>> with pl.enable_debug_checks(True):
      ...     try:
      ...         jax.block_until_ready(pl.pallas_call(kernel, x, interpret=True)(x))
      ...     except jax.errors.JaxRuntimeError as error:
      ...         print(str(error).splitlines()[-1])
      AssertionError: there is a square root of numbers that are not negative
    """
    if flags.enable_debug_checks.value:
        assert_while_running(message, condition)


def assert_while_running(message: str | Callable[[], str], condition: Any) -> None:
    """Raise an error of the runtime, at the latest when results are waited for, if a bool scalar does not hold."""
    _debug_callback(functools.partial(_assert, message), condition)


def _assert(message: str | Callable[[], str], condition: Any) -> None:
    if not condition:
        raise AssertionError(message() if callable(message) else message)


class _Filling(threading.local):
    zero: bool = False  # whether memory starts as 0


_filling = _Filling()


@contextmanager
def memory_starts(as_zero: bool) -> Iterator[None]:
    """Memory that is made in this context holds 0, or a value that marks unwritten elements."""
    saved, _filling.zero = _filling.zero, as_zero
    try:
        yield
    finally:
        _filling.zero = saved


def uninitialized(aval: Any) -> Any:
    """The value of unwritten memory: nan, or the least integer, so that its use is visible."""
    dtype = aval.dtype
    if _filling.zero:
        value: Any = 0
    elif dtypes.is_inexact(dtype):
        value = np.nan
    else:
        value = False if dtype == np.bool_ else dtypes.iinfo(dtype).min
    return full(aval.shape, value, dtype)


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array of zeros.

    Args:
      shape: a sequence of ints.
      dtype: the dtype of the elements.
      out_sharding: None; others raise NotImplementedError.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> def kernel(x_ref, out_ref):
      ...     both = pl.empty((4,), x_ref.dtype)
      ...     out_ref[...] = both.at[:2].set(x_ref[...]).at[2:].set(x_ref[...] * 10)
      ...
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((4,), jnp.int32), interpret=True)(jnp.array([1, 2]))
      Array([ 1,  2, 10, 20], dtype=int32)
    """
    if out_sharding is not None:
        raise NotImplementedError(public("empty: out_sharding is not supported here; use jax.device_put"))
    return full(tuple(shape), 0, dtype)


def empty_like(x: Any) -> Any:
    """`empty` arrays like the leaves of a tree.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> made = pl.empty_like({"w": jnp.ones((2, 3)), "steps": jax.ShapeDtypeStruct((), jnp.int32)})
      >>> jax.tree.map(lambda x: x.at[...].set(7).sum(), made)
      {'steps': Array(7, dtype=int32), 'w': Array(42., dtype=float32)}
    """
    return pytree.tree_map(lambda leaf: empty(abstractify(leaf).shape, abstractify(leaf).dtype), x)


def empty_ref_like(x: Any) -> Any:
    """References to `empty` arrays like the leaves of a tree: arrays, `MemoryRef`, or objects with a shape and a
    dtype.

    Examples:

      >>> from jax.experimental import pallas as pl

      >>> ref = pl.empty_ref_like(jax.ShapeDtypeStruct((3,), jnp.int32))
      >>> ref[...] = jnp.array([1, 2, 3])
      >>> ref[1] = 9
      >>> jax.freeze(ref)
      Array([1, 9, 3], dtype=int32)
    """
    return pytree.tree_map(lambda leaf: empty_ref(type_of(leaf)), x, is_leaf=lambda leaf: isinstance(leaf, MemoryRef))


def is_memory(x: Any) -> bool:
    """Whether an object is a leaf of a tree of memory: memory, or an object with a shape and a dtype."""
    return hasattr(x, "shape") or hasattr(x, "is_allocated")


def allocate(tree: Any) -> Any:
    """References to new memory, for the leaves of a tree of memory (`MemoryRef`, `SemaphoreType`) or of shapes."""

    def make(memory):
        if isinstance(memory, Ref) or hasattr(memory, "is_allocated"):
            return memory
        aval, space, first = type_of(memory), getattr(memory, "memory_space", None), getattr(memory, "first", None)
        if first is None:
            first = full(aval.shape, 0, aval.dtype) if starts_as_zero(memory, space) else uninitialized(aval)
        return new_ref(first, memory_space=space if hasattr(memory, "inner_aval") else None)

    return pytree.tree_map(make, tree, is_leaf=is_memory)


def type_of(x: Any) -> ShapedArray:
    """The type of memory, or of an object with a shape and a dtype."""
    if not isinstance(x, Tracer) and hasattr(x, "inner_aval"):
        return x.inner_aval
    aval = aval_of(x) if isinstance(x, Tracer) else abstractify(x)
    return getattr(aval, "inner_aval", aval)


def named(kernel: Callable[..., Any]) -> str:
    """The name of a kernel in messages."""
    while isinstance(kernel, functools.partial):
        kernel = kernel.func
    return getattr(kernel, "__name__", "the kernel")
