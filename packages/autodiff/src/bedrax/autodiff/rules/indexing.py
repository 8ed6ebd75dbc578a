"""Derivatives of indexing: a gather's transpose is a scatter-add, and the other way round."""

from __future__ import annotations

import numpy as np

from bedrax.autodiff.tables import add_tangents, is_undefined, jvp_rules, not_transposable, transpose_rules
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.lax import filling
from bedrax.lax.filling import zeros_of
from bedrax.lax.primitives import conversions, elementwise, indexing, shaping
from bedrax.lax.primitives.placement import cotangent_type
from bedrax.lax.symbolic_zeros import Zero, instantiate


def _no_tangent(*tangents) -> bool:
    return all(type(t) is Zero for t in tangents)


@jvp_rules.rule(indexing.gather_p, kind="linear")
def _gather_jvp(primals, tangents, *, fill_value, **params):
    x, indices = primals
    ans = indexing.gather_p.bind(x, indices, fill_value=fill_value, **params)
    if _no_tangent(tangents[0]):
        return ans, Zero.of(ans)
    # The fill value is constant.
    return ans, indexing.gather_p.bind(tangents[0], indices, fill_value=None if fill_value is None else 0, **params)


@transpose_rules.rule(indexing.gather_p, kind="linear")
def _gather_transpose(
    ct, operand, indices, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices, mode, fill_value
):
    out = indexing.scatter_add_p.bind(
        zeros_of(operand.aval),
        indices,
        ct,
        dimension_numbers=indexing.as_scatter(dimension_numbers),
        mode=mode,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        update_jaxpr=None,
        update_consts=(),
    )
    return [out, None]


def _take(x, indices, operand_ndim, updates_shape, params):
    """The elements of `x` at the positions that a scatter with these params updates; zero for dropped updates."""
    numbers, mode = params["dimension_numbers"], params["mode"]
    return indexing.gather_p.bind(
        x,
        indices,
        dimension_numbers=indexing.as_gather(numbers),
        mode=mode,
        slice_sizes=indexing.window_sizes(operand_ndim, updates_shape, numbers),
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
        fill_value=0 if mode is indexing.GatherScatterMode.FILL_OR_DROP else None,
    )


def _linear_scatter(prim):
    """Addition and subtraction are linear in operand and updates together."""

    def jvp(primals, tangents, **params):
        x, indices, updates = primals
        tx, _, tu = tangents
        ans = prim.bind(x, indices, updates, **params)
        if _no_tangent(tx, tu):
            return ans, Zero.of(ans)
        if type(tu) is Zero:
            return ans, tx
        return ans, prim.bind(instantiate(tx), indices, tu, **params)

    def transpose(ct, x, indices, updates, **params):
        ct_updates = None
        if is_undefined(updates):
            shape = updates.aval.shape
            ct_updates = _take(ct, indices, len(aval_of(ct).shape), shape, params)
            if prim is indexing.scatter_sub_p:
                ct_updates = elementwise.neg(ct_updates)
        return [ct if is_undefined(x) else None, None, ct_updates]

    jvp_rules.add(prim, jvp, "linear")
    transpose_rules.add(prim, transpose, "linear")


_linear_scatter(indexing.scatter_add_p)
_linear_scatter(indexing.scatter_sub_p)


def _winners(x_aval, indices, updates_aval, params):
    """Two boolean arrays: the elements of the updates that are written last, and those of the operand that stay.

    Each window gets a number; the numbers are scattered as the updates are, and read back.
    """
    numbers = params["dimension_numbers"]
    batch = tuple(d for d in range(updates_aval.ndim) if d not in numbers.update_window_dims)
    sizes = tuple(updates_aval.shape[d] for d in batch)
    count = 1
    for n in sizes:
        count = count * n
    number = elementwise.add(shaping.iota(np.int32, count), filling.full((count,), 1, np.int32))
    number = shaping.broadcast_in_dim(shaping.reshape(number, sizes), updates_aval.shape, batch)
    params = {**params, "update_jaxpr": None, "update_consts": ()}
    owner = indexing.scatter_p.bind(filling.full(x_aval.shape, 0, np.int32), indices, number, **params)
    taken = _take(owner, indices, x_aval.ndim, updates_aval.shape, params)
    return elementwise.eq(taken, number), elementwise.eq(owner, filling.full(x_aval.shape, 0, np.int32))


def _mask(keep, x):
    return elementwise.select(keep, x, filling.full_like(x, 0))


@jvp_rules.rule(indexing.scatter_p)
def _scatter_jvp(primals, tangents, **params):
    x, indices, updates = primals
    tx, _, tu = tangents
    if params["update_jaxpr"] is not None:
        if _no_tangent(tx, tu):
            ans = indexing.scatter_p.bind(x, indices, updates, **params)
            return ans, Zero.of(ans)
        raise NotImplementedError("scatter_apply cannot be differentiated; use gather, the function, and scatter.")
    ans = indexing.scatter_p.bind(x, indices, updates, **params)
    if _no_tangent(tx, tu):
        return ans, Zero.of(ans)
    if params["unique_indices"] or type(tu) is Zero:
        # If updates have no tangent, every element that is written last has the tangent zero.
        return ans, indexing.scatter_p.bind(instantiate(tx), indices, instantiate(tu), **params)
    wins, survives = _winners(aval_of(x), indices, aval_of(updates), params)
    base = zeros_of(aval_of(x)) if type(tx) is Zero else _mask(survives, tx)
    return ans, indexing.scatter_add_p.bind(base, indices, _mask(wins, tu), **params)


