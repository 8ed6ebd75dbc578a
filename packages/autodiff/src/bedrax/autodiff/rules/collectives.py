"""Differentiation of collectives. Sums over an axis transpose to sums over it."""

from bedrax.autodiff.tables import absent, linear, zero
from bedrax.lax.primitives.collectives import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    reduce_scatter_p,
)

linear(psum_p, lambda ct, x, **params: [psum_p.bind(ct, **params)])
linear(
    ppermute_p,
    lambda ct, x, *, axis_name, perm: [ppermute_p.bind(ct, axis_name=axis_name, perm=tuple((d, s) for s, d in perm))],
)
linear(
    all_gather_p,
    lambda ct, x, *, all_gather_dimension, **params: [
        reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params)
    ],
)
linear(
    reduce_scatter_p,
    lambda ct, x, *, scatter_dimension, **params: [
        all_gather_p.bind(ct, all_gather_dimension=scatter_dimension, **params)
    ],
)
linear(
    all_to_all_p,
    lambda ct, x, *, split_axis, concat_axis, **params: [
        all_to_all_p.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params)
    ],
)
absent(pmax_p, pmin_p, why="which index attains the extremum is not known on every index")
zero(axis_index_p)
