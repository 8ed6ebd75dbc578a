"""Neural networks as pairs of functions (`jax.example_libraries.stax`).

A layer is ``(init, apply)``: ``init(key, input_shape) -> (output_shape, params)`` and
``apply(params, inputs, **kwargs) -> outputs``. Shapes include the batch axis, which may be -1.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import bedrax.numpy as jnp
from bedrax import lax, nn, random
from bedrax.core import ShapeDtypeStruct, eval_shape
from bedrax.nn import initializers

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "glorot",
    "logsoftmax",
    "parallel",
    "randn",
    "serial",
    "shape_dependent",
]

Layer: TypeAlias = tuple[Callable[..., Any], Callable[..., Any]]

glorot: Final = initializers.glorot_normal
randn: Final = initializers.normal
logsoftmax: Final = nn.log_softmax


def _eval_shape(fun: Callable, *shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape of the result of ``fun`` for float arrays; a batch axis of -1 stays -1."""
    open_batch = shapes[0][0] == -1
    known = [tuple(1 if n == -1 else n for n in s) for s in shapes]
    out = eval_shape(fun, *(ShapeDtypeStruct(s, jnp.float32) for s in known)).shape
    return (-1, *out[1:]) if open_batch else tuple(out)


def Dense(out_dim: int, W_init: Callable[..., Any] = glorot(), b_init: Callable[..., Any] = randn()) -> Layer:  # noqa: B008
    """``x @ W + b``.

    Args:
      out_dim: the length of the last axis of the outputs.
      W_init, b_init: initializers of W and of b.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.Dense(2)
      >>> shape, (W, b) = init(jax.random.key(0), (-1, 3))
      >>> shape, W.shape, b.shape
      ((-1, 2), (3, 2), (2,))
      >>> x = jnp.ones((4, 3))
      >>> bool(jnp.allclose(apply((W, b), x), x @ W + b))
      True
    """

    def init(rng, input_shape):
        key_w, key_b = random.split(rng)
        return (*input_shape[:-1], out_dim), (W_init(key_w, (input_shape[-1], out_dim)), b_init(key_b, (out_dim,)))

    def apply(params, inputs, **kwargs):
        w, b = params
        return jnp.dot(inputs, w) + b

    return init, apply


def _general(convolve, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init) -> Layer:
    lhs, rhs, out = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or initializers.glorot_normal(rhs.index("I"), rhs.index("O"))

    def run(inputs, w):
        return convolve(inputs, w, strides, padding, dimension_numbers=dimension_numbers)

    def init(rng, input_shape):
        sizes = iter(filter_shape)
        kernel = tuple({"O": out_chan, "I": input_shape[lhs.index("C")]}.get(c) or next(sizes) for c in rhs)
        key_w, key_b = random.split(rng)
        bias = tuple(out_chan if c == "C" else 1 for c in out)
        return _eval_shape(run, input_shape, kernel), (W_init(key_w, kernel), b_init(key_b, bias))

    def apply(params, inputs, **kwargs):
        w, b = params
        return run(inputs, w) + b

    return init, apply


