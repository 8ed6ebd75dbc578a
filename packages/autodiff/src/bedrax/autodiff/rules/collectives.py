"""Differentiation of collectives. A sum over an axis transposes to a sum, or to a cast if types have varying axes."""

from bedrax.autodiff.tables import absent, instantiate, is_undefined, jvp_rules, linear, transpose_rules, zero
from bedrax.core.avals import aval_of
from bedrax.core.tracing import pvary_p
from bedrax.lax import dynamic_index_in_dim, dynamic_slice_in_dim, full_like, mul
from bedrax.lax.primitives import collectives as p
from bedrax.lax.symbolic_zeros import Zero

linear(p.psum_p, lambda ct, x, **params: [p.psum_p.bind(ct, **params)])
linear(p.psum_invariant_p, lambda ct, x, *, axes, **_: [pvary_p.bind(ct, axes=frozenset(axes))])
linear(
    pvary_p,
    lambda ct, x, *, axes: [p.psum_invariant_p.bind(ct, axes=tuple(sorted(axes, key=str)), axis_index_groups=None)],
)
linear(
    p.cast_p,
    lambda ct, x, *, axes, to, src, varying: [
        p.cast_p.bind(ct, axes=axes, to=src and src.dual(), src=to and to.dual(), varying=not varying)
    ],
)
linear(
    p.ppermute_p,
    lambda ct, x, *, axis_name, perm: [p.ppermute_p.bind(ct, axis_name=axis_name, perm=tuple((d, s) for s, d in perm))],
)
linear(
    p.all_gather_p,
    lambda ct, x, *, all_gather_dimension, **params: [
        p.reduce_scatter_p.bind(ct, scatter_dimension=all_gather_dimension, **params)
    ],
)
linear(
    p.reduce_scatter_p,
    lambda ct, x, *, scatter_dimension, **params: [
        p.all_gather_p.bind(ct, all_gather_dimension=scatter_dimension, **params)
    ],
)
linear(
    p.all_to_all_p,
    lambda ct, x, *, split_axis, concat_axis, **params: [
        p.all_to_all_p.bind(ct, split_axis=concat_axis, concat_axis=split_axis, **params)
    ],
)
absent(p.pmax_p, p.pmin_p, why="which index attains the extremum is not known on every index")
zero(p.axis_index_p)


# The result is equal on all devices, and so is its cotangent: each device takes its part, without a sum.
def _own_part(ct, x, *, all_gather_dimension, axis_name, axis_index_groups, axis_size, tiled):
    if axis_index_groups is not None:
        return [
            p.reduce_scatter_p.bind(
                ct,
                scatter_dimension=all_gather_dimension,
                axis_name=axis_name,
                axis_size=axis_size,
                tiled=tiled,
                axis_index_groups=axis_index_groups,
            )
        ]
    index = p.axis_index(axis_name)
    if not tiled:
        return [dynamic_index_in_dim(ct, index, all_gather_dimension, keepdims=False)]
    size = x.aval.shape[all_gather_dimension]
    return [dynamic_slice_in_dim(ct, mul(index, size), size, all_gather_dimension)]


linear(p.all_gather_invariant_p, _own_part)


@jvp_rules.rule(p.ragged_all_to_all_p, kind="linear")
def _ragged_jvp(primals, tangents, **params):
    tables = primals[2:]
    ans = p.ragged_all_to_all_p.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents[:2]):
        return ans, Zero.of(ans)
    return ans, p.ragged_all_to_all_p.bind(*map(instantiate, tangents[:2]), *tables, **params)


@transpose_rules.rule(p.ragged_all_to_all_p, kind="linear")
def _ragged_transpose(ct, rows, output, first, count, into, arriving, **params):
    zeros = full_like(ct, 0, shape=rows.aval.shape if is_undefined(rows) else aval_of(rows).shape)

    def of_partners(table):
        return p.all_to_all(table, params["axis_name"], 0, 0, tiled=True, axis_index_groups=params["axis_index_groups"])

    back = kept = None
    if is_undefined(rows):  # rows that arrived return to their sender
        back = p.ragged_all_to_all_p.bind(ct, zeros, of_partners(into), arriving, of_partners(first), count, **params)
    if is_undefined(output):  # overwritten rows have no influence
        kept = p.ragged_all_to_all_p.bind(zeros, ct, first, count, into, arriving, **params)
    return [back, kept, None, None, None, None]
