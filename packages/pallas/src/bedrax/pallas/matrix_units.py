"""Matrix units of TPUs, interpreted: weights that are staged and loaded, accumulators, queues of results.

The state of a unit belongs to the kernel that is traced: a pushed weight is a value of the program.
"""

from __future__ import annotations

import weakref
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.avals import aval_of
from bedrax.core.tracing import current
from bedrax.pallas.specs import ACC
from bedrax.state import Ref
from bedrax.state.operations import as_view


@dataclass
class _Unit:
    staged: dict[Any, Any] = field(default_factory=dict)  # staging register -> weights
    loaded: Any = None
    results: deque[Any] = field(default_factory=deque)


_units: weakref.WeakKeyDictionary[Any, dict[int, _Unit]] = weakref.WeakKeyDictionary()


def _unit(number: int) -> _Unit:
    """A unit in its current state: each body of a loop or a condition has its own."""
    return _units.setdefault(current.trace, defaultdict(_Unit))[number]


def matmul_push_rhs(rhs: Any, staging_register: int, mxu_index: int, *, transpose: bool = False) -> None:
    """Stage the right operand of matrix products.

    Args:
      rhs: an array of rank 2.
      staging_register: the register. `matmul_acc_lhs` or `matmul_lhs_fifo` frees it by a load.
      mxu_index: the unit.
      transpose: stage the transposed array.

    Raises:
      ValueError: the register is in use, or `rhs` is not a matrix.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, w_ref, out_ref):
      ...     pltpu.matmul_push_rhs(w_ref[...], 0, 0, transpose=True)  # register 0 of unit 0
      ...     pltpu.matmul_lhs_fifo(x_ref[...], 0, load_staged_rhs=0)
      ...     out_ref[...] = pltpu.matmul_pop_fifo((2, 2), jnp.float32, 0)
      ...
      >>> x, w = jnp.array([[1., 2.], [3., 4.]]), jnp.array([[1., 1.], [0., 2.]])
      >>> pl.pallas_call(kernel, x, interpret=True)(x, w)
      Array([[3., 4.],
             [7., 8.]], dtype=float32)
    """
    unit = _unit(mxu_index)
    if aval_of(rhs).ndim != 2:
        raise ValueError(f"matmul_push_rhs: a matrix is needed, got {aval_of(rhs).short()}")
    if staging_register in unit.staged:
        raise ValueError(
            f"matmul_push_rhs: register {staging_register} of unit {mxu_index} holds weights; load them before"
        )
    unit.staged[staging_register] = lax.transpose(rhs, (1, 0)) if transpose else rhs


def _product(what: str, lhs: Any, mxu_index: int, load_staged_rhs: int | None, dtype: Any) -> Any:
    unit = _unit(mxu_index)
    if load_staged_rhs is not None:
        if load_staged_rhs not in unit.staged:
            raise ValueError(
                f"{what}: register {load_staged_rhs} of unit {mxu_index} holds nothing; matmul_push_rhs stages weights, in"
                " the same body of a loop or condition"
            )
        unit.loaded = unit.staged.pop(load_staged_rhs)
    if unit.loaded is None:
        raise ValueError(f"{what}: unit {mxu_index} has no weights; load staged ones with load_staged_rhs")
    rhs = unit.loaded
    if aval_of(lhs).ndim != 2 or aval_of(lhs).shape[1] != aval_of(rhs).shape[0]:
        raise ValueError(f"{what}: {aval_of(lhs).short()} and weights {aval_of(rhs).short()} have no product")
    rhs = lax.convert_element_type(rhs, aval_of(lhs).dtype)
    return lax.dot_general(lhs, rhs, (((1,), (0,)), ((), ())), preferred_element_type=dtype)


def matmul_acc_lhs(acc: Ref, lhs: Any, load_staged_rhs: int | None = None) -> None:
    """``acc += lhs @ weights``, in the unit of the accumulator.

    Args:
      acc: a reference to memory of `ACC`, or a view of one, of shape (m, n).
      lhs: an array of shape (m, k).
      load_staged_rhs: the register of the weights, of shape (k, n), to load first; None: the last loaded weights.

    Raises:
      ValueError: there are no weights, or shapes do not fit.
      TypeError: `acc` is in other memory.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, w_ref, out_ref):
      ...     def product(acc_ref):
      ...         pltpu.matmul_push_rhs(w_ref[...], 0, 1)
      ...         pltpu.matmul_acc_lhs(acc_ref, x_ref[...], load_staged_rhs=0)
      ...         pltpu.matmul_acc_lhs(acc_ref, x_ref[...])  # with the same weights
      ...         out_ref[...] = pltpu.matmul_pop(acc_ref)
      ...     pl.run_scoped(product, pltpu.ACC(1)((2, 2), jnp.float32))
      ...
      >>> x = jnp.array([[1., 2.], [3., 4.]])
      >>> pl.pallas_call(kernel, x, interpret=True)(x, jnp.eye(2))
      Array([[2., 4.],
             [6., 8.]], dtype=float32)
    """
    view, unit = _accumulator("matmul_acc_lhs", acc)
    product = _product("matmul_acc_lhs", lhs, unit, load_staged_rhs, view.dtype)
    if product.shape != view.shape:
        raise ValueError(f"matmul_acc_lhs: the product has shape {product.shape}, the accumulator {view.shape}")
    view[...] = lax.add(view[...], product)


