"""Derivatives of the reductions.

The maximum's tangent is that of the element that attains it; elements that tie share it equally.
The product's is the sum of each tangent times the product of all the other elements, formed
without division, so that zeros are not an exception.
"""

from __future__ import annotations

from bedrax.autodiff.forward import jvp_flat
from bedrax.autodiff.tables import jvp, jvp_rules, linear, not_transposable, zero
from bedrax.batching.rules.reductions import over_arrays
from bedrax.core import dims
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.typing import ArrayLike
from bedrax.lax.primitives import reductions
from bedrax.lax.primitives.conversions import convert_element_type
from bedrax.lax.primitives.cumulative import cumprod, shifted
from bedrax.lax.primitives.elementwise import div, eq, mul
from bedrax.lax.primitives.reductions import reduce_sum
from bedrax.lax.primitives.shaping import broadcast_in_dim, concatenate, reshape, transpose


def spread(x: ArrayLike, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """`x`, from which `axes` were reduced away, repeated along them to `shape`."""
    return broadcast_in_dim(x, shape, [i for i in range(len(shape)) if i not in axes])


def _sum_transpose(ct, x, *, axes):
    return [spread(ct, x.aval.shape, axes)]


def _extreme(t, ans, x, *, axes):
    aval = aval_of(x)
    attained = convert_element_type(eq(x, spread(ans, aval.shape, axes)), aval.dtype)
    return div(reduce_sum(mul(t, attained), axes), reduce_sum(attained, axes))


def _prod(t, ans, x, *, axes):
    if not axes:
        return t
    shape = aval_of(x).shape
    kept = [i for i in range(len(shape)) if i not in axes]
    one_axis = lambda v: reshape(
        transpose(v, (*kept, *axes)), (*[shape[i] for i in kept], dims.size([shape[i] for i in axes]))
    )
    x, t = one_axis(x), one_axis(t)
    last = len(kept)
    others = mul(shifted(cumprod(x, last), 1, last), shifted(cumprod(x, last, reverse=True), 1, last, reverse=True))
    return reduce_sum(mul(t, others), (last,))


linear(reductions.reduce_sum_p, _sum_transpose)
jvp(reductions.reduce_max_p, _extreme)
jvp(reductions.reduce_min_p, _extreme)
jvp(reductions.reduce_prod_p, _prod)
zero(reductions.argmax_p, reductions.argmin_p, reductions.reduce_and_p, reductions.reduce_or_p, reductions.reduce_xor_p)


@jvp_rules.rule(reductions.reduce_p)
def _reduce_jvp(primals, tangents, *, dimensions, jaxpr):
    """A fold by halves is differentiable step by step."""
    combine = over_arrays(jaxpr)

    def fold(*args):
        half = len(args) // 2
        shape = aval_of(args[0]).shape
        kept = [i for i in range(len(shape)) if i not in dimensions]
        sizes = [shape[i] for i in kept]
        columns = []
        for x, init in zip(args[:half], args[half:]):
            # The initial value is one more element to fold.
            flat = reshape(transpose(x, (*kept, *dimensions)), (*sizes, dims.size([shape[i] for i in dimensions])))
            columns.append(concatenate([broadcast_in_dim(init, (*sizes, 1), ()), flat], len(kept)))
        return reductions.fold_halves(lambda a, b: combine(*a, *b), columns, len(kept))

    return jvp_flat(fold, primals, tangents)


not_transposable(reductions.reduce_p, why="a fold with any function; its jvp folds by halves, which is transposable")
