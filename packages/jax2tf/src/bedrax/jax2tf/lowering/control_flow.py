"""TensorFlow for control flow: functional `while_loop` and `switch_case`."""

from __future__ import annotations

from bedrax.core import dims
from bedrax.jax2tf.carriers import cast, storage
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import as_list
from bedrax.lax.primitives.control_flow import cond_p, scan_p, while_p
from bedrax.lax.primitives.markers import index_of_platform
from bedrax.tf import tensorflow as tf
from bedrax.tf import types

# TensorFlow's loops and conditionals have no kernels for floats of 8 bits and integers of 4, so these cross the border of
# a branch or a step in another dtype.


def _stored(values):
    return [cast(x, storage(x.dtype)) if hasattr(x, "dtype") else x for x in values]  # a token has no dtype


def _restored(values, avals):
    pairs = zip(values, avals, strict=True)
    return [cast(x, types.tf_dtype(a.dtype)) if hasattr(x, "dtype") else x for x, a in pairs]


@tf_rules.rule(cond_p)
def _cond(ctx, index, *operands, branches, branches_platforms=None):
    if branches_platforms is not None:  # see `markers`
        return ctx.run(branches[index_of_platform("cpu", branches_platforms)], *operands)

    avals, operands = ctx.avals_in[1:], _stored(operands)

    def thunk(jaxpr):
        def branch():
            found = _stored(ctx.inner().run(jaxpr, *_restored(operands, avals)))
            return [tf.identity(x) for x in found] or [tf.constant(0)]  # a result is necessary

        return branch

    if not branches[0].outvars and not any(b.effects for b in branches):
        return []
    thunks = [thunk(b) for b in branches]
    found = tf.cond(tf.not_equal(index, 0), *thunks[::-1]) if len(thunks) == 2 else tf.switch_case(index, thunks)
    return _restored(as_list(found), ctx.avals_out) if branches[0].outvars else []


@tf_rules.rule(while_p)
def _while(ctx, *args, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    edge = cond_nconsts + body_nconsts
    args = _stored(args)
    cond_consts, body_consts, carry = args[:cond_nconsts], args[cond_nconsts:edge], args[edge:]

    def cond(*values):
        (pred,) = ctx.inner().run(cond_jaxpr, *_restored([*cond_consts, *values], cond_jaxpr.in_avals))
        return pred

    def body(*values):
        return _stored(ctx.inner().run(body_jaxpr, *_restored([*body_consts, *values], body_jaxpr.in_avals)))

    invariants = [tf.TensorShape(types.static_shape(a)) for a in body_jaxpr.out_avals]
    found = as_list(tf.while_loop(cond, body, carry, shape_invariants=invariants))
    return _restored(found, body_jaxpr.out_avals)


def _row(ctx, x, at):
    """One row of an operand, for a step. TFLite cannot gather unsigned words."""
    if x.dtype == tf.uint32 and not ctx.enable_xla:
        return tf.bitcast(tf.gather(tf.bitcast(x, tf.int32), at), tf.uint32)
    return tf.gather(x, at)


@tf_rules.rule(scan_p)
def _scan(ctx, *args, jaxpr, num_consts, num_carry, length, reverse, unroll):
    """A while loop over an index. The results of all steps are written to tensor lists."""
    edge = num_consts + num_carry
    args = _stored(args)
    consts, carry, xs = args[:num_consts], args[num_consts:edge], args[edge:]
    n = ctx.dim(length)
    y_avals = jaxpr.out_avals[num_carry:]
    arrays = [
        tf.TensorArray(
            storage(types.tf_dtype(a.dtype)), size=n, element_shape=types.static_shape(a), clear_after_read=False
        )
        for a in y_avals
    ]
    invariants = [tf.TensorShape(types.static_shape(a)) for a in jaxpr.in_avals[num_consts:edge]]

    def body(i, *state):
        values, written = state[:num_carry], state[num_carry:]
        at = n - 1 - i if reverse else i
        given = _restored([*consts, *values, *(_row(ctx, x, at) for x in xs)], jaxpr.in_avals)
        out = _stored(ctx.inner().run(jaxpr, *given))
        return (i + 1, *out[:num_carry], *(w.write(at, y) for w, y in zip(written, out[num_carry:], strict=True)))

    _, *state = tf.while_loop(
        lambda i, *_: i < n,
        body,
        (tf.constant(0), *carry, *arrays),
        shape_invariants=(tf.TensorShape([]), *invariants, *(tf.TensorShape(None) for _ in arrays)),
        maximum_iterations=n,
    )
    stacked = []
    for array, out in zip(state[num_carry:], ctx.avals_out[num_carry:], strict=True):
        if tf.executing_eagerly() or dims.is_constant_shape(out.shape):
            y = array.stack()
        else:  # also without rows
            row = ctx.shape(types.physical([out])[0].shape[1:])
            y = tf.raw_ops.TensorListStack(input_handle=array.flow, element_shape=row, element_dtype=array.dtype)
        y.set_shape(types.static_shape(out))  # `EnsureShape` is read wrongly by TF.js 4.22
        stacked.append(y)
    return _restored([*state[:num_carry], *stacked], ctx.avals_out)
