"""Operations and models whose compiled programs are compared. This module runs inside the compared environments.

`OPERATIONS[name]` is a function and the maker of its operands, `operands(n)`: the largest one has about n elements.
`MODELS[name]()` is `(function, operands)`: a scalar function of the variables and the inputs of a Flax model.
`operation` and `model` give what is compiled, forward and gradient.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

SIZES = {"small": 1 << 10, "medium": 1 << 14, "large": 1 << 18}


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape, np.float32)


def positive(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).uniform(0.1, 3.0, shape).astype(np.float32)


def below(limit, *shape):
    return np.random.default_rng([limit, *shape]).integers(0, limit, shape).astype(np.int32)


def side(n):
    return math.isqrt(n)


# ---- makers of operands ----

VECTOR = lambda n: (normal(n),)
TWO = lambda n: (normal(n), normal(n, seed=1))
TWO_POSITIVE = lambda n: (positive(n), positive(n, seed=1))
POSITIVE = lambda n: (positive(n),)
UNIT = lambda n: (np.tanh(normal(n)),)
MATRIX = lambda n: (normal(side(n), side(n)),)
MATRICES = lambda n: (normal(side(n), side(n)), normal(side(n), side(n), seed=1))
DIAGONAL = lambda n: (normal(side(n), side(n)) + 2 * math.sqrt(side(n)) * np.eye(side(n), dtype=np.float32),)
DEFINITE = lambda n: (lambda a: (a @ a.T / side(n) + np.eye(side(n), dtype=np.float32),))(normal(side(n), side(n)))
SYSTEM = lambda n: (*DIAGONAL(n), normal(side(n)))
ROWS = lambda n: (normal(n // 64, 64),)
INDEXED = lambda n: (normal(n), below(n, n // 4))
UPDATED = lambda n: (normal(n), normal(n // 4), below(n, n // 4))
SEGMENTS = lambda n: (normal(n), np.sort(below(n // 8, n)))
IMAGES = lambda n: (normal(1, side(n // 16), side(n // 16), 16),)
FILTERED = lambda n: (*IMAGES(n), normal(3, 3, 16, 16))
DEPTHWISE = lambda n: (*IMAGES(n), normal(3, 3, 1, 16))
HEADS = lambda n: tuple(normal(1, n // 64, 4, 16, seed=i) for i in range(3))


# ---- functions that need more than a line ----


def layer_norm(x):
    centered = x - x.mean(-1, keepdims=True)
    return centered * lax.rsqrt(jnp.square(centered).mean(-1, keepdims=True) + 1e-6)


def convolve(x, kernel, **options):
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)


def pool(x, initial, operation):
    return lax.reduce_window(x, initial, operation, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")


def recurrence(x, w):
    """A recurrent network over the rows of x."""

    def step(h, row):
        h = jnp.tanh(row + h @ w)
        return h, h

    return lax.scan(step, jnp.zeros_like(x[0]), x)[1]


def rows_of_64(n):
    return normal(n // 64, 64), normal(64, 64) / 8


def linear_recurrence(x):
    """h[i] = a[i] * h[i - 1] + b[i] for all i, in parallel."""
    pairs = jax.nn.sigmoid(x), x
    return lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), pairs)[1]


def newton(x):
    """Square roots by ten steps of a loop with a carry."""
    return lax.fori_loop(0, 10, lambda _, y: 0.5 * (y + x / y), x)


OPERATIONS = {
    # elementwise
    "tanh": (jnp.tanh, VECTOR),
    "gelu": (jax.nn.gelu, VECTOR),
    "softplus": (jax.nn.softplus, VECTOR),
    "x ** y": (jnp.power, TWO_POSITIVE),
    "logaddexp": (jnp.logaddexp, TWO),
    "arctan2": (jnp.arctan2, TWO),
    "remainder": (jnp.remainder, TWO_POSITIVE),
    "digamma": (jax.scipy.special.digamma, POSITIVE),
    "erfinv": (jax.scipy.special.erfinv, UNIT),
    # reductions
    "sum, axis 0": (lambda x: x.sum(0), MATRIX),
    "var": (lambda x: x.var(1), MATRIX),
    "max": (lambda x: x.max(1), MATRIX),
    "norm": (lambda x: jnp.linalg.norm(x, axis=1), MATRIX),
    "prod": (lambda x: x.prod(1), MATRIX),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, axis=1), MATRIX),
    "softmax": (jax.nn.softmax, ROWS),
    "log_softmax": (jax.nn.log_softmax, ROWS),
    "layer norm": (layer_norm, ROWS),
    # cumulative
    "cumsum": (jnp.cumsum, VECTOR),
    "cumprod": (lambda x: jnp.cumprod(x, axis=1), MATRIX),
    "cummax": (lambda x: lax.cummax(x, axis=1), MATRIX),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, axis=1), MATRIX),
    # sorting
    "sort": (jnp.sort, VECTOR),
    "top_k": (lambda x: lax.top_k(x, 8)[0], ROWS),
    "median": (lambda x: jnp.median(x, axis=1), MATRIX),
    "quantile": (lambda x: jnp.quantile(x, jnp.array([0.1, 0.9])), VECTOR),
    "searchsorted": (lambda x, y: jnp.searchsorted(jnp.sort(x), y), TWO),
    "unique": (lambda x: jnp.unique(x, size=64), lambda n: (below(64, n),)),
    "bincount": (lambda x: jnp.bincount(x, length=64), lambda n: (below(64, n),)),
    "histogram": (lambda x: jnp.histogram(x, bins=32)[0], VECTOR),
    # indexing and shapes
    "x[i]": (lambda x, i: x[i], INDEXED),
    "x.at[i].add(y)": (lambda x, y, i: x.at[i].add(y), UPDATED),
    "take_along_axis": (
        lambda x, i: jnp.take_along_axis(x, i, 1),
        lambda n: (normal(side(n), side(n)), below(side(n), side(n), side(n) // 4)),
    ),
    "segment_sum": (lambda x, s: jax.ops.segment_sum(x, s, s.size // 8), SEGMENTS),
    "segment_max": (lambda x, s: jax.ops.segment_max(x, s, s.size // 8), SEGMENTS),
    "pad, reflect": (lambda x: jnp.pad(x, 3, mode="reflect"), MATRIX),
    "interp": (lambda x, y: jnp.interp(x, jnp.linspace(-3, 3, 64), y[:64]), TWO),
    # products
    "x @ y": (jnp.matmul, MATRICES),
    "batched matmul": (jnp.matmul, lambda n: (normal(n // 256, 16, 16), normal(n // 256, 16, 16, seed=1))),
    "attention": (jax.nn.dot_product_attention, lambda n: HEADS(min(n, 1 << 16))),
    # convolutions and windows
    "conv": (convolve, FILTERED),
    "depthwise conv": (functools.partial(convolve, feature_group_count=16), DEPTHWISE),
    "convolve": (lambda x, y: jnp.convolve(x, y[:9], mode="same"), TWO),
    "max pool": (lambda x: pool(x, -jnp.inf, lax.max), IMAGES),
    "average pool": (lambda x: pool(x, 0.0, lax.add), IMAGES),
    "resize": (lambda x: jax.image.resize(x, (1, 2 * x.shape[1], 2 * x.shape[2], 16), "bilinear"), IMAGES),
    # linear algebra and Fourier transforms
    "cholesky": (jnp.linalg.cholesky, DEFINITE),
    "solve": (jnp.linalg.solve, SYSTEM),
    "inv": (jnp.linalg.inv, DIAGONAL),
    "qr": (lambda x: jnp.linalg.qr(x)[1], DIAGONAL),
    "eigh": (lambda x: jnp.linalg.eigh(x)[0], DEFINITE),
    "expm": (jax.scipy.linalg.expm, lambda n: (normal(side(n), side(n)) / side(n),)),
    "rfft": (lambda x: jnp.abs(jnp.fft.rfft(x)), VECTOR),
    # control flow
    "scan": (recurrence, rows_of_64),
    "associative_scan": (linear_recurrence, VECTOR),
    "fori_loop": (newton, POSITIVE),
    # random numbers
    "random.normal": (lambda x: jax.random.normal(jax.random.key(0), x.shape) * x, VECTOR),
    "random.permutation": (lambda x: jax.random.permutation(jax.random.key(0), x), VECTOR),
    "random.categorical": (lambda x: jax.random.categorical(jax.random.key(0), x), ROWS),
    "dropout": (lambda x: jnp.where(jax.random.bernoulli(jax.random.key(0), 0.9, x.shape), x / 0.9, 0.0), VECTOR),
}
WITHOUT_GRADIENT = {"searchsorted", "unique", "bincount", "histogram", "random.categorical"}


def gradient(function):
    """The cotangents of the operands of floating-point dtypes, as a function of that of the result and the operands."""

    def compute(cotangent, *operands):
        floats = [i for i, operand in enumerate(operands) if jnp.issubdtype(operand.dtype, jnp.floating)]

        def of_floats(*values):
            changed = dict(zip(floats, values, strict=True))
            return function(*(changed.get(i, operand) for i, operand in enumerate(operands)))

        return jax.vjp(of_floats, *(operands[i] for i in floats))[1](cotangent)

    return compute


KINDS = ("forward", "gradient")


def operation(name, size, kind):
    """Returns a maker of new function objects, and the operands on the device."""
    function, make = OPERATIONS[name]
    operands = jax.device_put(make(SIZES[size]))
    if kind == "forward":
        return lambda: lambda *operands: function(*operands), operands
    cotangent = normal(*jax.eval_shape(function, *operands).shape, seed=9)
    return lambda: gradient(function), (jax.device_put(cotangent), *operands)


# ---- models ----


def of_class(model, x):
    """The mean square of a model's result, as a function of its variables and its input."""
    variables = jax.jit(model.init)(jax.random.key(0), x)
    return lambda variables, x: jnp.square(model.apply(variables, x)).mean(), (variables, x)


