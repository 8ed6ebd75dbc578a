"""LSTMs against a loop in NumPy, sequence by sequence."""

import numpy as np
import pytest

from bedrax import random
from bedrax.autodiff import vjp
from bedrax.core.jitting import jit
from bedrax.libraries import rnn

I, H, L, B, T = 2, 3, 2, 3, 4
LENGTHS = np.array([4, 2, 1])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_hand(x, h0, c0, parts, bidirectional):
    w_ih, w_hh, b_ih, b_hh = parts
    directions = 1 + bidirectional
    y, hn, cn = np.zeros((B, T, directions * H)), np.array(h0), np.array(c0)
    for b in range(B):
        seq = x[b, : LENGTHS[b]]
        for layer in range(L):
            outs = []
            for d in range(directions):
                n = layer * directions + d
                h, c, out = h0[n, b], c0[n, b], [None] * len(seq)
                for t in range(len(seq))[:: -1 if d else 1]:
                    gates = w_ih[n] @ seq[t] + b_ih[n] + w_hh[n] @ h + b_hh[n]
                    i, f, g, o = np.split(gates, 4)
                    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                    h = sigmoid(o) * np.tanh(c)
                    out[t] = h
                hn[n, b], cn[n, b] = h, c
                outs.append(np.array(out))
            seq = np.concatenate(outs, -1)
        y[b, : LENGTHS[b]] = seq
    return y, hn, cn


@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm(bidirectional):
    draw = np.random.RandomState(0)
    n = rnn.get_num_params_in_lstm(I, H, L, bidirectional)
    weights = (draw.randn(n) * 0.3).astype(np.float32)
    x = draw.randn(B, T, I).astype(np.float32)
    h0, c0 = draw.randn(2, L * (1 + bidirectional), B, H).astype(np.float32)
    sizes = (I, H, L, 0.0, bidirectional)
    parts = [{k: np.asarray(v) for k, v in p.items()} for p in rnn.unpack_lstm_weights(weights, I, H, L, bidirectional)]
    out = jit(lambda *args: rnn.lstm(*args, LENGTHS, *sizes))(x, h0, c0, weights)
    for got, expected in zip(out, by_hand(x, h0, c0, parts, bidirectional), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    outs, residuals = rnn.lstm_fwd(x, h0, c0, weights, LENGTHS, *sizes)
    cts = tuple(draw.randn(*o.shape).astype(np.float32) for o in outs)
    back = rnn.lstm_bwd(*sizes, None, residuals, cts)
    wanted = vjp(lambda *args: rnn.lstm(*args, LENGTHS, *sizes), x, h0, c0, weights)[1](cts)
    for got, expected in zip(back, wanted, strict=False):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert back[-1] is None
    moved = rnn.swap_lstm_gates(weights, I, H, L, bidirectional)
    i, f, g, o = np.split(parts[0][0], 4)
    again = rnn.unpack_lstm_weights(moved, I, H, L, bidirectional)[0][0]
    np.testing.assert_array_equal(again, np.concatenate([i, f, o, g]))


def test_weights():
    assert rnn.get_num_params_in_lstm(2, 3, 2, False) == 180 and rnn.get_num_params_in_lstm(2, 3, 2, True) == 432
    w = rnn.init_lstm_weight(random.key(0), I, H, L, True)
    assert w.shape == (432,) and 0.5 < np.abs(w).max() <= 1 / np.sqrt(3)
    with pytest.raises(ValueError, match="432 weights"):
        rnn.unpack_lstm_weights(w[1:], I, H, L, True)
    with pytest.raises(NotImplementedError, match="dropout"):
        rnn.lstm_ref(*[None] * 8, I, H, L, 0.5, True)
