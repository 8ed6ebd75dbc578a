"""Activation functions.

They are compositions with finite derivatives in all branches: a branch that is not selected is evaluated at a harmless
argument, because the derivative of a selection multiplies the other branch's derivative by zero.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

import bedrax.numpy as jnp
from bedrax import lax
from bedrax.core import dims, dtypes, tracing
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.one_program import one_program
from bedrax.core.typing import ArrayLike
from bedrax.lax.choices import one_of
from bedrax.nn import flags
from bedrax.numpy.arguments import array, axes_tuple, axis_index, counting, inexact, mask_of

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
]


def _number(value: float, like: Array) -> np.ndarray | float:
    """A number with the dtype and the weak type of `like`."""
    aval = aval_of(like)
    if not aval.weak_type:
        return np.asarray(value, aval.dtype)
    return float(value) if dtypes.is_inexact(aval.dtype) else int(value)


def _numeric(name: str, x: ArrayLike) -> Array:
    """The argument as an array of numbers: booleans are integers."""
    x = array(name, x)
    return x + 0 if x.dtype == np.bool_ else x


# Elementwise


def identity(x: ArrayLike) -> Array:
    """`x` as an array.

    Examples:

      >>> jax.nn.identity(jnp.array([1, 2]))
      Array([1, 2], dtype=int32)
    """
    return array("identity", x)


@one_program(composite="nn.relu")
def relu(x: ArrayLike) -> Array:
    """``max(x, 0)``; the derivative at 0 and at NaN is 0. Complex numbers are ordered by real, then by imaginary part.

    Examples:

      >>> jax.nn.relu(jnp.array([-1., 0., 2.]))
      Array([0., 0., 2.], dtype=float32)
      >>> jax.grad(lambda x: jax.nn.relu(x).sum())(jnp.array([-1., 0., 2.]))
      Array([0., 0., 1.], dtype=float32)
    """
    x = _numeric("relu", x)
    if dtypes.is_complex(x.dtype):
        re, im = lax.real(x), lax.imag(x)
        return jnp.where((re < 0) | (re == 0) & (im <= 0), 0, x)
    return _rectifier("relu", math.inf)(x)


@one_program(composite="nn.relu6")
def relu6(x: ArrayLike) -> Array:
    """``min(max(x, 0), 6)``; the derivative is 0 at 0, at 6, and at NaN.

    Examples:

      >>> jax.nn.relu6(jnp.array([-1., 4., 9.]))
      Array([0., 4., 6.], dtype=float32)
    """
    (x,) = inexact("relu6", x)
    return _rectifier("relu6", 6.0)(x)


@functools.cache
def _rectifier(name: str, high: float):
    """The function ``min(max(x, 0), high)`` of this name. Its derivative is 1 where 0 < x < high and 0 elsewhere; at a
    tie, those of `max` and `min` are 1/2."""
    from bedrax.autodiff import custom_jvp

    def value(x):
        x = lax.max(x, _number(0, x))
        return x if high == math.inf else lax.min(x, _number(high, x))

    value.__name__ = value.__qualname__ = name
    rule = custom_jvp(value)

    @rule.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        inside = lax.gt(x, _number(0, x))
        if high != math.inf:
            inside = lax.bitwise_and(inside, lax.lt(x, _number(high, x)))
        return rule(x), lax.select(inside, t, lax.full_like(t, 0))

    return rule


@one_program
def sigmoid(x: ArrayLike) -> Array:
    """``1 / (1 + exp(-x))``.

    Examples:

      >>> from jax.experimental import rnn

      >>> rnn.sigmoid(jnp.array([-jnp.inf, 0., jnp.inf]))  # how far a gate is open
      Array([0. , 0.5, 1. ], dtype=float32)

      >>> jax.nn.sigmoid(jnp.array([-1000., 0., 2.]))
      Array([0.      , 0.5     , 0.880797], dtype=float32)
    """
    return lax.logistic(array("sigmoid", x))


@one_program(composite="nn.softplus")
def softplus(x: ArrayLike) -> Array:
    """``log(1 + exp(x))``.

    Examples:

      >>> jax.nn.softplus(jnp.array([-1., 0., 100.]))
      Array([  0.3132617,   0.6931472, 100.       ], dtype=float32)
    """
    (x,) = inexact("softplus", x)
    return jnp.logaddexp(x, _number(0, x))


@one_program(composite="nn.sparse_plus")
def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, ``(x + 1)**2 / 4`` up to 1, then x: a softplus with bounded support (its derivative is
    `sparse_sigmoid`).

    Examples:

      >>> jax.nn.sparse_plus(jnp.array([-2., 0., 3.]))
      Array([0.  , 0.25, 3.  ], dtype=float32)
    """
    (x,) = inexact("sparse_plus", x)
    return jnp.where(x <= -1, _number(0, x), jnp.where(x >= 1, x, (x + 1) ** 2 / 4))