def linen(compute):
    """A Flax Linen module from its method."""
    from flax import linen as nn

    return type("Model", (nn.Module,), {"__call__": nn.compact(compute)})()


def mlp():
    from flax import linen as nn

    def compute(self, x):
        for features in 256, 256, 64:
            x = nn.relu(nn.Dense(features)(x))
        return jax.nn.log_softmax(nn.Dense(10)(x))

    return of_class(linen(compute), normal(64, 196))


def recurrent():
    from flax import linen as nn

    return of_class(nn.RNN(nn.OptimizedLSTMCell(64)), normal(8, 32, 32))


def gated():
    from flax import linen as nn

    return of_class(nn.Bidirectional(nn.RNN(nn.GRUCell(32)), nn.RNN(nn.GRUCell(32))), normal(8, 32, 32))


def autoencoder():
    from flax import linen as nn

    def compute(self, x):
        for features in 16, 32:
            x = nn.gelu(nn.GroupNorm(8)(nn.Conv(features, (3, 3), strides=2)(x)))
        for features in 16, 1:
            x = nn.ConvTranspose(features, (3, 3), strides=(2, 2))(nn.silu(x))
        return x

    return of_class(linen(compute), normal(8, 28, 28, 1))


def mixer():
    from flax import linen as nn

    def compute(self, x):
        x = nn.Conv(64, (4, 4), strides=4)(x).reshape(x.shape[0], -1, 64)
        for _ in range(2):
            y = jnp.swapaxes(nn.LayerNorm()(x), 1, 2)
            x = x + jnp.swapaxes(nn.Dense(x.shape[1])(nn.gelu(nn.Dense(32)(y))), 1, 2)
            x = x + nn.Dense(64)(nn.gelu(nn.Dense(128)(nn.LayerNorm()(x))))
        return nn.Dense(10)(x.mean(1))

    return of_class(linen(compute), normal(8, 32, 32, 3))


