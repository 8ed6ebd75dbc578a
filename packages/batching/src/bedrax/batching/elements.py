"""Operations on arrays whose elements are several numbers each (see `bedrax.lax.element_types`).

The effect on the bases of an operation that moves elements is its batching rule with the trailing axes mapped, one
after the other from the last.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bedrax.batching.tables import AxisData
from bedrax.batching.trace import batch_flat
from bedrax.lax import element_types
from bedrax.lax.axes import move_axis, rank_of
from bedrax.lax.primitives import elementwise, reductions

if TYPE_CHECKING:
    from bedrax.core.avals import ShapedArray
    from bedrax.core.tracing import Primitive


# A comparison compares whole elements: the results for the numbers of one element are combined.
_JOINED = {elementwise.eq_p: reductions.reduce_and_p, elementwise.ne_p: reductions.reduce_or_p}


def function_on_bases(prim: Primitive, avals: list[ShapedArray], params: dict[str, Any]) -> Callable[..., Any]:
    """`prim`, for arrays of types `avals`, as a function of bases. It is traceable and returns one value or a list."""
    try:
        return _function(prim, tuple(avals), tuple(params.items()))
    except TypeError:  # parameters that cannot be hashed
        return _function.__wrapped__(prim, tuple(avals), tuple(params.items()))


@functools.lru_cache(maxsize=2048)
def _function(prim, avals, items):
    params = dict(items)
    results = prim.abstract_eval(*avals, **params)
    results = list(results) if prim.multiple_results else [results]
    found = [a.dtype for a in (*avals, *results) if element_types.is_extended(a)]
    if len(set(found)) != 1:
        raise TypeError(f"{prim} does not accept dtypes {', '.join(map(str, dict.fromkeys(found)))} together")
    sizes = tuple(found[0].element_shape)
    is_element = [element_types.is_extended(a) for a in avals]
    join = _JOINED.get(prim)
    if join is None and not all(map(element_types.is_extended, results)):
        raise TypeError(f"{prim} does not accept dtype {found[0]}: it needs numbers")

    def fun(*bases):
        outs = _mapped(prim, params, len(sizes), sizes, is_element, bases)
        if join is not None:
            outs = [join.bind(x, axes=tuple(range(rank_of(x) - len(sizes), rank_of(x)))) for x in outs]
        return outs if prim.multiple_results else outs[0]

    return fun


def _mapped(prim, params, depth, sizes, is_element, args) -> list:
    if not depth:
        out = prim.bind(*args, **params)
        return list(out) if prim.multiple_results else [out]

    def inner(*args):
        return _mapped(prim, params, depth - 1, sizes, is_element, args)

    marks: list[Any] = [rank_of(x) - 1 if e else None for x, e in zip(args, is_element, strict=True)]
    outs, dims = batch_flat(inner, AxisData(None, sizes[depth - 1]), args, marks)
    return [x if d is None else move_axis(x, d, -1) for x, d in zip(outs, dims, strict=True)]