def sparse_sigmoid(x: ArrayLike) -> Array:
    """``(x + 1) / 2``, clipped to [0, 1].

    Examples:

      >>> jax.nn.sparse_sigmoid(jnp.array([-2., 0., 0.5, 3.]))
      Array([0.  , 0.5 , 0.75, 1.  ], dtype=float32)
    """
    (x,) = inexact("sparse_sigmoid", x)
    return _number(0.5, x) * jnp.clip(x + 1, 0, 2)


@one_program(composite="nn.soft_sign")
def soft_sign(x: ArrayLike) -> Array:
    """``x / (|x| + 1)``.

    Examples:

      >>> jax.nn.soft_sign(jnp.array([-1., 0., 3.]))
      Array([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    (x,) = inexact("soft_sign", x)
    return x / (abs(x) + 1)


@one_program(composite="nn.silu")
def silu(x: ArrayLike) -> Array:
    """``x * sigmoid(x)``, also known as swish.

    Examples:

      >>> jax.nn.silu(jnp.array([-1., 0., 1.]))
      Array([-0.26894143,  0.        ,  0.7310586 ], dtype=float32)
    """
    x = array("silu", x)
    return lax.mul(x, lax.logistic(x))


swish = silu


@one_program(composite="nn.log_sigmoid")
def log_sigmoid(x: ArrayLike) -> Array:
    """``log(sigmoid(x))``.

    Examples:

      >>> jax.nn.log_sigmoid(jnp.array([-100., 0.]))
      Array([-100.       ,   -0.6931472], dtype=float32)
    """
    (x,) = inexact("log_sigmoid", x)
    return -softplus(-x)


@one_program(composite="nn.elu")
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x if positive, else ``alpha * (exp(x) - 1)``.

    Args:
      x: array; integers become floats.
      alpha: the result tends to ``-alpha`` as `x` falls; scalar or array.

    Examples:

      >>> jax.nn.elu(jnp.array([-2., 0., 3.]))
      Array([-0.86466473,  0.        ,  3.        ], dtype=float32)
    """
    x, alpha = inexact("elu", x, alpha)
    safe = jnp.where(x > 0, 0.0, x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(safe))


@one_program(composite="nn.leaky_relu")
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """x if not negative, else ``negative_slope * x``.

    Args:
      x: array; integers become floats.
      negative_slope: the slope for negative `x`; scalar or array.

    Examples:

      >>> jax.nn.leaky_relu(jnp.array([-1., 2.]), negative_slope=0.1)
      Array([-0.1,  2. ], dtype=float32)
    """
    x, slope = inexact("leaky_relu", x, negative_slope)
    return jnp.where(x >= 0, x, slope * x)