def graph_network():
    """Two rounds of messages along the edges of a graph."""
    from flax import linen as nn

    senders, receivers = below(256, 1024), below(256, 1024)

    def compute(self, x):
        for _ in range(2):
            messages = nn.relu(nn.Dense(32)(jnp.concatenate([x[senders], x[receivers]], -1)))
            x = nn.LayerNorm()(nn.Dense(32)(x) + jax.ops.segment_sum(messages, receivers, 256))
        return nn.Dense(1)(x)

    return of_class(linen(compute), normal(256, 32))


def convolutional():
    from .programs import cnn_model

    return of_class(cnn_model(), normal(4, 32, 32, 3))


def transformer():
    from .programs import transformer_model

    return of_class(transformer_model(2, 64, 200), below(200, 4, 32))


MODELS = {
    "perceptron": mlp,
    "convolutional network": convolutional,
    "autoencoder": autoencoder,
    "LSTM": recurrent,
    "bidirectional GRU": gated,
    "transformer": transformer,
    "mixer": mixer,
    "graph network": graph_network,
}


def model(name, kind):
    """Returns a maker of new function objects, and the operands on the device."""
    function, operands = MODELS[name]()
    make = {"forward": lambda: lambda *operands: function(*operands), "gradient": lambda: jax.grad(function)}[kind]
    return make, jax.device_put(operands)