def GeneralConv(
    dimension_numbers: tuple[str, ...],
    out_chan: int,
    filter_shape: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    padding: str = "VALID",
    W_init: Any = None,
    b_init: Callable[..., Any] = randn(1e-6),  # noqa: B008
) -> Layer:
    """A convolution with the layouts ``(inputs, kernel, outputs)``, such as ``("NHWC", "HWIO", "NHWC")``.

    Args:
      dimension_numbers: the layouts.
      out_chan: the number of channels of the outputs.
      filter_shape: the size of the kernel in each spatial dimension.
      strides: steps between windows. Default: 1.
      padding: as in `lax.conv_general_dilated`.
      W_init, b_init: initializers of the kernel and of the bias.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.GeneralConv(("NHWC", "HWIO", "NHWC"), out_chan=5, filter_shape=(3, 3), padding="SAME")
      >>> shape, params = init(jax.random.key(0), (-1, 8, 8, 2))
      >>> shape, apply(params, jnp.ones((2, 8, 8, 2))).shape
      ((-1, 8, 8, 5), (2, 8, 8, 5))
    """
    return _general(
        lax.conv_general_dilated, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


def GeneralConvTranspose(
    dimension_numbers: tuple[str, ...],
    out_chan: int,
    filter_shape: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    padding: str = "VALID",
    W_init: Any = None,
    b_init: Callable[..., Any] = randn(1e-6),  # noqa: B008
) -> Layer:
    """A transposed convolution; arguments as for `GeneralConv`.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), 5, (2, 2), strides=(2, 2))
      >>> shape, params = init(jax.random.key(0), (1, 4, 4, 3))
      >>> shape, apply(params, jnp.ones((1, 4, 4, 3))).shape
      ((1, 8, 8, 5), (1, 8, 8, 5))
    """
    return _general(lax.conv_transpose, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)


Conv: Final = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose: Final = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose: Final = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: tuple[int, ...] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Callable[..., Any] = initializers.zeros,
    gamma_init: Callable[..., Any] = initializers.ones,
) -> Layer:
    """Inputs less their mean over `axis`, over their standard deviation; times gamma, plus beta.

    Args:
      axis: the axes of the mean.
      epsilon: is added to the variance, so that the root is not 0.
      center, scale: whether there are beta and gamma.
      beta_init, gamma_init: their initializers.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.BatchNorm(axis=0)
      >>> _, params = init(jax.random.key(0), (4, 1))
      >>> y = apply(params, jnp.array([[1.], [2.], [3.], [4.]]))
      >>> y.mean().round(3), y.std().round(2)
      (Array(0., dtype=float32), Array(1., dtype=float32))
    """
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    places = lambda rank: tuple(a + rank if a < 0 else a for a in given)

    def init(rng, input_shape):
        axes = places(len(input_shape))
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        key_beta, key_gamma = random.split(rng)
        beta = beta_init(key_beta, shape) if center else ()
        gamma = gamma_init(key_gamma, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply(params, x, **kwargs):
        beta, gamma = params
        axes = places(jnp.ndim(x))
        broadcast = tuple(None if i in axes else slice(None) for i in range(jnp.ndim(x)))
        out = nn.standardize(x, axis=axes, epsilon=epsilon)
        if scale:
            out = gamma[broadcast] * out
        return out + beta[broadcast] if center else out

    return init, apply


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer without parameters that applies `fun`.

    Args:
      fun: a function of an array.
      **fun_kwargs: its other arguments.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.elementwise(jnp.clip, min=0., max=1.)
      >>> apply((), jnp.array([-1., 0.5, 7.]))
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    return lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Tanh: Final = elementwise(jnp.tanh)
Relu: Final = elementwise(nn.relu)
Exp: Final = elementwise(jnp.exp)
LogSoftmax: Final = elementwise(nn.log_softmax, axis=-1)
Softmax: Final = elementwise(nn.softmax, axis=-1)
Softplus: Final = elementwise(nn.softplus)
Sigmoid: Final = elementwise(nn.sigmoid)
Elu: Final = elementwise(nn.elu)
Gelu: Final = elementwise(nn.gelu)
LeakyRelu: Final = elementwise(nn.leaky_relu)
Selu: Final = elementwise(nn.selu)


def _pool(initial, combine, finish, window_shape, strides, padding, spec) -> Layer:
    spec = spec or f"N{'HW' if len(window_shape) == 2 else ''.join(map(str, range(len(window_shape))))}C"
    sizes, steps = iter(window_shape), iter(strides or (1,) * len(window_shape))
    window = tuple(1 if c in "NC" else next(sizes) for c in spec)
    strides = tuple(1 if c in "NC" else next(steps) for c in spec)

    def run(x):
        return finish(lax.reduce_window(x, initial, combine, window, strides, padding), x, window, strides, padding)

    return (lambda rng, input_shape: (_eval_shape(run, input_shape), ()), lambda params, inputs, **kwargs: run(inputs))


def _unchanged(out, *_):
    return out


def _mean(out, x, window, strides, padding):
    """Sums over the windows, divided by the number of elements of the input in each window."""
    return out / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, window, strides, padding)


def MaxPool(
    window_shape: tuple[int, ...], strides: tuple[int, ...] | None = None, padding: str = "VALID", spec: Any = None
) -> Layer:
    """Maxima of windows.

    Args:
      window_shape: the size of the window in each spatial dimension.
      strides: steps between windows. Default: 1.
      padding: as in `lax.reduce_window`.
      spec: the layout of the inputs. Default: ``NHWC`` for two spatial dimensions.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.MaxPool((1, 2), strides=(1, 2))
      >>> apply((), jnp.array([1., 5., 3., 4.]).reshape(1, 1, 4, 1)).ravel()
      Array([5., 4.], dtype=float32)
    """
    return _pool(-math.inf, lax.max, _unchanged, window_shape, strides, padding, spec)


def SumPool(window_shape: Any, strides: Any = None, padding: Any = "VALID", spec: Any = None) -> Layer:
    """Sums of windows; arguments as in `MaxPool`.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.SumPool((1, 2), strides=(1, 2))
      >>> apply((), jnp.array([1., 5., 3., 4.]).reshape(1, 1, 4, 1)).ravel()
      Array([6., 7.], dtype=float32)
    """
    return _pool(0.0, lax.add, _unchanged, window_shape, strides, padding, spec)


