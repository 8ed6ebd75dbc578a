"""A small transformer language model in Flax. It can also be one part of itself, on one device.

With `axis` set, the module computes the part of one device of that mesh axis: a part of the heads and of the hidden
layer. It sums the contributions of the parts. Each parameter is a block of a parameter of the whole model. `SPLIT` lists
the split axes.
"""

import dataclasses

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax.sharding import PartitionSpec as P


@dataclasses.dataclass(frozen=True)
class Shape:
    vocabulary: int = 128
    width: int = 64
    heads: int = 8
    hidden: int = 256
    layers: int = 2
    length: int = 64


class Block(nn.Module):
    shape: Shape
    axis: str | None = None

    @nn.compact
    def __call__(self, x):
        s = self.shape
        parts = 1 if self.axis is None else jax.lax.axis_size(self.axis)
        total = (lambda y: y) if self.axis is None else (lambda y: jax.lax.psum(y, self.axis))
        heads, size = s.heads // parts, s.width // s.heads
        y = nn.LayerNorm(name="norm_attention")(x)
        q, k, v = (nn.DenseGeneral((heads, size), use_bias=False, name=n)(y) for n in ("query", "key", "value"))
        scores = jnp.einsum("...qhd,...khd->...hqk", q, k) / size**0.5
        scores = jnp.where(jnp.tril(jnp.ones((x.shape[-2],) * 2, bool)), scores, -1e9)
        y = jnp.einsum("...hqk,...khd->...qhd", nn.softmax(scores), v)
        x = x + total(nn.DenseGeneral(s.width, axis=(-2, -1), use_bias=False, name="out")(y))
        y = nn.LayerNorm(name="norm_mlp")(x)
        y = nn.gelu(nn.Dense(s.hidden // parts, use_bias=False, name="up")(y))
        return x + total(nn.Dense(s.width, use_bias=False, name="down")(y))


class LanguageModel(nn.Module):
    shape: Shape
    axis: str | None = None

    def setup(self):
        s = self.shape
        self.embed = nn.Embed(s.vocabulary, s.width)
        self.position = self.param("position", nn.initializers.normal(0.02), (s.length, s.width))
        self.block = [Block(s, self.axis) for _ in range(s.layers)]
        self.norm = nn.LayerNorm()
        self.logits = nn.Dense(s.vocabulary, use_bias=False)

    def start(self, tokens):
        """The input of the first block."""
        return self.embed(tokens) + self.position

    def end(self, x):
        """The logits of the next byte, from the result of the last block."""
        return self.logits(self.norm(x))

    def __call__(self, tokens):
        x = self.start(tokens)
        for block in self.block:
            x = block(x)
        return self.end(x)


def cross_entropy(logits, targets):
    """The mean over all bytes."""
    return -jnp.take_along_axis(nn.log_softmax(logits), targets[..., None], -1).mean()


def loss(model, params, tokens):
    """Mean cross entropy of the next byte."""
    return cross_entropy(model.apply({"params": params}, tokens[:, :-1]), tokens[:, 1:])


# The dimension of a parameter that the axis "model" splits, by the name of its layer.
SPLIT = {
    "query": P(None, "model"),
    "key": P(None, "model"),
    "value": P(None, "model"),
    "out": P("model"),
    "up": P(None, "model"),
    "down": P("model"),
}


def tensor_specs(params):
    """The partition specs of the parameters, for tensor parallelism."""
    return jax.tree_util.tree_map_with_path(
        lambda path, _: SPLIT.get(path[-2].key if len(path) > 1 else "", P()), params
    )


def sliced_specs(params, parts: int, axis: str = "data"):
    """Specs that cut each parameter along its first dimension that `parts` divides: every device keeps a part of
    each."""

    def spec(x):
        at = next((i for i, n in enumerate(x.shape) if n % parts == 0), None)
        return P() if at is None else P(*[None] * at, axis)

    return jax.tree.map(spec, params)
