"""Several equations as one TensorFlow operation, and the remaining equations.

TFLite quantizes, and grappler fuses, operations such as `Relu`, `Softmax`, `BiasAdd`, `Mean`. The functions of `nn` are
found by their names (`bedrax.jax2tf.composites`). This module has patterns for groups of equations: a vector that is
added to a product, the batch norms of libraries, a sum divided by a count, axes that are put back after a reduction. A
pattern starts at the last of the equations that it replaces. Equations without a use afterwards are not converted.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bedrax.core import dims
from bedrax.core.ir import Eqn, Jaxpr, Literal
from bedrax.jax2tf.composites import Fused, fused, own
from bedrax.lax.primitives import elementwise as p
from bedrax.lax.primitives.conversions import convert_element_type_p
from bedrax.lax.primitives.reductions import reduce_max_p, reduce_min_p, reduce_sum_p
from bedrax.lax.primitives.shaping import broadcast_in_dim_p, reshape_p
from bedrax.tf import tensorflow as tf


class Step(NamedTuple):
    """One operation of a plan: an equation, its operands, its function (None: its rule), and the values that it
    frees."""

    eqn: Eqn
    operands: tuple[Any, ...]
    build: Callable[..., Any] | None
    implicit: bool
    last: tuple[Any, ...]


_patterns: dict[Any, list[Callable[..., Any]]] = {}


def _pattern(*prims):
    def register(matcher):
        for prim in prims:
            _patterns.setdefault(prim, []).append(matcher)
        return matcher

    return register


class _Program:
    """A program in which patterns are searched."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
        self.uses = collections.Counter(v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Literal)
        self.uses.update(v for v in jaxpr.outvars if type(v) is not Literal)
        self.known = {v: c for v, c in zip(jaxpr.constvars, jaxpr.consts, strict=True) if v.aval.shape == ()}

    def by(self, atom: Any, *prims: Any) -> Eqn | None:
        """The equation that computes `atom`, if its primitive is one of `prims`."""
        eqn = None if atom is None or type(atom) is Literal else self.made.get(atom)
        return eqn if eqn is not None and eqn.primitive in prims else None

    def number(self, atom: Any) -> float | None:
        """The value of a known scalar, broadcast or not."""
        while (eqn := self.by(atom, broadcast_in_dim_p, convert_element_type_p)) is not None:
            atom = eqn.invars[0]
        value = atom.val if type(atom) is Literal else self.known.get(atom)
        if value is None or not np.issubdtype(np.asarray(value).dtype, np.number) or np.ndim(value):
            return None
        return None if np.iscomplexobj(value) else float(value)


def _has_shape(operand, out) -> bool:
    """Whether an operand has the shape of the result. A scalar may have an array as its partner."""
    return dims.definitely_equal_shape(operand.aval.shape, out.aval.shape)


# ---- activations ---------------------------------------------------------------------------------


@_pattern(p.max_p)
def _above_zero(program, eqn):
    """The larger of an array and the number 0, which `jax.numpy.maximum` and `clip` may compute."""
    (out,) = eqn.outvars
    if own(out):
        for x, limit in (eqn.invars, eqn.invars[::-1]):
            if type(x) is not Literal and _has_shape(x, out) and program.number(limit) == 0:
                return Fused((x,), lambda ctx, x: tf.nn.relu(x))
    return None


# ---- bits ----------------------------------------------------------------------------------------


def _possible(program, atom) -> int:
    """The bits that the elements of unsigned words may have set."""
    every = (1 << 8 * atom.aval.dtype.itemsize) - 1
    if (value := program.number(atom)) is not None:
        return int(value)
    eqn = program.by(atom, p.shift_left_p, p.shift_right_logical_p)
    count = None if eqn is None else program.number(eqn.invars[1])
    if count is None or count < 0:
        return every
    return every << int(count) & every if eqn.primitive is p.shift_left_p else every >> int(count)