def AvgPool(window_shape: tuple[int, ...], strides: Any = None, padding: str = "VALID", spec: Any = None) -> Layer:
    """Means of windows, over the elements within the input; arguments as in `MaxPool`.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.AvgPool((1, 2), strides=(1, 2))
      >>> apply((), jnp.array([1., 5., 3., 4.]).reshape(1, 1, 4, 1)).ravel()
      Array([3. , 3.5], dtype=float32)
    """
    return _pool(0.0, lax.add, _mean, window_shape, strides, padding, spec)


Flatten: Final = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)),
)
Identity: Final = (lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: inputs)


def FanOut(num: int) -> Layer:
    """The input, `num` times.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.FanOut(2)
      >>> apply((), jnp.array(3.))
      [Array(3., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True)]
    """
    return lambda rng, input_shape: ([input_shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


FanInSum: Final = (
    lambda rng, input_shapes: (input_shapes[0], ()),
    lambda params, inputs, **kwargs: functools.reduce(operator.add, inputs),
)


def FanInConcat(axis: int = -1) -> Layer:
    """Inputs, concatenated.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.FanInConcat(axis=0)
      >>> init(jax.random.key(0), [(2, 3), (4, 3)])[0]
      (6, 3)
      >>> apply((), [jnp.array([1., 2.]), jnp.array([3.])])
      Array([1., 2., 3.], dtype=float32)
    """

    def init(rng, input_shapes):
        shape = list(input_shapes[0])
        shape[axis] = sum(s[axis] for s in input_shapes)
        return tuple(shape), ()

    return init, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Inputs, each kept with probability `rate` and divided by it; in another mode, unchanged.

    `apply` needs the keyword ``rng``, a key.

    Args:
      rate: the probability of keeping an element.
      mode: ``"train"``, or another string, with which inputs are returned unchanged.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.Dropout(0.8)  # the share that is kept
      >>> y = apply((), jnp.ones(10000), rng=jax.random.key(0))
      >>> print(np.unique(y), round(float((y > 0).mean()), 1))
      [0.   1.25] 0.8
      >>> _, unchanged = stax.Dropout(0.8, mode="test")
      >>> unchanged((), jnp.array([1., 2.]), rng=jax.random.key(0))
      Array([1., 2.], dtype=float32)
    """

    def apply(params, inputs, rng=None, **kwargs):
        if rng is None:
            raise ValueError("Dropout draws: give its apply_fun a key, apply_fun(params, inputs, rng=key)")
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply


def _keys(rng, count: int) -> list:
    return [None] * count if rng is None else list(random.split(rng, count)) if count else []


def serial(*layers: Layer) -> Layer:
    """Layers, one after the other; the parameters are a list.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(1))
      >>> shape, params = init(jax.random.key(0), (-1, 3))
      >>> shape, len(params), apply(params, jnp.ones((5, 3))).shape
      ((-1, 1), 3, (5, 1))
    """
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init(rng, input_shape):
        params = []
        for one in inits:
            rng, key = random.split(rng)
            input_shape, param = one(key, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params, inputs, **kwargs):
        for one, param, rng in zip(applies, params, _keys(kwargs.pop("rng", None), len(applies)), strict=True):
            inputs = one(param, inputs, rng=rng, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Parallel layers, on a sequence of inputs.

    Examples:

      >>> from jax.example_libraries import stax

      >>> init, apply = stax.parallel(stax.Identity, stax.elementwise(jnp.negative))
      >>> _, params = init(jax.random.key(0), [(-1, 2), (-1, 2)])
      >>> apply(params, [jnp.array([1., 2.]), jnp.array([3., 4.])])
      [Array([1., 2.], dtype=float32), Array([-3., -4.], dtype=float32)]
    """
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init(rng, input_shape):
        made = [one(key, s) for one, key, s in zip(inits, _keys(rng, len(inits)), input_shape, strict=True)]
        return [shape for shape, _ in made], [params for _, params in made]

    def apply(params, inputs, **kwargs):
        rngs = _keys(kwargs.pop("rng", None), len(applies))
        return [f(p, x, rng=r, **kwargs) for f, p, x, r in zip(applies, params, inputs, rngs, strict=True)]

    return init, apply


def shape_dependent(make_layer: Callable[[tuple[Any, ...]], Layer]) -> Layer:
    """The layer from `make_layer`, which is called with the shape of the input.

    Examples:

      >>> from jax.example_libraries import stax

      >>> layer = stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))
      >>> init, apply = layer
      >>> init(jax.random.key(0), (-1, 3))[0]
      (-1, 6)
    """
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )
