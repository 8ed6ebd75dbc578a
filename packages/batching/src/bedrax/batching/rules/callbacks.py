"""Batching of callbacks: once per element, or once with whole batches if `vmap_method` requests it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bedrax import lax
from bedrax.batching.tables import AxisData, batch_rules, to_front
from bedrax.batching.trace import unmapped_aval
from bedrax.core import dims as core_dims
from bedrax.core.typing import ArrayLike
from bedrax.lax.axes import broadcast_axis
from bedrax.lax.primitives.callbacks import debug_callback_p, io_callback_p, pure_callback_p

if TYPE_CHECKING:
    from bedrax.core.avals import ShapedArray
    from bedrax.core.tracing import Primitive


def _one_by_one(prim, axis, args, dims, unrolled: bool, **params):
    """Apply the callback to each element, in order."""
    batched = [to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True) if d is not None]

    def call(rows):
        rest = iter(rows)
        return prim.bind(*(x if d is None else next(rest) for x, d in zip(args, dims, strict=True)), **params)

    if not unrolled or core_dims.definitely_equal(axis.size, 0):  # a loop of no steps knows the types of the results
        return lax.map(call, batched)
    columns = zip(
        *(call([lax.index_in_dim(x, i, keepdims=False) for x in batched]) for i in range(axis.size)), strict=True
    )
    return [lax.concatenate([lax.expand_dims(y, (0,)) for y in column], 0) for column in columns]


def batch_call(
    prim: Primitive,
    name: str,
    axis: AxisData,
    args: list[ArrayLike],
    dims: list[int | None],
    vmap_method: str,
    result_avals: tuple[ShapedArray, ...],
    params: dict[str, Any],
    per_element: Any = None,
    per_batch: Any = None,
) -> tuple[list[Any], list[Any]]:
    """A call of a Python function, batched by its `vmap_method`.

    Args:
      prim: takes `vmap_method` and `result_avals` as parameters.
      name: its name in messages.
      params: its other parameters; `per_element` when it is called once per element, `per_batch` when on batches.
    """
    if vmap_method is None:
        raise NotImplementedError(
            f"vmap of jax.{name} needs a vmap_method: pass"
            ' vmap_method="sequential" to call it once per element, or "expand_dims" or "broadcast_all" if it takes batches.'
        )
    if vmap_method.startswith("sequential"):
        unrolled = vmap_method == "sequential_unrolled"
        options = dict(params, result_avals=result_avals, vmap_method=vmap_method, **(per_element or {}))
        out = _one_by_one(prim, axis, args, dims, unrolled, **options)
        return out, [0] * len(out)
    if vmap_method == "legacy_vectorized":
        aligned = [x if d is None else to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
    elif vmap_method == "expand_dims":
        aligned = [
            broadcast_axis(x, 1, 0) if d is None else to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)
        ]
    else:
        aligned = [to_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
    types = tuple(unmapped_aval(axis.size, 0, a) for a in result_avals)
    out = prim.bind(*aligned, result_avals=types, vmap_method=vmap_method, **params, **(per_batch or {}))
    return out, [0] * len(out)


@batch_rules.rule(pure_callback_p)
def _pure(axis, args, dims, *, result_avals, vmap_method, **params):
    return batch_call(pure_callback_p, "pure_callback", axis, args, dims, vmap_method, result_avals, params)


@batch_rules.rule(io_callback_p)
def _io(axis, args, dims, *, ordered, **params):
    if ordered:
        raise ValueError("an io_callback with ordered=True cannot be mapped: vmap has no order of elements")
    out = _one_by_one(io_callback_p, axis, args, dims, True, ordered=ordered, **params)
    return out, [0] * len(out)


@batch_rules.rule(debug_callback_p)
def _debug(axis, args, dims, *, effect, **params):
    for i in range(axis.size):
        row = [x if d is None else lax.index_in_dim(x, i, d, keepdims=False) for x, d in zip(args, dims, strict=True)]
        debug_callback_p.bind(*row, effect=effect, **params)
    return [], []
