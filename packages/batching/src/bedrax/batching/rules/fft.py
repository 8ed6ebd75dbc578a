"""Batching of Fourier transforms, which act on the last dimensions only."""

from bedrax.batching.tables import batch_rules
from bedrax.lax.axes import move_axis, rank_of
from bedrax.lax.primitives.fft import fft_p


@batch_rules.rule(fft_p)
def _fft(axis, args, dims, *, fft_type, fft_lengths):
    (x,), (d,) = args, dims
    if d >= rank_of(x) - len(fft_lengths):
        x, d = move_axis(x, d, 0), 0
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=fft_lengths), d
