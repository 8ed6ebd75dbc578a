"""TensorFlow for Fourier transforms: one operation for up to three axes, several for more."""

from __future__ import annotations

from bedrax.core import dims
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import transpose
from bedrax.lax.primitives.fft import FftType, fft_p
from bedrax.tf import tensorflow as tf
from bedrax.tf import types


def _transform(x, name: str, count: int, lengths=None):
    function = getattr(tf.signal, name + ("" if count == 1 else f"{count}d"))
    return function(x) if lengths is None else function(x, fft_length=lengths)


def _complex(x, axes, inverse: bool):
    """A complex transform over any axes, three at a time."""
    axes = list(axes)
    while axes:
        now, axes = axes[-3:], axes[:-3]
        rank = x.shape.rank
        order = [d for d in range(rank) if d not in now] + now
        back = [order.index(d) for d in range(rank)]
        x = transpose(_transform(transpose(x, order), "ifft" if inverse else "fft", len(now)), back)
    return x


@tf_rules.rule(fft_p)
def _fft(ctx, x, *, fft_type, fft_lengths):
    out = ctx.aval_out
    if any(dims.is_constant_dim(n) and n == 0 for n in (*out.shape, *ctx.avals_in[0].shape)):
        return tf.zeros(ctx.shape(out.shape), types.tf_dtype(out.dtype))
    k, rank = len(fft_lengths), x.shape.rank
    kind = FftType(fft_type)
    if not k:
        return x
    axes = range(rank - k, rank)
    if kind in (FftType.FFT, FftType.IFFT):
        return _complex(x, axes, kind == FftType.IFFT)
    if kind == FftType.RFFT:
        own = min(k, 3)
        y = _transform(x, "rfft", own, ctx.shape(fft_lengths[k - own :]))
        return _complex(y, axes[: k - own], False)
    y = _complex(x, axes[:-1], True)
    return _transform(y, "irfft", 1, ctx.shape(fft_lengths[-1:]))
