"""TensorFlow for windows: combined slices, axis by axis if that is equivalent.

Pooling of images is TensorFlow's own pooling, which mobile runtimes have in hardware; its maximum ignores nan.
"""

from __future__ import annotations

from bedrax.core import dims
from bedrax.jax2tf.carriers import accumulator, carrier, cast, in_carrier
from bedrax.jax2tf.lowering.elementwise import extreme
from bedrax.jax2tf.lowering.reductions import combine_arrays, reduce_extreme
from bedrax.jax2tf.lowering.shaping import pad, reshape
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import highest, lowest, np_dtype, scalar
from bedrax.lax.primitives import elementwise
from bedrax.lax.primitives import windows as p
from bedrax.lax.primitives.windows import Windows, padtype_to_pads
from bedrax.tf import tensorflow as tf

_ONE_BY_ONE = 6  # windows up to this size are combined element by element, wider ones by doubling


def _check_static(windows: Windows) -> None:
    if not all(map(dims.is_constant_shape, (windows.window_dimensions, windows.window_strides))):
        raise NotImplementedError(
            f"windows of symbolic size {windows.window_dimensions}: TensorFlow needs the size during the"
            " conversion; a window over a whole axis is a reduction"
        )


def _along_axis(x, axis, size, stride, dilation, count, combine, fold):
    """Reduce windows along one axis of a padded operand."""
    if size == 1 and stride == 1:
        return x
    at = lambda y, start, stop, step: y[(slice(None),) * axis + (slice(start, stop, step),)]
    if isinstance(count, int) and count == 1:
        return fold(at(x, 0, (size - 1) * dilation + 1, dilation), axis)
    reach = (count - 1) * stride + 1
    if not isinstance(count, int):
        reach = tf.maximum(reach, 0)
    if size <= _ONE_BY_ONE:
        out = at(x, 0, reach, stride)
        for i in range(1, size):
            out = combine(out, at(x, i * dilation, i * dilation + reach, stride))
        return out
    # The windows of 1, 2, 4... elements from every position. Those of `size` elements are combined from some of them.
    done, out, part, width = 0, None, x, 1
    while True:
        if size & width:
            start = done * dilation
            piece = at(part, start, start + reach, 1)
            out = piece if out is None else combine(out, piece)
            done += width
        if done == size:
            return at(out, 0, None, stride)
        shift = width * dilation
        part = combine(at(part, 0, -shift, 1), at(part, shift, None, 1))
        width *= 2


def _pooling(ctx, x, windows: Windows, largest: bool | None):
    """The reduction as TensorFlow's pooling of images, or None if it is not a pooling."""
    sizes, strides, padding = windows.window_dimensions, windows.window_strides, windows.padding
    if x.shape.rank != 4 or x.dtype not in (tf.float32, tf.float16, tf.bfloat16, tf.float64):
        return None
    plain = {*windows.base_dilation, *windows.window_dilation} == {1}
    if not plain or sizes[0] != 1 or sizes[3] != 1 or strides[0] != 1 or strides[3] != 1 or largest is False:
        return None
    if padding[0] != (0, 0) or padding[3] != (0, 0):
        return None
    shape = ctx.avals_in[0].shape
    name = "VALID"
    if any(not dims.is_constant_dim(n) or n for pair in padding for n in pair):
        name = None
        if largest:
            try:
                pads = padtype_to_pads(shape, sizes, strides, "SAME")
                if all(dims.definitely_equal_shape(a, b) for a, b in zip(pads, padding, strict=True)):
                    name = "SAME"
            except dims.InconclusiveDimensionOperation:
                pass
        if name is None:
            fill = lowest(np_dtype(x)) if largest else 0
            x, name = pad(ctx, x, scalar(fill, x), windows.pad_config()), "VALID"
    if largest:
        return tf.nn.max_pool2d(x, sizes[1:3], strides[1:3], name)
    return tf.nn.avg_pool2d(x, sizes[1:3], strides[1:3], name) * scalar(sizes[1] * sizes[2], x)


def _reduction(prim, largest: bool | None) -> None:
    def rule(ctx, x, **params):
        windows = Windows(**params)
        _check_static(windows)
        if any(dims.is_constant_dim(d) and d == 0 for d in ctx.aval_out.shape):
            return tf.zeros(ctx.shape(ctx.aval_out.shape), x.dtype)
        pooled = _pooling(ctx, x, windows, largest)
        if pooled is not None:
            return pooled
        if largest is None:
            fill = 0
        elif x.dtype.is_complex:
            fill = -complex("inf+infj") if largest else complex("inf+infj")
        else:
            fill = (lowest if largest else highest)(np_dtype(x))
        x = pad(ctx, x, scalar(fill, x), windows.pad_config())
        counts = [ctx.dim(d) for d in ctx.aval_out.shape]

        def combine(x, y):
            return x + y if largest is None else extreme(x, y, largest)

        def fold(x, axis):
            if largest is None:
                return tf.reduce_sum(x, axis, keepdims=True)
            return tf.expand_dims(reduce_extreme(x, [axis], largest), axis)

        for axis, (size, stride, _, _, dilation) in enumerate(zip(*windows, strict=True)):
            x = _along_axis(x, axis, size, stride, dilation, counts[axis], combine, fold)
        return x

    tf_rules.add(prim, in_carrier(rule, accumulator if largest is None else carrier))


