"""The convolutional network in Flax Linen."""

import jax.numpy as jnp
from flax import linen as nn

from .model import Model


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        for features in 32, 64:
            x = nn.Conv(features, (3, 3), use_bias=False)(x)
            x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
            x = nn.max_pool(nn.relu(x), (2, 2), strides=(2, 2))
        x = x.reshape((x.shape[0], -1))
        self.sow("intermediates", "features", x)  # for `web/export.py`
        x = nn.Dropout(0.4, deterministic=not train)(x)
        x = nn.relu(nn.Dense(64)(x))
        return nn.Dense(10)(x)


def init(key):
    variables = CNN().init(key, jnp.zeros((1, 8, 8, 1)), train=False)
    return variables["params"], variables["batch_stats"]


def apply(params, stats, images, key):
    variables = {"params": params, "batch_stats": stats}
    if key is None:
        return CNN().apply(variables, images, train=False), stats
    logits, updated = CNN().apply(variables, images, train=True, rngs={"dropout": key}, mutable=["batch_stats"])
    return logits, updated["batch_stats"]


MODEL = Model("linen", init, apply)