@one_program(composite="nn.hard_tanh")
def hard_tanh(x: ArrayLike) -> Array:
    """x, clipped to [-1, 1]; the derivative is 1 at both ends.

    Examples:

      >>> jax.nn.hard_tanh(jnp.array([-4., 0.5, 4.]))
      Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    x = _numeric("hard_tanh", x)
    one = _number(1, x)
    return jnp.where(x > one, one, jnp.where(x < -one, -one, x))


@one_program(composite="nn.hard_sigmoid")
def hard_sigmoid(x: ArrayLike) -> Array:
    """``relu6(x + 3) / 6``.

    Examples:

      >>> jax.nn.hard_sigmoid(jnp.array([-4., 0., 1.5]))
      Array([0.  , 0.5 , 0.75], dtype=float32)
    """
    (x,) = inexact("hard_sigmoid", x)
    return relu6(x + 3) / 6


@one_program(composite="nn.hard_silu")
def hard_silu(x: ArrayLike) -> Array:
    """``x * hard_sigmoid(x)``, also known as hard swish.

    Examples:

      >>> jax.nn.hard_silu(jnp.array([-4., 0., 1.5]))
      Array([-0.   ,  0.   ,  1.125], dtype=float32)
    """
    (x,) = inexact("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@one_program(composite="nn.celu")
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x if positive, else ``alpha * (exp(x / alpha) - 1)``.

    Args:
      x: array; integers become floats.
      alpha: the result tends to ``-alpha`` as `x` falls; scalar or array.

    Examples:

      >>> jax.nn.celu(jnp.array([-2., 0., 3.]), alpha=0.5)
      Array([-0.4908422,  0.       ,  3.       ], dtype=float32)
    """
    x, alpha = inexact("celu", x, alpha)
    safe = jnp.where(x > 0, _number(0, x), x)
    return jnp.where(x > 0, x, alpha * jnp.expm1(safe / alpha))


# The fixed point of mean 0 and variance 1 (Klambauer et al. 2017, "Self-normalizing neural networks", eq. 14).
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@one_program(composite="nn.selu")
def selu(x: ArrayLike) -> Array:
    """``1.0507... * elu(x, 1.6733...)``, the self-normalizing activation.

    Examples:

      >>> jax.nn.selu(jnp.array([-1., 0., 1.]))
      Array([-1.1113307,  0.       ,  1.050701 ], dtype=float32)
    """
    (x,) = inexact("selu", x)
    return _number(_SELU_SCALE, x) * elu(x, _number(_SELU_ALPHA, x))