_reduction(p.reduce_window_sum_p, None)
_reduction(p.reduce_window_max_p, True)
_reduction(p.reduce_window_min_p, False)


# ---- position by position ------------------------------------------------------------------------


def _slices(ctx, x, fill, windows: Windows, out_shape):
    """For each position inside a window, the elements of all windows there."""
    padded = pad(ctx, x, fill, windows.pad_config())
    counts = [ctx.dim(d) for d in out_shape]
    for offset in windows.offsets():
        starts = [o * d for o, d in zip(offset, windows.window_dilation, strict=True)]
        yield padded[
            tuple(
                slice(a, a + (n - 1) * s + 1 if not isinstance(n, int) or n else a, s)
                for a, n, s in zip(starts, counts, windows.window_strides, strict=True)
            )
        ]


@tf_rules.rule(p.reduce_window_p)
def _reduce_window(ctx, *args, jaxpr, **params):
    half = len(args) // 2
    windows = Windows(**params)
    _check_static(windows)
    out_shape = ctx.avals_out[0].shape
    combine = combine_arrays(ctx, jaxpr)
    out = [tf.broadcast_to(init, ctx.shape(out_shape)) for init in args[half:]]
    columns = [_slices(ctx, x, init, windows, out_shape) for x, init in zip(args[:half], args[half:], strict=True)]
    for parts in zip(*columns, strict=True):
        out = combine(*out, *parts)
    return out


def _selected(ctx, operand, shape, keep, windows: Windows, out_shape):
    """For each window, the flat index of the selected element of the operand; -1 if there is none."""
    _check_static(windows)
    where = reshape(ctx, tf.range(ctx.dim(dims.size(shape))), shape)
    best, index = None, None
    values = _slices(ctx, operand, tf.zeros([], operand.dtype), windows, out_shape)
    places = _slices(ctx, where, tf.constant(-1), windows, out_shape)
    for value, place in zip(values, places, strict=True):
        if best is None:
            best, index = value, place
            continue
        kept = tf.logical_and(index >= 0, keep(best, value))
        take = tf.logical_and(place >= 0, tf.logical_not(kept))
        best, index = tf.where(take, value, best), tf.where(take, place, index)
    return index


def _keep(select_prim):
    return lambda x, y: x >= y if select_prim is elementwise.ge_p else x <= y


@tf_rules.rule(p.select_and_scatter_add_p)
def _select_and_scatter_add(ctx, source, operand, *, select_prim, **params):
    windows = Windows.of(**params)
    aval, out_aval = ctx.avals_in[1], ctx.aval_out
    dtype, wide = source.dtype, accumulator(source.dtype)
    operand = cast(operand, carrier(operand.dtype))
    index = _selected(ctx, operand, aval.shape, _keep(select_prim), windows, ctx.avals_in[0].shape)
    # Negative indices are ignored.
    flat = tf.math.unsorted_segment_sum(
        tf.reshape(cast(source, wide), [-1]), tf.reshape(index, [-1]), ctx.dim(dims.size(aval.shape))
    )
    return cast(reshape(ctx, flat, out_aval.shape), dtype)


@tf_rules.rule(p.select_and_gather_add_p)
def _select_and_gather_add(ctx, tangents, operand, *, select_prim, **params):
    windows, aval = Windows(**params), ctx.avals_in[1]
    operand = cast(operand, carrier(operand.dtype))
    index = _selected(ctx, operand, aval.shape, _keep(select_prim), windows, ctx.aval_out.shape)
    dtype = tangents.dtype
    tangents = cast(tangents, carrier(dtype))
    flat = tf.concat([tf.zeros([1], tangents.dtype), tf.reshape(tangents, [-1])], 0)
    return cast(tf.gather(flat, index + 1), dtype)


@tf_rules.rule(p.select_and_scatter_p)
def _select_and_scatter(ctx, operand, source, init_value, *, select_jaxpr, scatter_jaxpr, **params):
    """Select and scatter position by position: at each, no element of the operand belongs to two windows."""
    windows = Windows.of(**params)
    aval, source_aval = ctx.avals_in[:2]
    select, scatter = combine_arrays(ctx, select_jaxpr), combine_arrays(ctx, scatter_jaxpr)
    index = _selected(ctx, operand, aval.shape, lambda x, y: select(x, y)[0], windows, source_aval.shape)
    size = ctx.dim(dims.size(aval.shape))
    where = reshape(ctx, tf.range(size), aval.shape)
    out = tf.broadcast_to(init_value, tf.stack([size]))
    values = tf.reshape(source, [-1])
    for place in _slices(ctx, where, tf.constant(-1), windows, source_aval.shape):
        chosen = tf.reshape(tf.where(tf.equal(place, index), place, -1), [-1])
        at = tf.where(chosen >= 0)
        target = tf.gather_nd(chosen, at)[:, None]
        (new,) = scatter(tf.gather_nd(out, target), tf.gather_nd(values, at))
        out = tf.tensor_scatter_nd_update(out, target, new)
    return reshape(ctx, out, aval.shape)
