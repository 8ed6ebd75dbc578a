"""Masked reads and writes, and the atomic operations of devices (`jax.experimental.pallas.triton`).

Runs of a kernel are executed one after the other, so every operation is atomic. Hints for a compiler
(`cache_modifier`...) are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.avals import aval_of
from bedrax.core.defining import named
from bedrax.numpy import indexing
from bedrax.pallas.inside import broadcast_to
from bedrax.pallas.specs import CompilerParams as _CompilerParams
from bedrax.state import Ref, views
from bedrax.state.operations import as_view
from bedrax.state.views import Indexed, TransformedRef

__all__ = [
    "CompilerParams",
    "approx_tanh",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "debug_barrier",
    "dot",
    "load",
    "max_contiguous",
    "store",
]


@dataclass(frozen=True)
class CompilerParams(_CompilerParams):
    """Options for Triton. They are stored only: Triton does not run here.

    Attributes:
      num_warps: groups of 32 threads for each run of a kernel, or None.
      num_stages: stages that the compiler makes of a loop, or None.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import triton as plgpu

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = x_ref[...] + 5
      ...
      >>> x, params = jnp.arange(3), plgpu.CompilerParams(num_warps=4, num_stages=2)
      >>> params
      CompilerParams(num_warps=4, num_stages=2)
      >>> pl.pallas_call(kernel, x, compiler_params=params, interpret=True)(x)
      Array([5, 6, 7], dtype=int32)
    """

    num_warps: int | None = None
    num_stages: int | None = None


def _like(x: Any, shape: tuple, dtype: Any) -> Any:
    return broadcast_to(lax.convert_element_type(x, dtype), shape)


def load(
    ref: Ref,
    *,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Any:
    """``ref[...]``, of a reference or a view of one.

    Args:
      mask: a boolean per element: whether it is read; its shape is that of `ref` or is broadcast to it.
      other: the value for the other elements, which is broadcast and converted; default: any value.
      cache_modifier, eviction_policy, volatile: for a compiler; not used.

    Returns:
      An array of the shape and dtype of `ref`.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = pltpu.load(x_ref, mask=jnp.arange(4) < 3, other=-1)
      ...
      >>> x = jnp.array([5, 6, 7, 8])
      >>> pl.pallas_call(kernel, x, interpret=True)(x)
      Array([ 5,  6,  7, -1], dtype=int32)

      >>> from jax.experimental.pallas import triton as plgpu

      >>> def kernel(x_ref, out_ref):
      ...     places = 3 * pl.program_id(0) + jnp.arange(3)  # the last one is outside
      ...     out_ref[pl.program_id(0)] = plgpu.load(x_ref.at[places], mask=places < 5, other=0).sum()
      ...
      >>> f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((2,), jnp.int32), grid=(2,), interpret=True)
      >>> f(jnp.array([1, 2, 3, 10, 20]))
      Array([ 6, 30], dtype=int32)
    """
    value = ref[...]
    if mask is None or other is None:
        return value
    return lax.select(_like(mask, value.shape, np.bool_), value, _like(other, value.shape, value.dtype))


def store(ref: Ref, val: Any, *, mask: Any = None, eviction_policy: str | None = None) -> None:
    """``ref[...] = val``, of a reference or a view of one.

    Args:
      val: the value, which is broadcast and converted.
      mask: a boolean per element: whether it is written. An element that index arrays select twice is written according
        to the mask.
      eviction_policy: for a compiler; not used.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = jnp.zeros(4, jnp.int32)
      ...     pltpu.store(out_ref, x_ref[...], mask=x_ref[...] > 5)
      ...
      >>> x = jnp.array([5, 6, 3, 8])
      >>> pl.pallas_call(kernel, x, interpret=True)(x)
      Array([0, 6, 0, 8], dtype=int32)

      >>> from jax.experimental.pallas import triton as plgpu

      >>> def kernel(x_ref, out_ref):
      ...     places = 3 * pl.program_id(0) + jnp.arange(3)
      ...     values = plgpu.load(x_ref.at[places], mask=places < 5)
      ...     plgpu.store(out_ref.at[places], -values, mask=places < 5)
      ...
      >>> x = jnp.array([1, 2, 3, 10, 20])
      >>> pl.pallas_call(kernel, x, grid=(2,), interpret=True)(x)
      Array([ -1,  -2,  -3, -10, -20], dtype=int32)
    """
    view = as_view(ref)
    val = _like(val, view.shape, view.dtype)
    if mask is None:
        view[...] = val
        return
    mask = _like(mask, view.shape, np.bool_)
    dropped = _without(view, mask)
    if dropped is None:
        view[...] = lax.select(mask, val, view[...])
    else:
        dropped[...] = val


def _without(view: TransformedRef, mask: Any) -> TransformedRef | None:
    """The view with positions outside of the array for masked elements, so that writes to them are dropped."""
    last = view.transforms[-1] if view.transforms else None
    if not isinstance(last, Indexed) or last.plan.layout != (indexing.ARRAYS,):
        return None
    count = last.arrays
    first, *rest = view.operands[-count:]
    axis = last.plan.axes.index((indexing.ARRAY, 0))
    dtype = aval_of(first).dtype
    wide = np.int32 if dtypes.iinfo(dtype).bits < 32 else dtype  # a narrow index may reach no position outside
    first = _like(first, last.plan.block, wide)
    outside = lax.full_like(first, last.plan.shape[axis])
    operands = (*view.operands[:-count], lax.select(mask, first, outside), *rest)
    return TransformedRef(view.ref, view.transforms, operands)


def _atomic(
    name: str, doc: str, new: Callable[[Any, Any], Any], how: str | None = None, bits: bool = False, *, example: str
) -> Callable:
    def operation(x_ref_or_view: Ref, idx: Any, val: Any, *, mask: Any = None) -> Any:
        view = as_view(x_ref_or_view)
        part = view if idx is None else view.at[idx]
        old = part[...]
        val = _like(val, old.shape, old.dtype)
        last = part.transforms[-1] if part.transforms else None
        if how is None or not (isinstance(last, Indexed) and last.arrays) or old.dtype == np.bool_:
            store(part, new(old, val), mask=mask)
            return old
        if mask is not None:  # `old` again changes nothing, and neither does an addition of 0
            val = lax.select(_like(mask, old.shape, np.bool_), val, lax.full_like(old, 0) if how == "add" else old)
        scatter = lambda x, val: views.write(x, part.transforms, part.operands, val, how)
        whole = part.ref[...]
        part.ref[...] = _bit_by_bit(scatter, whole, val) if bits else scatter(whole, val)
        return old

    twice = "changed twice" if how else "given the last value"
    text = f"""``ref[idx] = {doc}`` where `mask` is true; returns the former value.

    Args:
      x_ref_or_view: a reference or a view of one.
      idx: a NumPy-style index; None: all. An element that index arrays name twice is {twice}.
      val: is broadcast and converted to the part's shape and dtype.
      mask: booleans that are broadcast to the part's shape: which elements to change; None: all.

    Returns:
      What the part held before the call, an array of its shape.
    """
    return named(operation, name, __name__, text, example)


def _bit_by_bit(scatter: Callable[[Any, Any], Any], x: Any, val: Any) -> Any:
    """The result of `scatter`, of integers 0 and 1, for each bit; only the last bit of its results is used."""
    one = lax.full_like(x, 1)

    def add(i, out):
        bit = lambda y: lax.bitwise_and(lax.shift_right_logical(y, lax.full_like(y, i)), lax.full_like(y, 1))
        made = lax.bitwise_and(scatter(bit(x), bit(val)), one)
        return lax.bitwise_or(out, lax.shift_left(made, lax.full_like(x, i)))

    return lax.fori_loop(0, dtypes.iinfo(x.dtype).bits, add, lax.full_like(x, 0))


atomic_add: Final = _atomic(
    "atomic_add",
    "ref[idx] + val",
    lax.add,
    "add",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import triton as plgpu

    >>> def kernel(bins_ref, _, counts_ref):
    ...     plgpu.atomic_add(counts_ref, (bins_ref[...],), 1)
    ...
    >>> counts = jnp.zeros(3, jnp.int32)
    >>> histogram = pl.pallas_call(kernel, counts, input_output_aliases={1: 0}, interpret=True)
    >>> histogram(jnp.array([0, 2, 2, 0, 2]), counts)
    Array([2, 0, 3], dtype=int32)
    """,
)
atomic_max: Final = _atomic(
    "atomic_max",
    "maximum(ref[idx], val)",
    lax.max,
    "max",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import triton as plgpu

    >>> def kernel(groups_ref, x_ref, _, best_ref):
    ...     plgpu.atomic_max(best_ref, (groups_ref[...],), x_ref[...])
    ...
    >>> best = jnp.zeros(2, jnp.int32)
    >>> largest = pl.pallas_call(kernel, best, input_output_aliases={2: 0}, interpret=True)
    >>> largest(jnp.array([0, 1, 0, 1]), jnp.array([7, 4, 3, 9]), best)
    Array([7, 9], dtype=int32)
    """,
)
atomic_min: Final = _atomic(
    "atomic_min",
    "minimum(ref[idx], val)",
    lax.min,
    "min",
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import triton as plgpu

    >>> def kernel(x_ref, _, least_ref):
    ...     plgpu.atomic_min(least_ref, 0, x_ref[pl.program_id(0)])
    ...
    >>> least = jnp.full(1, 100)
    >>> f = pl.pallas_call(kernel, least, grid=(4,), input_output_aliases={1: 0}, interpret=True)
    >>> f(jnp.array([8, 3, 12, 5]), least)
    Array([3], dtype=int32)
    """,
)
atomic_and: Final = _atomic(
    "atomic_and",
    "ref[idx] & val",
    lax.bitwise_and,
    "min",
    bits=True,
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import triton as plgpu

    >>> def kernel(flags_ref, _, common_ref):
    ...     plgpu.atomic_and(common_ref, 0, flags_ref[pl.program_id(0)])
    ...
    >>> common = jnp.full(1, -1)
    >>> f = pl.pallas_call(kernel, common, grid=(3,), input_output_aliases={1: 0}, interpret=True)
    >>> f(jnp.array([0b0111, 0b1110, 0b0110]), common)
    Array([6], dtype=int32)
    """,
)
atomic_or: Final = _atomic(
    "atomic_or",
    "ref[idx] | val",
    lax.bitwise_or,
    "max",
    bits=True,
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import triton as plgpu

    >>> def kernel(bits_ref, _, any_ref):
    ...     plgpu.atomic_or(any_ref, 0, 1 << bits_ref[pl.program_id(0)])
    ...
    >>> none = jnp.zeros(1, jnp.int32)
    >>> f = pl.pallas_call(kernel, none, grid=(3,), input_output_aliases={1: 0}, interpret=True)
    >>> f(jnp.array([0, 3, 0]), none)
    Array([9], dtype=int32)
    """,
)
atomic_xor: Final = _atomic(
    "atomic_xor",
    "ref[idx] ^ val",
    lax.bitwise_xor,
    "add",
    bits=True,
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import triton as plgpu

    >>> def kernel(x_ref, _, parity_ref):
    ...     plgpu.atomic_xor(parity_ref, 0, x_ref[pl.program_id(0)])
    ...
    >>> even = jnp.zeros(1, jnp.int32)
    >>> f = pl.pallas_call(kernel, even, grid=(5,), input_output_aliases={1: 0}, interpret=True)
    >>> f(jnp.array([4, 6, 4, 9, 6]), even)  # 4 and 6 are there twice
    Array([9], dtype=int32)
    """,
)
atomic_xchg: Final = _atomic(
    "atomic_xchg",
    "val",
    lambda old, val: val,
    example="""
    >>> from jax.experimental import pallas as pl
    >>> from jax.experimental.pallas import triton as plgpu

    >>> def kernel(x_ref, _, slot_ref, before_ref):
    ...     before_ref[...] = plgpu.atomic_xchg(slot_ref, (pl.ds(0, 2),), x_ref[...])
    ...
    >>> slot = jnp.array([1, 2, 3])
    >>> out = (slot, jax.ShapeDtypeStruct((2,), jnp.int32))
    >>> pl.pallas_call(kernel, out, input_output_aliases={1: 0}, interpret=True)(jnp.array([8, 9]), slot)
    (Array([8, 9, 3], dtype=int32), Array([1, 2], dtype=int32))
    """,
)


def atomic_cas(ref: Ref, cmp: Any, val: Any) -> Any:
    """``ref[...] = val`` if its value is `cmp`. Returns the former value.

    Args:
      ref: a reference of rank 0, or a view of one element: ``ref.at[i]``.
      cmp, val: scalars; they are converted to the dtype of `ref`.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import triton as plgpu

      >>> def kernel(_, lock_ref, before_ref):  # 0: the lock is free; the first program that reads 0 takes it
      ...     before_ref[pl.program_id(0)] = plgpu.atomic_cas(lock_ref.at[0], 0, 10 + pl.program_id(0))
      ...
      >>> lock = jnp.zeros(1, jnp.int32)
      >>> out = (lock, jax.ShapeDtypeStruct((3,), jnp.int32))
      >>> pl.pallas_call(kernel, out, grid=(3,), input_output_aliases={0: 0}, interpret=True)(lock)
      (Array([10], dtype=int32), Array([ 0, 10, 10], dtype=int32))
    """
    old = ref[...]
    ref[...] = lax.select(lax.eq(old, _like(cmp, old.shape, old.dtype)), _like(val, old.shape, old.dtype), old)
    return old


def dot(
    a: Any, b: Any, trans_a: bool = False, trans_b: bool = False, allow_tf32: bool | None = None, precision: Any = None
) -> Any:
    """The product of two matrices of one dtype.

    That of floats is in float32, that of integers in int32, or in a wider dtype of the operands.

    Args:
      a, b: arrays of rank 2; the last axis of `a` is as long as the first of `b`.
      trans_a, trans_b: transpose an operand first.
      allow_tf32: false: as precise as possible.
      precision: as in `jax.lax.dot_general`.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import triton as plgpu

      >>> def kernel(x_ref, y_ref, out_ref):
      ...     out_ref[...] = plgpu.dot(x_ref[...], y_ref[...], trans_b=True)
      ...
      >>> x, y = jnp.arange(6., dtype=jnp.float16).reshape(2, 3), jnp.ones((2, 3), jnp.float16)
      >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((2, 2), jnp.float32), interpret=True)(x, y)
      Array([[ 3.,  3.],
             [12., 12.]], dtype=float32)
    """
    if precision is None and allow_tf32 is False:
        precision = "highest"
    contracted = ((0 if trans_a else 1,), (1 if trans_b else 0,))
    wide = None
    if a.dtype.itemsize < 4:  # the sums of narrow elements need more bits
        wide = np.float32 if dtypes.is_floating(a.dtype) else np.int32 if dtypes.is_integer(a.dtype) else None
    return lax.dot_general(a, b, (contracted, ((), ())), precision=precision, preferred_element_type=wide)


def approx_tanh(x: Any) -> Any:
    """The hyperbolic tangent; exact here.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import triton as plgpu

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = plgpu.approx_tanh(x_ref[...])
      ...
      >>> x = jnp.array([-50., 0., 50.])
      >>> pl.pallas_call(kernel, x, interpret=True)(x)
      Array([-1.,  0.,  1.], dtype=float32)
    """
    return lax.tanh(x)


def max_contiguous(x: Any, values: Sequence[int] | int) -> Any:
    """Return `x`. The caller promises to a compiler that the elements of `x` come in consecutive groups.

    Args:
      x: an integer array.
      values: the number of consecutive elements in a group, or one number per axis of `x`. It does not change the
        result, and is not checked.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import triton as plgpu

      >>> def kernel(x_ref, out_ref):
      ...     places = plgpu.max_contiguous(2 * pl.program_id(0) + jnp.arange(2), 2)
      ...     out_ref[places] = x_ref[places] * 10
      ...
      >>> x = jnp.arange(4)
      >>> pl.pallas_call(kernel, x, grid=(2,), interpret=True)(x)
      Array([ 0, 10, 20, 30], dtype=int32)
    """
    return x


def debug_barrier() -> None:
    """Wait for the other threads of the kernel. Interpreted kernels have one thread, so the call does nothing.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import triton as plgpu

      >>> def kernel(x_ref, out_ref):
      ...     out_ref[...] = x_ref[...]
      ...     plgpu.debug_barrier()  # all have written; now they may read what others wrote
      ...     out_ref[...] = out_ref[::-1]
      ...
      >>> x = jnp.arange(3)
      >>> pl.pallas_call(kernel, x, interpret=True)(x)
      Array([2, 1, 0], dtype=int32)
    """