@one_program(composite="nn.gelu", static=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """``x * P(X <= x)`` for a standard normal X.

    Args:
      x: array.
      approximate: use ``0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x**3)))`` (Hendrycks & Gimpel 2016) instead of
        the error function.

    Examples:

      >>> jax.nn.gelu(jnp.array([-1., 0., 1.]))
      Array([-0.15880796,  0.        ,  0.841192  ], dtype=float32)
      >>> jax.nn.gelu(jnp.array([-1., 0., 1.]), approximate=False)
      Array([-0.15865527,  0.        ,  0.8413447 ], dtype=float32)
    """
    (x,) = inexact("gelu", x)
    if approximate:
        inner = np.asarray(math.sqrt(2 / math.pi), x.dtype) * (x + _number(0.044715, x) * x**3)
        return x * (_number(0.5, x) * (1 + lax.tanh(inner)))
    # erfc keeps its relative accuracy for very negative x
    return _number(0.5, x) * x * lax.erfc(-x * np.asarray(math.sqrt(0.5), x.dtype))


@one_program(composite="nn.glu", static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Gated linear unit: the first half along an axis times the sigmoid of the second half.

    Args:
      x: array; integers become floats.
      axis: the axis, of even length.

    Returns:
      An array with half the length of the axis.

    Raises:
      ValueError: the length of the axis is odd.

    Examples:

      >>> jax.nn.glu(jnp.array([1., 2., 0., 0.]))
      Array([0.5, 1. ], dtype=float32)
    """
    (x,) = inexact("glu", x)
    axis = axis_index(axis, x.ndim)
    if x.shape[axis] % 2:
        raise ValueError(f"glu halves an axis of even size, got {x.shape[axis]} for axis {axis}")
    half = x.shape[axis] // 2
    value, gate = lax.split(x, (half, half), axis)
    return value * sigmoid(gate)


@one_program(composite="nn.squareplus", arrays=("b",))
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """``(x + sqrt(x**2 + b)) / 2``.

    Args:
      x: array; integers become floats.
      b: how round the corner at 0 is, not negative; 0 gives `relu`.

    Examples:

      >>> jax.nn.squareplus(jnp.array([-1., 0., 1.]))
      Array([0.618034, 1.      , 1.618034], dtype=float32)
    """
    x, b = inexact("squareplus", x, b)
    return (x + jnp.sqrt(x * x + b)) / 2


@one_program(composite="nn.mish")
def mish(x: ArrayLike) -> Array:
    """``x * tanh(softplus(x))``.

    Examples:

      >>> jax.nn.mish(jnp.array([-1., 0., 1.]))
      Array([-0.30340144,  0.        ,  0.8650985 ], dtype=float32)
    """
    (x,) = inexact("mish", x)
    return x * lax.tanh(softplus(x))


@one_program(composite="nn.log1mexp")
def log1mexp(x: ArrayLike) -> Array:
    """``log(1 - exp(-x))`` for positive x, accurate at both ends (Maechler 2012); -inf at 0, NaN below.

    Examples:

      >>> jax.nn.log1mexp(jnp.array([1e-6, 1.]))
      Array([-13.815511  ,  -0.45867515], dtype=float32)
    """
    (x,) = inexact("log1mexp", x)
    small = x < _number(math.log(2), x)
    near = jnp.log(-jnp.expm1(-jnp.where(small, x, 1)))
    far = jnp.log1p(-jnp.exp(-jnp.where(small, 1, x)))
    return jnp.where(small, near, far)


# Along axes


def _shifted(x: Array, axes, where):
    """x minus its maximum, which is treated as a constant: the results do not depend on it."""
    top = jnp.max(x, axis=axes, keepdims=True, initial=-np.inf, where=where)
    return x - lax.stop_gradient(top)


@one_program(composite="nn.log_softmax", static=("axis",), arrays=("where",))
def log_softmax(x: ArrayLike, axis: int | tuple[int, ...] | None = -1, where: ArrayLike | None = None) -> Array:
    """``x - log(sum(exp(x)))`` along axes.

    Args:
      x: array.
      axis: the axis or axes to normalize over; None is all.
      where: a boolean array: the elements that are included; the result of others is -inf.

    Examples:

      >>> jax.nn.log_softmax(jnp.array([0., 0.]))
      Array([-0.6931472, -0.6931472], dtype=float32)

      >>> from jax.example_libraries import stax

      >>> x = stax.logsoftmax(jnp.array([[1., 1.], [0., jnp.log(3.)]]))
      >>> jnp.exp(x).round(3)
      Array([[0.5       , 0.5       ],
             [0.25      , 0.75000006]], dtype=float32)
    """
    (x,) = inexact("log_softmax", x)
    axes = axes_tuple(axis, x.ndim)
    if where is not None:
        # Excluded elements must not make derivatives NaN.
        x = jnp.where(mask_of("log_softmax", where), x, _number(0, x))
    shifted = _shifted(x, axes, where)
    total = jnp.sum(jnp.exp(shifted), axis=axes, keepdims=True, where=where)
    out = shifted - jnp.log(total)
    return out if where is None else jnp.where(where, out, _number(-np.inf, x))


@one_program(composite="nn.softmax", static=("axis",), arrays=("where",))
def softmax(x: ArrayLike, axis: int | tuple[int, ...] | None = -1, where: ArrayLike | None = None) -> Array:
    """``exp(x) / sum(exp(x))`` along axes.

    With the option ``jax_softmax_custom_jvp``, the derivative ``y * (t - sum(y * t))`` is computed from the
    result y, so reverse mode keeps no other value.

    Args:
      x: array.
      axis: the axis or axes to normalize over; None is all.
      where: a boolean array: the elements that are included; the result of others is 0.

    Examples:

      >>> jax.nn.softmax(jnp.array([[0., 0.], [1000., 0.]]))
      Array([[0.5, 0.5],
             [1. , 0. ]], dtype=float32)
      >>> jax.nn.softmax(jnp.array([1., 1., 5.]), where=jnp.array([True, True, False]))
      Array([0.5, 0.5, 0. ], dtype=float32)
    """
    (x,) = inexact("softmax", x)
    axes = axes_tuple(axis, x.ndim)
    if not x.size:
        return x
    if flags.softmax_custom_jvp.value:
        return _softmax_with_rule()(x, where, axes)
    return _softmax(x, where, axes)


def _softmax(x, where, axes):
    if where is not None:
        x = jnp.where(mask_of("softmax", where), x, _number(-np.inf, x))
    weights = jnp.exp(_shifted(x, axes, None))
    return weights / jnp.sum(weights, axis=axes, keepdims=True)


@functools.cache
def _softmax_with_rule():
    from bedrax.autodiff import custom_jvp

    rule = custom_jvp(_softmax, nondiff_argnums=(2,))

    @rule.defjvp
    def _(axes, primals, tangents):
        x, where = primals
        y = rule(x, where, axes)
        weighted = y * tangents[0]
        return y, weighted - y * jnp.sum(weighted, axis=axes, keepdims=True)

    return rule


@one_program(composite="nn.standardize", static=("axis", "algorithm"), arrays=("mean", "variance", "where"))
def standardize(
    x: ArrayLike,
    axis: int | tuple[int, ...] | None = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """``(x - mean) / sqrt(variance + epsilon)`` along axes.

    Args:
      x: array.
      axis: the axis or axes; None is all.
      mean, variance: default: those of `x` along the axes.
      epsilon: guards against a variance of 0.
      where: the elements that determine mean and variance.
      algorithm: for the variance: ``"fast"``, the mean of squares minus the square of the mean, or ``"stable"``,
        the mean of squared deviations.

    Raises:
      ValueError: another algorithm.

    Examples:

      >>> jax.nn.standardize(jnp.array([1., 2., 3.])).round(3)
      Array([-1.225,  0.   ,  1.225], dtype=float32)
    """
    one_of("standardize", "algorithm", algorithm, ("fast", "stable"))
    (x,) = inexact("standardize", x)
    axes = axes_tuple(axis, x.ndim)
    average = lambda v: jnp.mean(v, axis=axes, keepdims=True, where=where)
    if mean is None:
        mean = average(x)
    if variance is None:
        square = lambda v: jnp.real(v * jnp.conj(v)) if dtypes.is_complex(v.dtype) else v * v
        mean = jnp.asarray(mean)
        if algorithm == "fast":  # by rounding, the difference may be negative
            variance = jnp.maximum(average(square(x)) - square(mean), 0)
        else:
            variance = average(square(x - mean))
    return (x - mean) * lax.rsqrt(jnp.asarray(variance + epsilon, x.dtype))


@one_program(composite="nn.one_hot", static=("num_classes", "dtype", "axis", "out_sharding"))
def one_hot(
    x: ArrayLike, num_classes: int, *, dtype: type | None = None, axis: int | str = -1, out_sharding: Any = None
) -> Array:
    """1 at the position given by each element of `x`, 0 elsewhere; all 0 for positions out of range.

    Args:
      x: array of positions.
      num_classes: the length of the new axis.
      dtype: the dtype of the result. Default: the default float dtype.
      axis: the position of the new axis; or the name of a mapped axis of this size, along which the results are
        distributed.
      out_sharding: optional placement of the result.

    Raises:
      ValueError: the named axis has another size.

    Examples:

      >>> jax.nn.one_hot(jnp.array([0, 2, 7]), 3)
      Array([[1., 0., 0.],
             [0., 0., 1.],
             [0., 0., 0.]], dtype=float32)
    """
    num_classes = dims.canonical_dim(num_classes, "It is needed in jax.nn.one_hot.")
    x = array("one_hot", x)
    dtype = dtypes.default_float_dtype() if dtype is None else dtypes.explicit_dtype(dtype, "one_hot")
    return lax.placed_result(out_sharding, _one_hot, x, num_classes=num_classes, dtype=dtype, axis=axis)


def _one_hot(x, num_classes, dtype, axis):
    try:
        place = operator.index(axis)
    except TypeError:
        if tracing.axis_size(axis) != num_classes:
            raise ValueError(
                f"one_hot: num_classes={num_classes} is not the size of the named axis {axis!r}, {tracing.axis_size(axis)}"
            ) from None
        return jnp.equal(x, lax.axis_index(axis)).astype(dtype)
    place = axis_index(place, x.ndim + 1)
    shape = (*x.shape[:place], num_classes, *x.shape[place:])
    others = [d for d in range(len(shape)) if d != place]
    if dtypes.is_integer(x.dtype):
        x = counting(x, num_classes)
    classes = lax.broadcasted_iota(x.dtype if dtypes.is_integer(x.dtype) else np.int32, shape, place)
    return lax.convert_to(jnp.equal(lax.broadcast_in_dim(x, shape, others), classes), dtype)
