"""StableHLO of Fourier transforms. StableHLO has them in one to three dimensions, of static lengths."""

import numpy as np

from bedrax import lax
from bedrax.core import dims
from bedrax.core.avals import aval_of
from bedrax.lax.primitives.fft import FftType, fft_p
from bedrax.xla_backend.tables import lowering_rules


@lowering_rules.rule(fft_p)
def _fft(ctx, x, *, fft_type, fft_lengths):
    out = ctx.avals_out[0]
    if not ctx.is_static(fft_lengths):
        return ctx.lower_fun(_by_matrices, x, fft_type=fft_type, fft_lengths=fft_lengths)
    if len(fft_lengths) > 3:
        return ctx.lower_fun(_in_parts, x, fft_type=fft_type, fft_lengths=fft_lengths)
    if 0 in fft_lengths or 0 in out.shape:
        return ctx.full(out.shape, 0, out.dtype)
    kind = ctx.parse(f"#stablehlo<fft_type {FftType(fft_type).name}>")
    return ctx.emit("stablehlo.fft", [x], fft_type=kind, fft_length=tuple(fft_lengths))


def _by_matrices(x, *, fft_type, fft_lengths):
    """Products with the matrices of the transform, axis by axis. StableHLO's operation needs static lengths."""
    rank, kind = len(aval_of(x).shape), FftType(fft_type)
    axes = list(range(rank - len(fft_lengths), rank))
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    real = aval_of(x).dtype if kind == FftType.RFFT else np.dtype(f"f{aval_of(x).dtype.itemsize // 2}")
    if kind == FftType.RFFT:
        x = lax.complex(x, lax.full_like(x, 0))
        axes.reverse()
    for axis in axes:
        n, given = fft_lengths[axis - rank], aval_of(x).shape[axis]
        side = axis == rank - 1
        count = n // 2 + 1 if kind == FftType.RFFT and side else n
        size = lax.convert_element_type(dims.dim_as_value(n), np.int32)
        j, k = (lax.broadcasted_iota(np.int32, (given, count), d) for d in (0, 1))
        turn = lax.div(
            lax.convert_element_type(lax.rem(lax.mul(j, k), size), real), lax.convert_element_type(size, real)
        )
        angle = lax.mul(turn, real.type(2 * np.pi if inverse else -2 * np.pi))
        matrix = lax.complex(lax.cos(angle), lax.sin(angle))
        if (
            kind == FftType.IRFFT and side
        ):  # the absent elements are conjugates: all but the first and the middle count twice
            twice = lax.bitwise_and(lax.gt(j, np.int32(0)), lax.ne(lax.mul(j, np.int32(2)), size))
            weight = lax.add(lax.convert_element_type(twice, real), real.type(1))
            matrix = lax.mul(matrix, lax.complex(weight, lax.full_like(weight, 0)))
        x = lax.dot_general(x, matrix, (((axis,), (0,)), ((), ())), precision=lax.Precision.HIGHEST)
        x = lax.transpose(x, (*range(axis), rank - 1, *range(axis, rank - 1)))
        if inverse:
            whole = lax.convert_element_type(size, real)
            x = lax.div(x, lax.complex(whole, lax.full_like(whole, 0)))
    return lax.real(x) if kind == FftType.IRFFT else x


def _in_parts(x, *, fft_type, fft_lengths):
    """The last three dimensions, and then the ones before them. Real transforms have their real side last."""
    full = FftType.IFFT if fft_type in (FftType.IFFT, FftType.IRFFT) else FftType.FFT
    n, k = len(aval_of(x).shape), len(fft_lengths)

    def before(x):
        order = (*range(n - k), *range(n - 3, n), *range(n - k, n - 3))
        back = tuple(sorted(range(n), key=order.__getitem__))
        x = fft_p.bind(lax.transpose(x, order), fft_type=full, fft_lengths=fft_lengths[:-3])
        return lax.transpose(x, back)

    if fft_type == FftType.IRFFT:
        x = before(x)
    x = fft_p.bind(x, fft_type=fft_type, fft_lengths=fft_lengths[-3:])
    return x if fft_type == FftType.IRFFT else before(x)
