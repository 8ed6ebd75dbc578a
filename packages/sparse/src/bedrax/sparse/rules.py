"""The rows of the column `sparse_rules`: the primitives on sparse arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core import dtypes
from bedrax.core.jitting import jit, jit_p
from bedrax.lax.primitives import (
    calls,
    contractions,
    control_flow,
    conversions,
    convolution,
    custom_rules,
    indexing,
    reductions,
    shaping,
)
from bedrax.lax.primitives import elementwise as ew
from bedrax.sparse import bcoo, bcoo_products, bcoo_shaping
from bedrax.sparse.bcoo import BCOO
from bedrax.sparse.transform import is_sparse, refuse, sparse_program, sparse_rules, todense_p


def _with_data(mat: BCOO, data: Any) -> BCOO:
    return BCOO((data, mat.indices), **mat._info._asdict())


def _merged(mat: BCOO) -> BCOO:
    """The array with one element per index, for functions that are not linear."""
    return mat if mat.unique_indices else bcoo.bcoo_sum_duplicates(mat, nse=mat.nse)


# ---- elementwise functions of one operand with f(0) == 0

LINEAR = (ew.neg_p, ew.real_p, ew.imag_p, ew.conj_p, ew.copy_p)
NOT_LINEAR = (
    ew.abs_p,
    ew.asin_p,
    ew.asinh_p,
    ew.atan_p,
    ew.atanh_p,
    ew.cbrt_p,
    ew.ceil_p,
    ew.expm1_p,
    ew.floor_p,
    ew.log1p_p,
    ew.round_p,
    ew.sign_p,
    ew.sin_p,
    ew.sinh_p,
    ew.sqrt_p,
    ew.square_p,
    ew.tan_p,
    ew.tanh_p,
)


def _elementwise(prim, linear: bool) -> None:
    @sparse_rules.rule(prim)
    def rule(mat, **params):
        mat = mat if linear else _merged(mat)
        return _with_data(mat, prim.bind(mat.data, **params))


for _prim in LINEAR:
    _elementwise(_prim, True)
for _prim in NOT_LINEAR:
    _elementwise(_prim, False)


@sparse_rules.rule(conversions.convert_element_type_p)
def _convert(mat, *, new_dtype, weak_type):
    if not dtypes.is_inexact(new_dtype):  # a fraction is cut, and the sum of elements that are not 0 may be 0
        mat = _merged(mat)
    data = conversions.convert_element_type_p.bind(mat.data, new_dtype=new_dtype, weak_type=weak_type)
    return _with_data(mat, data)


@sparse_rules.rule(ew.integer_pow_p)
def _integer_pow(mat, *, y):
    if y <= 0:
        refuse(ew.integer_pow_p, f"the power {y} of 0 is not 0")
    mat = _merged(mat)
    return _with_data(mat, ew.integer_pow_p.bind(mat.data, y=y))


# ---- elementwise functions of two operands


def _add(x, y):
    if is_sparse(x) and is_sparse(y):
        if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
            n_batch, n_dense = min(x.n_batch, y.n_batch), min(x.n_dense, y.n_dense)
            x, y = (bcoo.bcoo_update_layout(m, n_batch=n_batch, n_dense=n_dense) for m in (x, y))
        dtype, b = bcoo.index_dtype_of((x, y)), x.n_batch
        batch = x.batch_shape
        arrays = [(m.data, m.indices.astype(dtype)) for m in (x, y)]
        parts = [[jnp.broadcast_to(a, (*batch, *a.shape[b:])) for a in pair] for pair in zip(*arrays)]
        data, indices = (jnp.concatenate(pair, b) for pair in parts)
        return BCOO((data, indices), shape=x.shape)
    mat, other = (x, y) if is_sparse(x) else (y, x)
    if not np.shape(other) and mat.shape:
        refuse(ew.add_p, "the sum of a sparse array and a number is dense")
    return mat.todense() + other


sparse_rules.rule(ew.add_p, ew.add_jaxvals_p)(_add)
sparse_rules.add(ew.sub_p, lambda x, y: _add(x, _with_data(y, -y.data) if is_sparse(y) else -y))


@sparse_rules.rule(ew.mul_p)
def _mul(x, y):
    if is_sparse(x) and is_sparse(y):
        return bcoo_products.bcoo_multiply_sparse(x, y)
    mat, other = (x, y) if is_sparse(x) else (y, x)
    return _with_data(mat, bcoo_products.bcoo_multiply_dense(mat, other))


@sparse_rules.rule(ew.div_p)
def _div(x, y):
    if is_sparse(y):
        raise NotImplementedError(
            "Division by a sparse array is not implemented because it would result in dense output. If this is your intent,"
            " use sparse.todense() to convert your arguments to a dense array."
        )
    x = x if dtypes.is_inexact(x.dtype) else _merged(x)  # a quotient of integers is cut
    there = _with_data(x, jnp.ones_like(x.data))
    divisors = bcoo_products.bcoo_multiply_dense(there, y)
    return _with_data(x, x.data / divisors if jnp.issubdtype(x.dtype, np.inexact) else lax.div(x.data, divisors))


# ---- shapes


sparse_rules.add(reductions.reduce_sum_p, lambda mat, *, axes, **params: bcoo_shaping.bcoo_reduce_sum(mat, axes=axes))


@sparse_rules.rule(shaping.broadcast_in_dim_p)
def _broadcast_in_dim(mat, *dynamic, shape, broadcast_dimensions, **params):
    return bcoo_shaping.bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=broadcast_dimensions)


@sparse_rules.rule(shaping.reshape_p)
def _reshape(mat, *dynamic, new_sizes, dimensions=None, **params):
    return bcoo_shaping.bcoo_reshape(mat, new_sizes=new_sizes, dimensions=dimensions)


sparse_rules.add(shaping.transpose_p, lambda mat, *, permutation: bcoo.bcoo_transpose(mat, permutation=permutation))
sparse_rules.add(shaping.squeeze_p, lambda mat, *, dimensions: bcoo_shaping.bcoo_squeeze(mat, dimensions=dimensions))
sparse_rules.add(shaping.rev_p, lambda mat, *, dimensions: bcoo_shaping.bcoo_rev(mat, dimensions))


@sparse_rules.rule(shaping.slice_p)
def _slice(mat, *, start_indices, limit_indices, strides):
    return bcoo_shaping.bcoo_slice(mat, start_indices=start_indices, limit_indices=limit_indices, strides=strides)


@sparse_rules.rule(shaping.concatenate_p)
def _concatenate(*mats, dimension):
    if not all(map(is_sparse, mats)):
        refuse(shaping.concatenate_p, "sparse and dense arrays together")
    return bcoo_shaping.bcoo_concatenate(mats, dimension=dimension)


@sparse_rules.rule(indexing.dynamic_slice_p)
def _dynamic_slice(mat, *starts, slice_sizes):
    return bcoo_shaping.bcoo_dynamic_slice(mat, starts, slice_sizes)


@sparse_rules.rule(indexing.gather_p)
def _gather(mat, indices, *, dimension_numbers, slice_sizes, mode, fill_value=None, **params):
    if is_sparse(indices):
        refuse(indexing.gather_p, "indices that are sparse")
    return bcoo_shaping.bcoo_gather(mat, indices, dimension_numbers, slice_sizes, mode=mode)


# ---- products


@sparse_rules.rule(contractions.dot_general_p)
def _dot_general(x, y, *, dimension_numbers, preferred_element_type=None, precision=None, **params):
    return bcoo_products.bcoo_dot_general(
        x, y, dimension_numbers=dimension_numbers, precision=precision, preferred_element_type=preferred_element_type
    )


@sparse_rules.rule(convolution.conv_general_dilated_p)
def _conv(
    x,
    y,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    preferred_element_type=None,
    **params,
):
    if not (is_sparse(x) and is_sparse(y)):
        refuse(convolution.conv_general_dilated_p, "sparse and dense arrays together")
    return bcoo_shaping.bcoo_conv_general_dilated(
        x,
        y,
        window_strides=window_strides,
        padding=padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=dimension_numbers,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        preferred_element_type=preferred_element_type,
    )


# ---- programs


sparse_rules.add(todense_p, lambda mat, *, tree: mat.todense())
sparse_rules.add(jit_p, lambda *values, jaxpr, **params: jit(sparse_program(jaxpr))(*values))


def _inline(prim, name: str) -> None:
    sparse_rules.add(prim, lambda *values, **params: sparse_program(params[name])(*values))


for _prim in (*calls.plain_calls, calls.remat_p, calls.composite_p, calls.custom_partitioning_p):
    _inline(_prim, "jaxpr")


@sparse_rules.rule(custom_rules.custom_jvp_call_p, custom_rules.custom_vjp_call_p)
def _custom(*values, call_jaxpr, rule, num_consts):
    """The function itself: its derivative rule is for dense arrays only."""
    return sparse_program(call_jaxpr)(*values)


@sparse_rules.rule(control_flow.cond_p)
def _cond(index, *values, branches, **params):
    return lax.switch(index, [sparse_program(b) for b in branches], *values)


@sparse_rules.rule(control_flow.while_p)
def _while(*values, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    edge = cond_nconsts + body_nconsts
    cond_consts, body_consts, init = values[:cond_nconsts], values[cond_nconsts:edge], values[edge:]
    cond, body = sparse_program(cond_jaxpr), sparse_program(body_jaxpr)
    return lax.while_loop(lambda c: cond(*cond_consts, *c)[0], lambda c: body(*body_consts, *c), list(init))


@sparse_rules.rule(control_flow.scan_p)
def _scan(*values, jaxpr, num_consts, num_carry, length, reverse, unroll, **params):
    consts, carry, xs = values[:num_consts], values[num_consts:][:num_carry], values[num_consts + num_carry :]
    if any(map(is_sparse, xs)):
        refuse(control_flow.scan_p, "sparse arrays to scan over")
    body = sparse_program(jaxpr)

    def step(carry, xs):
        out = body(*consts, *carry, *xs)
        if any(map(is_sparse, out[num_carry:])):
            refuse(control_flow.scan_p, "sparse results of each step")
        return out[:num_carry], out[num_carry:]

    carry, ys = lax.scan(step, list(carry), list(xs), length=length, reverse=reverse, unroll=unroll)
    return [*carry, *ys]
