"""Derivatives of contractions: bilinear, so the transpose with respect to an operand is a contraction
of the cotangent with the other operand."""

from __future__ import annotations

import functools

from bedrax.autodiff.tables import absent, add_tangents, bilinear, is_undefined, jvp_rules, transpose_rules
from bedrax.core import dtypes
from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, aval_of
from bedrax.lax.primitives import contractions as p
from bedrax.lax.primitives import conversions, elementwise, shaping
from bedrax.lax.symbolic_zeros import Zero, instantiate


def as_cotangent(ct: Array, aval: ShapedArray) -> Array:
    """`ct` in the dtype of `aval`; a real operand of a complex product gets the real part."""
    dtype = aval_of(ct).dtype
    if dtype == aval.dtype:
        return ct
    if dtype in dtypes.complex_dtypes and aval.dtype not in dtypes.complex_dtypes:
        ct = elementwise.real(ct)
    return conversions.convert_element_type(ct, aval.dtype)


def _order(axes_of_x: list[int]) -> tuple[int, ...] | None:
    """The permutation after which the i-th dimension is number ``axes_of_x[i]``; None where it is already."""
    order = sorted(range(len(axes_of_x)), key=axes_of_x.__getitem__)
    return None if order == list(range(len(order))) else tuple(order)


def permute(x: Array, order: tuple[int, ...] | None) -> Array:
    """`x` with its dimensions in this order."""
    return x if order is None else shaping.transpose_p.bind(x, permutation=order)


@functools.lru_cache(4096)
def _lhs_plan(dimension_numbers, lhs_ndim: int, rhs_ndim: int) -> tuple:
    """(dimensions of the cotangent and of rhs to contract, order in which the result's dimensions are lhs')."""
    (lc, rc), (lb, rb) = dimension_numbers
    lhs_free, rhs_free = p.free_dims(lhs_ndim, lc, lb), p.free_dims(rhs_ndim, rc, rb)
    n, m = len(lb), len(lb) + len(lhs_free)
    numbers = ((tuple(range(m, m + len(rhs_free))), tuple(rhs_free)), (tuple(range(n)), rb))
    return numbers, _order([*lb, *lhs_free, *(lc[rc.index(d)] for d in sorted(rc))])


@functools.lru_cache(4096)
def _rhs_plan(dimension_numbers, lhs_ndim: int, rhs_ndim: int) -> tuple:
    """(dimensions of lhs and of the cotangent to contract, order in which the result's dimensions are rhs')."""
    (lc, rc), (lb, rb) = dimension_numbers
    lhs_free, rhs_free = p.free_dims(lhs_ndim, lc, lb), p.free_dims(rhs_ndim, rc, rb)
    n = len(lb)
    numbers = ((tuple(lhs_free), tuple(range(n, n + len(lhs_free)))), (lb, tuple(range(n))))
    return numbers, _order([*rb, *(rc[lc.index(d)] for d in sorted(lc)), *rhs_free])


