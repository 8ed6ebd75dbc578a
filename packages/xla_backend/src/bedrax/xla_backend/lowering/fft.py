"""StableHLO of Fourier transforms, which has them in one to three dimensions."""

from __future__ import annotations

from bedrax import lax
from bedrax.core.avals import aval_of
from bedrax.lax.primitives.fft import FftType, fft_p
from bedrax.xla_backend.tables import lowering_rules


@lowering_rules.rule(fft_p)
def _fft(ctx, x, *, fft_type, fft_lengths):
    out = ctx.avals_out[0]
    if not ctx.is_static(fft_lengths):
        raise NotImplementedError(f"fft: StableHLO has no transforms of symbolic length, got fft_lengths={fft_lengths}")
    if len(fft_lengths) > 3:
        return ctx.lower_fun(_in_parts, x, fft_type=fft_type, fft_lengths=fft_lengths)
    if 0 in fft_lengths or 0 in out.shape:
        return ctx.full(out.shape, 0, out.dtype)
    kind = ctx.parse(f"#stablehlo<fft_type {FftType(fft_type).name}>")
    return ctx.emit("stablehlo.fft", [x], fft_type=kind, fft_length=tuple(fft_lengths))


def _in_parts(x, *, fft_type, fft_lengths):
    """The last three dimensions, and the ones before them; real transforms have their real side at the last."""
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