@_pattern(p.or_p)
def _disjoint(program, eqn):
    """Words without common bits, as in a rotation: TFLite has no `or`; a sum replaces it."""
    x, y = eqn.invars
    if str(x.aval.dtype) not in ("uint8", "uint16", "uint32") or _possible(program, x) & _possible(program, y):
        return None
    pick = lambda ctx, x, y: (tf.bitwise.bitwise_or if ctx.enable_xla else tf.bitwise.bitwise_xor)(x, y)
    return Fused((x, y), pick)


# ---- along an axis -------------------------------------------------------------------------------


def _kept(program, atom, *prims) -> tuple[Eqn, bool] | None:
    """The reduction that computes `atom`, and whether its reduced axes are put back with one element each."""
    eqn = program.by(atom, *prims)
    if eqn is not None:
        return eqn, False
    wide = program.by(atom, reshape_p, broadcast_in_dim_p)
    eqn = None if wide is None else program.by(wide.invars[0], *prims)
    if eqn is None or program.uses[wide.invars[0]] > 1 or wide.params.get("dimensions") is not None:
        return None
    axes, shape = eqn.params["axes"], eqn.invars[0].aval.shape
    kept = tuple([d for d in range(len(shape)) if d not in axes])
    if wide.params.get("broadcast_dimensions", kept) != kept:
        return None
    ones = [1 if d in axes else n for d, n in enumerate(shape)]
    return (eqn, True) if dims.definitely_equal_shape(atom.aval.shape, ones) else None


@_pattern(p.div_p)
def _mean(program, eqn):
    (out,) = eqn.outvars
    total, keep = _kept(program, eqn.invars[0], reduce_sum_p) or (None, False)
    if total is None or str(out.aval.dtype) not in ("float32", "float64") or not _has_shape(eqn.invars[0], out):
        return None
    x, axes = total.invars[0], tuple(total.params["axes"])
    counts = [x.aval.shape[d] for d in axes]
    if not axes or not dims.is_constant_shape(counts) or program.number(eqn.invars[1]) != math.prod(counts):
        return None
    return Fused((x,), lambda ctx, x: tf.reduce_mean(x, ctx.integers(axes), keepdims=keep))


@_pattern(reshape_p, broadcast_in_dim_p)
def _keeping_axes(program, eqn):
    """A reduction whose reduced axes are put back: TensorFlow's reduction with `keepdims`."""
    (out,) = eqn.outvars
    if str(out.aval.dtype) not in ("float32", "float64"):
        return None
    found, keep = _kept(program, out, *_REDUCTIONS) or (None, False)
    if found is None or not keep or not found.params["axes"]:
        return None
    reduce, axes = _REDUCTIONS[found.primitive], found.params["axes"]
    return Fused((found.invars[0],), lambda ctx, x: reduce(x, ctx.integers(axes), keepdims=True))


_REDUCTIONS = {
    reduce_sum_p: lambda *args, **options: tf.reduce_sum(*args, **options),
    reduce_max_p: lambda *args, **options: tf.reduce_max(*args, **options),
    reduce_min_p: lambda *args, **options: tf.reduce_min(*args, **options),
}


# ---- along the last axis -------------------------------------------------------------------------


@_pattern(p.add_p, p.mul_p)
def _normalized(program, eqn):
    """``(x - mean) * rsqrt(variance + epsilon) * scale + offset``, by channels of images; scale or offset may be absent.

    TensorFlow's operation computes it in this order. TFLite and grappler make it a part of the convolution before it.
    """
    (out,) = eqn.outvars
    if str(out.aval.dtype) != "float32" or len(out.aval.shape) != 4:
        return None
    offset = None
    if eqn.primitive is p.add_p:
        x, y = eqn.invars
        out, wide = (x, y) if program.by(x, p.mul_p) is not None else (y, x)
        offset = _channels(program, wide, eqn.outvars[0].aval.shape)
        if offset is None or program.uses[out] > 1:
            return None
    factors = _factors(program, out)
    centred = [f for f in factors if program.by(f, p.sub_p) and _channels(program, f, f.aval.shape) is None]
    roots = [f for f in factors if program.by(f, p.rsqrt_p)]
    scale = [f for f in factors if not any(f is known for known in (*centred, *roots))]
    if len(centred) != 1 or len(roots) != 1 or len(scale) > 1 or program.uses[centred[0]] > 1:
        return None
    x, mean = program.by(centred[0], p.sub_p).invars
    whole = program.by(_peeled(program, program.by(roots[0], p.rsqrt_p).invars[0]), p.add_p)
    value = program.number(whole.invars[1]) if whole is not None else None
    if type(x) is Literal or not _has_shape(x, out) or value is None or value < 0:
        return None
    vectors = [_channels(program, v, out.aval.shape) for v in (mean, whole.invars[0], *scale)]
    if None in vectors:
        return None
    more = [] if offset is None else [offset]
    return Fused((x, *vectors, *more), lambda ctx, *xs: _batch_norm(ctx, value, len(scale), *xs))


def _batch_norm(ctx, epsilon: float, scaled: int, x, *given):
    vectors = [v if v.shape.rank == 1 else tf.reshape(v, [-1]) for v in given]
    like = lambda n: ctx.constant(np.full(x.shape[-1], n, np.float32))
    scale, offset = vectors[2 : 2 + scaled] or [like(1)], vectors[2 + scaled :] or [like(0)]
    return tf.raw_ops.FusedBatchNormV3(
        x=x, mean=vectors[0], variance=vectors[1], scale=scale[0], offset=offset[0], epsilon=epsilon, is_training=False
    ).y


def _factors(program, atom) -> list:
    """The factors of the nested products that compute `atom`. Those with a product of several uses are not split."""
    product = program.by(atom, p.mul_p)
    if product is None:
        inner = _channels(program, atom, atom.aval.shape)
        return [atom] if inner is None or inner is atom else _factors(program, inner)
    used = [a for a in product.invars if program.by(a, p.mul_p) and program.uses[a] > 1]
    return [atom] if used else [f for a in product.invars for f in _factors(program, a)]


def _peeled(program, atom):
    """The array that `atom` repeats along leading axes; `atom` itself if it repeats none."""
    while (eqn := program.by(atom, broadcast_in_dim_p, reshape_p)) is not None:
        inner, rank = eqn.invars[0], len(atom.aval.shape)
        if type(inner) is Literal or not inner.aval.shape:
            break
        if eqn.primitive is reshape_p:
            aligned = eqn.params["dimensions"] is None
        else:
            aligned = eqn.params["broadcast_dimensions"][-1] == rank - 1
        *leading, size = inner.aval.shape
        ones = all(dims.definitely_equal(d, 1) for d in leading)
        if not aligned or not ones or not dims.definitely_equal(size, atom.aval.shape[-1]):
            break
        atom = inner
    return atom


def _channels(program, atom, shape):
    """The array that `atom` repeats along all axes of `shape` except the last one; None if it does not, or for an
    unknown size."""
    if type(atom) is Literal or not atom.aval.shape or not dims.is_constant_dim(shape[-1]):
        return None
    atom = _peeled(program, atom)
    *leading, size = atom.aval.shape
    return atom if size == shape[-1] and all(dims.definitely_equal(d, 1) for d in leading) else None


@_pattern(p.add_p)
def _bias(program, eqn):
    """A vector added along the last axis."""
    if not own(eqn.outvars[0]) or len(eqn.outvars[0].aval.shape) < 2:
        return None
    for x, wide in (eqn.invars, eqn.invars[::-1]):
        bias = None if type(x) is Literal or program.by(x, broadcast_in_dim_p) else _as_vector(program, wide, x)
        if bias is not None:
            return Fused((x, bias), lambda ctx, x, b: tf.nn.bias_add(x, b))
    return None


def _as_vector(program, atom, whole):
    """The vector that `atom` repeats for every row of `whole`."""
    if type(atom) is Literal or not dims.definitely_equal_shape(atom.aval.shape, whole.aval.shape):
        return None
    atom = _peeled(program, atom)
    return atom if len(atom.aval.shape) == 1 else None


# ---- plans ---------------------------------------------------------------------------------------

# Operations that TensorFlow broadcasts by itself.
_BROADCASTING = frozenset(
    [
        p.add_p,
        p.sub_p,
        p.mul_p,
        p.div_p,
        p.max_p,
        p.min_p,
        p.eq_p,
        p.ne_p,
        p.lt_p,
        p.le_p,
        p.gt_p,
        p.ge_p,
        p.and_p,
        p.or_p,
        p.xor_p,
        p.select_n_p,
    ]
)


def _covers(atom, implicit: dict, shape) -> Iterator[int]:
    """The axes along which an operand has all the elements of the result."""
    if type(atom) is Literal:
        return
    if atom not in implicit:
        if len(atom.aval.shape) == len(shape):
            yield from range(len(shape))
        return
    eqn = implicit[atom]
    inner = eqn.invars[0].aval.shape
    for size, axis in zip(inner, eqn.params["broadcast_dimensions"], strict=True):
        if dims.definitely_equal(size, shape[axis]):
            yield axis


def _implicit_broadcasts(steps, outvars) -> frozenset:
    """Results of `broadcast_in_dim` that need not be made, as every use of them broadcasts.

    So a bias stays a bias, which TFLite fuses into the convolution before it.
    """
    found = {e.outvars[0]: e for e, _, build in steps if e.primitive is broadcast_in_dim_p and build is None}
    for v in outvars:
        if type(v) is not Literal:
            found.pop(v, None)
    for eqn, operands, build in steps:
        here = {v for v in operands if type(v) is not Literal and v in found}
        if not here:
            continue
        fine = build is None and eqn.primitive in _BROADCASTING
        if fine:
            shape = eqn.outvars[0].aval.shape
            fine = len({axis for v in operands for axis in _covers(v, found, shape)}) == len(shape)
        if not fine:
            for v in here:
                del found[v]
    return frozenset(found)


def plan(jaxpr: Jaxpr) -> list[Step]:
    """The operations of a program, in which no call is to be inlined (`bedrax.jax2tf.composites`)."""
    found = jaxpr.cache.get(plan)
    if found is not None:
        return found
    program = _Program(jaxpr)
    needed = {v for v in jaxpr.outvars if type(v) is not Literal}
    steps: list[Any] = []
    for eqn in reversed(jaxpr.eqns):
        if not eqn.effects and eqn.outvars and not any(v in needed for v in eqn.outvars):
            continue
        one = fused(eqn)
        if one is None:
            one = next(
                (f for match in _patterns.get(eqn.primitive, ()) if (f := match(program, eqn)) is not None), None
            )
        operands, build = (tuple(eqn.invars), None) if one is None else one
        needed.update(v for v in operands if type(v) is not Literal)
        steps.append((eqn, operands, build))
    steps.reverse()
    # An operand of a pattern is computed before the equations that the pattern replaces, so the order of equations is
    # valid.
    implicit = _implicit_broadcasts(steps, jaxpr.outvars)
    alive = {v for v in (*jaxpr.outvars, *jaxpr.invars) if type(v) is not Literal}
    out = []
    for eqn, operands, build in reversed(steps):
        last = tuple({v for v in (*operands, *eqn.outvars) if type(v) is not Literal and v not in alive})
        alive.update(last)
        out.append(Step(eqn, operands, build, bool(eqn.outvars) and eqn.outvars[0] in implicit, last))
    found = jaxpr.cache[plan] = out[::-1]
    return found