def matmul_pop(acc: Ref) -> Any:
    """The value of an accumulator, which is set to 0.

    Args:
      acc: a reference to memory of `ACC`, or a view of one.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     def product(acc_ref):
      ...         pltpu.matmul_push_rhs(x_ref[...], 0, 0)
      ...         pltpu.matmul_acc_lhs(acc_ref, x_ref[...], load_staged_rhs=0)
      ...         out_ref[...] = pltpu.matmul_pop(acc_ref) + pltpu.matmul_pop(acc_ref)  # the second is 0
      ...     pl.run_scoped(product, pltpu.ACC(0)((2, 2), jnp.float32))
      ...
      >>> x = jnp.array([[1., 2.], [3., 4.]])
      >>> pl.pallas_call(kernel, x, interpret=True)(x)
      Array([[ 7., 10.],
             [15., 22.]], dtype=float32)
    """
    view, _ = _accumulator("matmul_pop", acc)
    value = view[...]
    view[...] = lax.full_like(value, 0)
    return value


def _accumulator(what: str, acc: Any) -> tuple[Any, int]:
    view = as_view(acc)
    if not isinstance(view.aval.memory_space, ACC):
        raise TypeError(f"{what}: a reference to accumulators is needed, memory of ACC(unit), got {view.aval.short()}")
    return view, view.aval.memory_space.mxu_id


def matmul_lhs_fifo(lhs: Any, mxu_index: int, *, load_staged_rhs: int | None = None) -> None:
    """Put ``lhs @ weights`` at the end of the queue of results of a unit.

    Args:
      lhs: an array of shape (m, k).
      mxu_index: the unit.
      load_staged_rhs: the register of the weights, of shape (k, n), to load first; None: the last loaded weights.

    Raises:
      ValueError: there are no weights, or shapes do not fit.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     pltpu.matmul_push_rhs(x_ref[...], 0, 0)
      ...     pltpu.matmul_lhs_fifo(x_ref[...], 0, load_staged_rhs=0)
      ...     pltpu.matmul_lhs_fifo(2 * x_ref[...], 0)
      ...     first, second = (pltpu.matmul_pop_fifo((2, 2), jnp.float32, 0) for _ in range(2))
      ...     out_ref[...] = second - first
      ...
      >>> x = jnp.array([[1., 2.], [3., 4.]])
      >>> pl.pallas_call(kernel, x, interpret=True)(x)
      Array([[ 7., 10.],
             [15., 22.]], dtype=float32)
    """
    dtype = aval_of(lhs).dtype
    wide = "float32" if dtypes.is_inexact(dtype) else "int32"
    _unit(mxu_index).results.append(_product("matmul_lhs_fifo", lhs, mxu_index, load_staged_rhs, dtypes.as_dtype(wide)))


def matmul_pop_fifo(shape: tuple[int, int], dtype: Any, mxu_index: int) -> Any:
    """Remove and return the first result in the queue of a unit.

    Args:
      shape, dtype: the type of the result; it is converted.
      mxu_index: the unit.

    Raises:
      ValueError: the queue is empty, or its first result has another shape.

    Examples:

      >>> from jax.experimental import pallas as pl
      >>> from jax.experimental.pallas import tpu as pltpu

      >>> def kernel(x_ref, out_ref):
      ...     pltpu.matmul_push_rhs(x_ref[...], 1, 0)
      ...     pltpu.matmul_lhs_fifo(x_ref[...], 0, load_staged_rhs=1)
      ...     out_ref[...] = pltpu.matmul_pop_fifo((2, 2), jnp.float32, 0)
      ...
      >>> pl.pallas_call(kernel, jnp.eye(2), interpret=True)(2 * jnp.eye(2))
      Array([[4., 0.],
             [0., 4.]], dtype=float32)
    """
    results = _unit(mxu_index).results
    if not results or results[0].shape != tuple(shape):
        raise ValueError(
            f"matmul_pop_fifo: unit {mxu_index} has {f'a result of shape {results[0].shape}' if results else 'no result'},"
            f" expected {tuple(shape)}; matmul_lhs_fifo makes results, in the same body of a loop or condition"
        )
    return lax.convert_element_type(results.popleft(), dtype)
