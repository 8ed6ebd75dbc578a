"""Attention against a loop over heads in float64; products of scaled operands."""

import math
import re

import ml_dtypes
import numpy as np
import pytest

import bedrax.numpy as jnp
from bedrax import nn
from bedrax.autodiff import grad
from bedrax.core import make_jaxpr

rng = np.random.default_rng(1)
normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)
B, T, S, N, K, H = 2, 3, 5, 4, 2, 8
Q, KEY, V = normal(B, T, N, H), normal(B, S, K, H), normal(B, S, K, H)
BIAS, MASK = normal(1, N, T, S), rng.random((B, 1, T, S)) > 0.3
MASK[..., 0] = True


def reference(q, k, v, bias=0.0, seen=True, scale=None):
    bias, seen = np.broadcast_to(bias, (B, N, T, S)), np.broadcast_to(seen, (B, N, T, S))
    out, sums = np.zeros((B, T, N, H)), np.zeros((B, T, N))
    for b in range(B):
        for n in range(N):
            head = n // (N // K)
            scores = q[b, :, n].astype(np.float64) @ k[b, :, head].T * (scale or 1 / math.sqrt(H)) + bias[b, n]
            weights = np.where(seen[b, n], np.exp(scores), 0)
            sums[b, :, n] = np.log(weights.sum(1))
            out[b, :, n] = weights / weights.sum(1, keepdims=True) @ v[b, :, head]
    return out, sums


ROW, COLUMN = np.arange(T)[:, None], np.arange(S)[None]
CASES = {
    "plain": ({}, {}),
    "causal": ({"is_causal": True}, {"seen": ROW >= COLUMN}),
    "bias and scale": ({"bias": BIAS, "scale": 0.5}, {"bias": BIAS, "scale": 0.5}),
    "mask": ({"mask": MASK}, {"seen": MASK}),
    "window": ({"local_window_size": 1}, {"seen": abs(ROW - COLUMN) <= 1}),
    "uneven window": ({"local_window_size": (2, 0)}, {"seen": (COLUMN >= ROW - 2) & (COLUMN <= ROW)}),
    "lengths": ({"key_value_seq_lengths": np.array([4, 2])}, {"seen": COLUMN < np.array([4, 2])[:, None, None, None]}),
}


@pytest.mark.parametrize("case", CASES)
def test_attention(case):
    ours, theirs = CASES[case]
    out, sums = nn.dot_product_attention(Q, KEY, V, **ours, return_residual=True)
    expected = reference(Q, KEY, V, **theirs)
    np.testing.assert_allclose(out, expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sums, expected[1], rtol=1e-4, atol=1e-5)


def test_rows_beyond_the_queries_are_zero():
    out = np.asarray(nn.dot_product_attention(Q, KEY, V, query_seq_lengths=np.array([1, 3])))
    assert (out[0, 1:] == 0).all()
    expected = reference(Q, KEY, V)[0]
    np.testing.assert_allclose(out[0, :1], expected[0, :1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(out[1], expected[1], rtol=1e-4, atol=1e-5)


def test_unbatched_and_dtype():
    out = nn.dot_product_attention(Q[0], KEY[0], V[0])
    np.testing.assert_allclose(out, reference(Q, KEY, V)[0][0], rtol=1e-4, atol=1e-5)
    half = nn.dot_product_attention(*(x.astype(ml_dtypes.bfloat16) for x in (Q, KEY, V)))
    assert half.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(np.asarray(half, np.float32), reference(Q, KEY, V)[0], rtol=0.05, atol=0.05)


def test_derivative():
    w = normal(B, T, N, H)
    f = lambda q: jnp.sum(nn.dot_product_attention(q, KEY, V, is_causal=True) * w)
    t = normal(B, T, N, H)
    loss = lambda q: (reference(q, KEY, V, seen=ROW >= COLUMN)[0] * w).sum()
    change = (loss(Q + 1e-3 * t.astype(np.float64)) - loss(Q - 1e-3 * t.astype(np.float64))) / 2e-3
    np.testing.assert_allclose(np.sum(np.asarray(grad(f)(Q)) * t), change, rtol=1e-3)


@pytest.mark.parametrize(
    "change,error,text",
    [
        ({"implementation": "cudnn"}, NotImplementedError, "not supported"),
        ({"implementation": "foo"}, ValueError, "dot_product_attention"),
        ({"mask": np.ones((T, S), np.float32)}, ValueError, "mask holds bools, got float"),
        ({"key": KEY[:, :, :1]}, ValueError, "value: expected shape"),
        ({"key": KEY.astype(np.float16)}, ValueError, "key: expected dtype"),
        ({"query": Q[:, :, :3]}, ValueError, "the number of heads of query must be a multiple of that of key, got"),
        ({"bias": BIAS[..., :2]}, ValueError, "bias must broadcast"),
        ({"query_seq_lengths": np.ones(B)}, ValueError, "must be integers"),
    ],
)
def test_errors(change, error, text):
    with pytest.raises(error, match=text):
        nn.dot_product_attention(**{"query": Q, "key": KEY, "value": V, **change})


def test_scaled_matmul():
    lhs, rhs = (normal(2, 3, 64).astype(ml_dtypes.float8_e4m3fn), normal(2, 5, 64).astype(ml_dtypes.float8_e4m3fn))
    left = (2.0 ** rng.integers(-3, 3, (2, 3, 2))).astype(ml_dtypes.float8_e8m0fnu)
    right = (2.0 ** rng.integers(-3, 3, (2, 5, 2))).astype(ml_dtypes.float8_e8m0fnu)
    wide = lambda x, s: x.astype(np.float64) * np.repeat(s.astype(np.float64), 32, axis=2)
    expected = wide(lhs, left) @ wide(rhs, right).swapaxes(1, 2)
    out = nn.scaled_matmul(lhs, rhs, left, right)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    assert nn.scaled_matmul(lhs, rhs, left, right, jnp.bfloat16).dtype == jnp.bfloat16
    with pytest.raises(ValueError, match="rhs_scales must have the shape"):
        nn.scaled_matmul(lhs, rhs, left, left)


def test_scaled_formats():
    config = nn.get_scaled_dot_general_config("mxfp8")
    assert (config.block_size, config.data_type, config.global_scale) == (32, ml_dtypes.float8_e4m3fn, None)
    assert nn.get_scaled_dot_general_config("nvfp4").global_scale.tolist() == [1]
    with pytest.raises(ValueError, match="get_scaled_dot_general_config"):
        nn.get_scaled_dot_general_config("int4")
    with pytest.raises(NotImplementedError, match="cuDNN"):
        nn.scaled_dot_general(Q, KEY, (((3,), (3,)), ((), ())))


@pytest.mark.parametrize("heads, rank", [(2, 4), (4, 5)])
def test_only_groups_have_an_axis(heads, rank):
    q, k = np.zeros((1, 3, heads, 8), np.float32), np.zeros((1, 5, 2, 8), np.float32)
    program = str(make_jaxpr(nn.dot_product_attention)(q, k, k))
    assert max(shape.count(",") + 1 for shape in re.findall(r":f32\[([\d,]+)\]", program)) == rank
