"""The models: ordinary small Flax modules, each with arguments and a specification of their shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random


class Record(NamedTuple):
    """A model: a function with its parameters inside, arguments, and a specification of shapes per argument.

    Attributes:
      mobile: whether TFLite's own operations can express it; "known sizes" if only with known sizes.
    """

    name: str
    make: Callable[[], tuple[Callable, tuple]]
    shapes: tuple
    mobile: bool | str = True


def _numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _applied(module: nn.Module, *args, **options):
    variables = module.init(random.key(0), *args, **options)
    return functools.partial(module.apply, variables, **options), args


# ---- networks ----------------------------------------------------------------------------------------------------


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (32, 32):
            x = nn.relu(nn.Dense(width)(x))
        return nn.softmax(nn.Dense(10)(x))


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (8, 16):
            x = nn.Conv(width, (3, 3))(x)
            x = nn.relu(nn.BatchNorm(use_running_average=True)(x))
            x = nn.max_pool(x, (2, 2), (2, 2))
        return nn.Dense(10)(x.reshape(x.shape[0], -1))


class Block(nn.Module):
    width: int
    stride: int = 1

    @nn.compact
    def __call__(self, x):
        norm = functools.partial(nn.BatchNorm, use_running_average=True)
        conv = functools.partial(nn.Conv, use_bias=False)
        y = nn.relu(norm()(conv(self.width, (3, 3), (self.stride, self.stride))(x)))
        y = norm()(conv(self.width, (3, 3))(y))
        if x.shape != y.shape:
            x = norm()(conv(self.width, (1, 1), (self.stride, self.stride))(x))
        return nn.relu(x + y)


class ResNet18(nn.Module):
    width: int = 8

    @nn.compact
    def __call__(self, x):
        x = nn.Conv(self.width, (7, 7), (2, 2), use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=True)(x))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for i in range(4):
            for j in range(2):
                x = Block(self.width * 2**i, 2 if i and not j else 1)(x)
        return nn.Dense(10)(x.mean((1, 2)))


class EncoderLayer(nn.Module):
    @nn.compact
    def __call__(self, x, mask=None):
        x = x + nn.SelfAttention(2)(nn.LayerNorm()(x), mask=mask)
        y = nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x)))
        return x + nn.Dense(x.shape[-1])(y)


class ViT(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(16, (4, 4), (4, 4), "VALID")(x)
        x = x.reshape(x.shape[0], -1, x.shape[-1])
        x = x + self.param("positions", nn.initializers.normal(0.02), (1, *x.shape[1:]))
        for _ in range(2):
            x = EncoderLayer()(x)
        return nn.Dense(10)(nn.LayerNorm()(x).mean(1))


class Decoder(nn.Module):
    """One step of a decoder with a cache of keys and values."""

    @nn.compact
    def __call__(self, token, memory):
        x = nn.Embed(12, 16)(token)
        x = x + nn.SelfAttention(2, decode=True)(nn.LayerNorm()(x))
        x = x + nn.MultiHeadDotProductAttention(2)(nn.LayerNorm()(x), memory)
        return nn.Dense(12)(nn.LayerNorm()(x))


def _translator():
    encoder, decoder, steps = EncoderLayer(), Decoder(), 5
    source = _numbers(2, 6, 16)
    known = encoder.init(random.key(0), source)
    start = decoder.init(random.key(1), np.zeros((2, steps), np.int32), source)

    def translate(source):
        memory = encoder.apply(known, source)
        batch = source.shape[0]
        empty = lambda c: c if c.ndim == 0 else jnp.zeros((batch, *c.shape[1:]), c.dtype)
        cache = jax.tree.map(empty, start["cache"])

        def step(state, _):
            cache, token = state
            logits, new = decoder.apply({"params": start["params"], "cache": cache}, token, memory, mutable=["cache"])
            token = jnp.argmax(logits, -1).astype(np.int32)
            return (new["cache"], token), (token[:, 0], logits[:, 0])

        _, (tokens, logits) = lax.scan(step, (cache, jnp.zeros((batch, 1), np.int32)), None, length=steps)
        return tokens.T, logits

    return translate, (source,)


class Seq2Seq(nn.Module):
    @nn.compact
    def __call__(self, source, target):
        carry, _ = nn.RNN(nn.OptimizedLSTMCell(16), return_carry=True)(source)
        return nn.Dense(8)(nn.RNN(nn.OptimizedLSTMCell(16))(target, initial_carry=carry))


class VAE(nn.Module):
    @nn.compact
    def __call__(self, x, words):
        h = nn.relu(nn.Dense(16)(x))
        mean, log_scale = nn.Dense(4)(h), nn.Dense(4)(h)
        z = mean + jnp.exp(log_scale) * random.normal(random.wrap_key_data(words), mean.shape)
        return nn.sigmoid(nn.Dense(x.shape[-1])(nn.relu(nn.Dense(16)(z)))), mean


class GraphNet(nn.Module):
    @nn.compact
    def __call__(self, nodes, senders, receivers):
        for _ in range(2):
            sent = nn.relu(nn.Dense(16)(jnp.concatenate([nodes[senders], nodes[receivers]], -1)))
            received = jax.ops.segment_sum(sent, receivers, nodes.shape[0])
            nodes = nn.relu(nn.Dense(16)(jnp.concatenate([nodes, received], -1)))
        return nn.Dense(3)(nodes)


def _graph():
    rng = np.random.default_rng(1)
    edges = [rng.integers(0, 6, 11).astype(np.int32) for _ in range(2)]
    return _applied(GraphNet(), _numbers(6, 5), *edges)


class UNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        a = nn.relu(nn.Conv(8, (3, 3))(x))
        b = nn.relu(nn.Conv(16, (3, 3), (2, 2))(a))
        up = nn.ConvTranspose(8, (2, 2), (2, 2))(b)
        y = nn.relu(nn.Conv(8, (3, 3))(jnp.concatenate([a, up], -1)))
        half = jax.image.resize(b, (b.shape[0], *a.shape[1:3], b.shape[-1]), "bilinear")
        return nn.Conv(1, (1, 1))(jnp.concatenate([y, half], -1))


class Experts(nn.Module):
    @nn.compact
    def __call__(self, x):
        weights, chosen = lax.top_k(nn.softmax(nn.Dense(4)(x)), 2)
        first = self.param("first", nn.initializers.lecun_normal(), (4, x.shape[-1], 16))
        second = self.param("second", nn.initializers.lecun_normal(), (4, 16, x.shape[-1]))
        gates = jnp.sum(jax.nn.one_hot(chosen, 4) * weights[..., None], -2)
        hidden = nn.relu(jnp.einsum("bd,edh->beh", x, first))
        return jnp.einsum("beh,ehd,be->bd", hidden, second, gates)


class Flow(nn.Module):
    """A density: affine layers with triangular matrices, which are inverted by solving."""

    @nn.compact
    def __call__(self, x):
        total = 0.0
        for i in range(2):
            lower = jnp.tril(self.param(f"lower{i}", nn.initializers.normal(0.3), (4, 4)), -1) + 2 * jnp.eye(4)
            x = jax.scipy.linalg.solve_triangular(lower, x.T, lower=True).T
            total = total - jnp.sum(jnp.log(jnp.diag(lower)))
            x, slope = jnp.where(x > 0, x, 0.5 * x), jnp.where(x > 0, 1.0, 0.5)
            total = total + jnp.sum(jnp.log(slope), -1)
        return total - jnp.sum(x * x, -1) / 2


def _diffusion():
    net = MLP()
    known = net.init(random.key(0), _numbers(2, 11))

    def sample(start, words):
        def step(x, given):
            key, noise = given
            x = x + 0.1 * net.apply(known, jnp.concatenate([x, jnp.full((x.shape[0], 1), noise)], -1))
            return x + 0.1 * noise * random.normal(key, x.shape), None

        keys = random.split(random.wrap_key_data(words), 4)
        return lax.scan(step, start, (keys, jnp.linspace(1.0, 0.0, 4)))[0]

    return sample, (_numbers(2, 10), np.array([3, 4], np.uint32))


def _beam_search():
    table = _numbers(9, 9)
    width, steps = 3, 4

    def search(start):
        logits = jax.nn.log_softmax(jnp.asarray(table))
        batch = start.shape[0]
        scores = jnp.where(jnp.arange(width) == 0, 0.0, -1e9) + jnp.zeros((batch, width))
        tokens = jnp.zeros((batch, width, steps + 1), np.int32).at[:, :, 0].set(start[:, None])

        def step(i, state):
            scores, tokens = state
            last = lax.dynamic_index_in_dim(tokens, i, 2, keepdims=False)
            every = (scores[..., None] + logits[last]).reshape(batch, width * 9)
            scores, best = lax.top_k(every, width)
            tokens = jnp.take_along_axis(tokens, (best // 9)[..., None], 1)
            return scores, lax.dynamic_update_index_in_dim(tokens, best % 9, i + 1, 2)

        return lax.fori_loop(0, steps, step, (scores, tokens))

    return search, (np.array([1, 5], np.int32),)


class Spectral(nn.Module):
    @nn.compact
    def __call__(self, x):
        weights = self.param("weights", nn.initializers.normal(0.5), (2, 9, 1))
        spectrum = jnp.fft.rfft(nn.Dense(8)(x), axis=1) * lax.complex(weights[0], weights[1])
        return nn.Dense(1)(nn.gelu(jnp.fft.irfft(spectrum, axis=1)))


ZOO = (
    Record("MLP", lambda: _applied(MLP(), _numbers(2, 20)), ("(b, _)",)),
    Record("CNN with batch norm", lambda: _applied(CNN(), _numbers(2, 16, 16, 3)), ("(b, ...)",)),
    Record("ResNet-18", lambda: _applied(ResNet18(), _numbers(2, 32, 32, 3)), ("(b, ...)",)),
    Record("ViT", lambda: _applied(ViT(), _numbers(2, 16, 16, 3)), ("(b, ...)",)),
    Record("encoder-decoder, cached", _translator, ("(b, _, _)",), "known sizes"),
    Record("LSTM seq2seq", lambda: _applied(Seq2Seq(), _numbers(2, 6, 4), _numbers(2, 5, 4)), ("(b, _, _)",) * 2,
           "known sizes"),
    Record("VAE, keys inside", lambda: _applied(VAE(), _numbers(2, 12), np.array([1, 2], np.uint32)), ("(b, _)", None),
           "known sizes"),
    Record("graph net", _graph, ("(n, _)", "(e,)", "(e,)")),
    Record("UNet", lambda: _applied(UNet(), _numbers(2, 8, 8, 3)), ("(b, ...)",)),
    Record("mixture of experts", lambda: _applied(Experts(), _numbers(3, 8)), ("(b, _)",)),
    Record("flow, triangular", lambda: _applied(Flow(), _numbers(3, 4)), ("(b, _)",)),
    Record("diffusion sampler", _diffusion, ("(b, _)", None), "known sizes"),
    Record("beam search", _beam_search, ("(b,)",)),
    Record("FFT model", lambda: _applied(Spectral(), _numbers(2, 16, 3)), ("(b, _, _)",), False),
)  # fmt: skip