def _dot_lhs_transpose(ct, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
    aval = lhs.aval
    numbers, order = _lhs_plan(dimension_numbers, len(aval.shape), len(aval_of(rhs).shape))
    out = p.dot_general_p.bind(ct, rhs, dimension_numbers=numbers, precision=precision, preferred_element_type=None)
    return as_cotangent(permute(out, order), aval)


def _dot_rhs_transpose(ct, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
    aval = rhs.aval
    numbers, order = _rhs_plan(dimension_numbers, len(aval_of(lhs).shape), len(aval.shape))
    out = p.dot_general_p.bind(lhs, ct, dimension_numbers=numbers, precision=precision, preferred_element_type=None)
    return as_cotangent(permute(out, order), aval)


bilinear(p.dot_general_p, _dot_lhs_transpose, _dot_rhs_transpose)
absent(p.scaled_dot_p, why="its operands are quantized; differentiate a product of floats instead")


@jvp_rules.rule(p.ragged_dot_general_p, kind="bilinear")
def _ragged_jvp(primals, tangents, **params):
    x, y, *rest = primals
    tx, ty, *_ = tangents
    ans = p.ragged_dot_general_p.bind(*primals, **params)
    out = Zero.of(ans)
    if type(tx) is not Zero:
        out = p.ragged_dot_general_p.bind(instantiate(tx), y, *rest, **params)
    if type(ty) is not Zero:
        out = add_tangents(out, p.ragged_dot_general_p.bind(x, instantiate(ty), *rest, **params))
    return ans, out


@transpose_rules.rule(p.ragged_dot_general_p, kind="bilinear")
def _ragged_transpose(
    ct, lhs, rhs, sizes, *offset, ragged_dot_dimension_numbers, precision=None, preferred_element_type=None
):
    numbers = ragged_dot_dimension_numbers
    to_lhs = is_undefined(lhs)
    if to_lhs and is_undefined(rhs):
        raise ValueError("'ragged_dot_general' is not linear in both operands together")
    lhs_ndim, rhs_ndim = (x.aval.ndim if is_undefined(x) else len(aval_of(x).shape) for x in (lhs, rhs))
    (lc, rc), (lb, rb) = dimensions = numbers.dot_dimension_numbers
    kind, _ = p.ragged_kind(lhs_ndim, numbers)
    if kind == "batch":
        rule = _dot_lhs_transpose if to_lhs else _dot_rhs_transpose
        out = rule(ct, lhs, rhs, dimension_numbers=dimensions, precision=precision)
        return [out, None, None] if to_lhs else [None, out, None]
    lhs_free = p.free_dims(lhs_ndim, lc, lb)
    rhs_free = p.free_dims(rhs_ndim, rc, rb, numbers.rhs_group_dimensions)
    n, m = len(lb), len(lb) + len(lhs_free)

    def ragged(x, y, *extra, contract, batch, ragged, group):
        new = p.RaggedDotDimensionNumbers((contract, batch), (ragged,), group)
        return p.ragged_dot_general_p.bind(
            x, y, sizes, *extra, ragged_dot_dimension_numbers=new, precision=precision, preferred_element_type=None
        )

    (cut,) = numbers.lhs_ragged_dimensions
    none = [None] * (1 + len(offset))
    # Positions in the result, whose leading dimensions are batch, lhs_free, rhs_free.
    batch, rows, columns = tuple(range(n)), tuple(range(n, m)), tuple(range(m, m + len(rhs_free)))
    if kind == "free":
        (group,) = numbers.rhs_group_dimensions
        if to_lhs:
            out = ragged(
                ct,
                rhs,
                *offset,
                contract=(columns, tuple(rhs_free)),
                batch=(batch, rb),
                ragged=n + lhs_free.index(cut),
                group=(group,),
            )
            contracted = [lc[rc.index(d)] for d in sorted(rc)]
            return [as_cotangent(permute(out, _order([*lb, *lhs_free, *contracted])), lhs.aval), None, *none]
        if offset:
            raise NotImplementedError(
                "ragged_dot_general with a group_offset has no derivative with respect to rhs; leave group_offset out, or"
                " apply lax.stop_gradient to rhs"
            )
        out = ragged(lhs, ct, contract=(tuple(lhs_free), rows), batch=(lb, batch), ragged=cut, group=())
        contracted = [rc[lc.index(d)] for d in sorted(lc)]
        return [None, as_cotangent(permute(out, _order([group, *rb, *contracted, *rhs_free])), rhs.aval), *none]
    # The ragged dimension is contracted: the result has the groups in front, and the other operand's ragged
    # dimension is a free one. Its contracted dimensions must be in the order of the indices of `sizes`.
    batch, rows, columns = (tuple([d + 1 for d in ds]) for ds in (batch, rows, columns))
    if to_lhs:
        other, b, c, f, take, aval = rhs, rb, rc, rhs_free, columns, lhs.aval
        out_axes = [*lb, *lc, *lhs_free]
    else:
        other, b, c, f, take, aval = lhs, lb, lc, lhs_free, rows, rhs.aval
        out_axes = [*rb, *rc, *rhs_free]
    other = shaping.transpose(other, (*b, *c, *f))
    k = n + len(c)
    out = ragged(
        other,
        ct,
        contract=(tuple(range(k, k + len(f))), take),
        batch=(tuple(range(n)), batch),
        ragged=n + lc.index(cut),
        group=(0,),
    )
    out = as_cotangent(permute(out, _order(out_axes)), aval)
    return [out, None, *none] if to_lhs else [None, out, *none]