@transpose_rules.rule(indexing.scatter_p, kind="linear")
def _scatter_transpose(ct, x, indices, updates, **params):
    ct_x = ct_updates = None
    if is_undefined(x):
        u = updates.aval if is_undefined(updates) else aval_of(updates)
        ct_x = indexing.scatter_p.bind(ct, indices, zeros_of(ShapedArray(u.shape, aval_of(ct).dtype)), **params)
    if is_undefined(updates):
        shape = updates.aval.shape
        ct_updates = _take(ct, indices, len(aval_of(ct).shape), shape, params)
        if not params["unique_indices"]:
            wins, _ = _winners(aval_of(ct), indices, updates.aval, params)
            ct_updates = _mask(wins, ct_updates)
    return [ct_x, None, ct_updates]


@jvp_rules.rule(indexing.scatter_mul_p)
def _scatter_mul_jvp(primals, tangents, **params):
    x, indices, updates = primals
    tx, _, tu = tangents
    ans = indexing.scatter_mul_p.bind(x, indices, updates, **params)
    out = Zero.of(ans)
    if type(tx) is not Zero:
        out = indexing.scatter_mul_p.bind(tx, indices, updates, **params)
    if type(tu) is not Zero:
        if not params["unique_indices"]:
            raise NotImplementedError(
                "scatter_mul: a derivative by updates needs unique_indices=True; pass it if it holds"
            )
        old = _take(x, indices, len(aval_of(x).shape), aval_of(updates).shape, params)
        term = indexing.scatter_add_p.bind(zeros_of(aval_of(x)), indices, elementwise.mul(tu, old), **params)
        out = add_tangents(out, term)
    return ans, out


@transpose_rules.rule(indexing.scatter_mul_p)
def _scatter_mul_transpose(ct, x, indices, updates, **params):
    if is_undefined(updates):
        raise ValueError("'scatter-mul' is linear in its operand only")
    return [indexing.scatter_mul_p.bind(ct, indices, updates, **params), None, None]


def _extreme_scatter(prim):
    """The derivative goes to the element that attains the extreme; elements that tie share it."""

    def jvp(primals, tangents, **params):
        x, indices, updates = primals
        tx, _, tu = tangents
        ans = prim.bind(x, indices, updates, **params)
        if _no_tangent(tx, tu):
            return ans, Zero.of(ans)
        dtype, shape = aval_of(ans).dtype, aval_of(updates).shape
        rank = len(aval_of(x).shape)
        as_number = lambda p: conversions.convert_element_type(p, dtype)
        kept = as_number(elementwise.eq(x, ans))
        attains = as_number(elementwise.eq(updates, _take(ans, indices, rank, shape, params)))
        ties = indexing.scatter_add_p.bind(kept, indices, attains, **params)
        out = elementwise.mul(instantiate(tx), elementwise.div(kept, _at_least_one(ties)))
        if type(tu) is not Zero:
            share = elementwise.div(attains, _at_least_one(_take(ties, indices, rank, shape, params)))
            out = indexing.scatter_add_p.bind(out, indices, elementwise.mul(tu, share), **params)
        return ans, out

    jvp_rules.add(prim, jvp)
    not_transposable(prim)


def _at_least_one(ties):
    return elementwise.max(ties, filling.full_like(ties, 1))


_extreme_scatter(indexing.scatter_min_p)
_extreme_scatter(indexing.scatter_max_p)


@jvp_rules.rule(indexing.dynamic_slice_p, kind="linear")
def _dynamic_slice_jvp(primals, tangents, *, slice_sizes):
    x, *starts = primals
    ans = indexing.dynamic_slice_p.bind(x, *starts, slice_sizes=slice_sizes)
    if type(tangents[0]) is Zero:
        return ans, Zero.of(ans)
    return ans, indexing.dynamic_slice_p.bind(tangents[0], *starts, slice_sizes=slice_sizes)


@transpose_rules.rule(indexing.dynamic_slice_p, kind="linear")
def _dynamic_slice_transpose(ct, x, *starts, slice_sizes):
    return [indexing.dynamic_update_slice_p.bind(zeros_of(x.aval), ct, *starts), *[None] * len(starts)]


@jvp_rules.rule(indexing.dynamic_update_slice_p, kind="linear")
def _dynamic_update_slice_jvp(primals, tangents):
    x, update, *starts = primals
    tx, tu, *_ = tangents
    ans = indexing.dynamic_update_slice_p.bind(x, update, *starts)
    if _no_tangent(tx, tu):
        return ans, Zero.of(ans)
    return ans, indexing.dynamic_update_slice_p.bind(instantiate(tx), instantiate(tu), *starts)


@transpose_rules.rule(indexing.dynamic_update_slice_p, kind="linear")
def _dynamic_update_slice_transpose(ct, x, update, *starts):
    aval = update.aval if is_undefined(update) else aval_of(update)
    ct_x = ct_update = None
    if is_undefined(x):
        zeros = ShapedArray(aval.shape, aval_of(ct).dtype, sharding=cotangent_type(aval).split)
        ct_x = indexing.dynamic_update_slice_p.bind(ct, zeros_of(zeros), *starts)
    if is_undefined(update):
        ct_update = indexing.dynamic_slice_p.bind(ct, *starts, slice_sizes=aval.shape)
    return [ct_x, ct_update, *[None] * len(starts)]
