"""The same convolutional network in Flax NNX."""

from flax import nnx

from .model import Model


class CNN(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.conv1 = nnx.Conv(1, 32, (3, 3), use_bias=False, rngs=rngs)
        self.norm1 = nnx.BatchNorm(32, momentum=0.9, rngs=rngs)
        self.conv2 = nnx.Conv(32, 64, (3, 3), use_bias=False, rngs=rngs)
        self.norm2 = nnx.BatchNorm(64, momentum=0.9, rngs=rngs)
        self.dropout = nnx.Dropout(0.4)
        self.dense1 = nnx.Linear(2 * 2 * 64, 64, rngs=rngs)
        self.dense2 = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, x, key):
        infer = key is None
        for conv, norm in (self.conv1, self.norm1), (self.conv2, self.norm2):
            x = norm(conv(x), use_running_average=infer)
            x = nnx.max_pool(nnx.relu(x), (2, 2), strides=(2, 2))
        x = x.reshape((x.shape[0], -1))
        x = self.dropout(x, deterministic=infer, rngs=key)
        x = nnx.relu(self.dense1(x))
        return self.dense2(x)


# The structure without the arrays. `nnx.merge` needs it to build a model.
STRUCTURE = nnx.graphdef(nnx.eval_shape(lambda: CNN(nnx.Rngs(0))))


def init(key):
    _, params, stats = nnx.split(CNN(nnx.Rngs(key)), nnx.Param, nnx.BatchStat)
    return nnx.to_pure_dict(params), nnx.to_pure_dict(stats)


def apply(params, stats, images, key):
    cnn = nnx.merge(STRUCTURE, params, stats)
    logits = cnn(images, key)
    return logits, nnx.to_pure_dict(nnx.state(cnn, nnx.BatchStat))


MODEL = Model("nnx", init, apply)
