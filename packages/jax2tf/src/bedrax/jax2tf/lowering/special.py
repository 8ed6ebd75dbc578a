"""TensorFlow for special functions: its own if they are accurate (the rest is composed)."""

from __future__ import annotations

import numpy as np

from bedrax.jax2tf.carriers import accumulator, in_carrier
from bedrax.jax2tf.tables import tf_rules
from bedrax.jax2tf.tensors import scalar
from bedrax.lax.primitives import special as p
from bedrax.tf import tensorflow as tf


def _own(prim, name: str) -> None:
    def rule(ctx, *xs, **_):
        shape = next((x for x in xs if x.shape.rank), None)
        if len(xs) > 1 and shape is not None:
            xs = [x if x.shape.rank else tf.broadcast_to(x, tf.shape(shape)) for x in xs]
        return getattr(tf.math, name)(*xs)

    tf_rules.add(prim, in_carrier(rule, accumulator), f"tf.math.{name}")


for _prim, _name in (
    (p.erfc_p, "erfc"),
    (p.lgamma_p, "lgamma"),
    (p.digamma_p, "digamma"),
    (p.bessel_i0e_p, "bessel_i0e"),
    (p.bessel_i1e_p, "bessel_i1e"),
    (p.polygamma_p, "polygamma"),
    (p.zeta_p, "zeta"),
):
    _own(_prim, _name)


def _erf(ctx, x, **_):
    if x.dtype == tf.float64:
        # The kernel for float64 gives NaN for infinities. From 6 on, the value is 1.
        x = tf.clip_by_value(x, scalar(-6, x), scalar(6, x))
    return tf.math.erf(x)


tf_rules.add(p.erf_p, in_carrier(_erf, accumulator), "tf.math.erf")

# Giles 2012, "Approximating the erfinv function", the version for single precision: polynomials in w - 2.5 for w < 5,
# and in sqrt(w) - 3 beyond, where w = -log(1 - x^2); highest powers first.
_NEAR = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_FAR = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


def _erf_inv(ctx, x):
    if x.dtype == tf.float64:
        return _erf_inv_64(x)
    # TensorFlow's own loses digits near 1; there 1 - x is exact, and 1 - x^2 is not.
    w = -tf.math.log((1 - x) * (1 + x))
    near, far = w < 5, tf.sqrt(tf.maximum(w, 5)) - 3
    z = tf.where(near, w - 2.5, far)
    value = tf.where(near, _NEAR[0], _FAR[0])
    for a, b in zip(_NEAR[1:], _FAR[1:], strict=True):
        value = value * z + tf.where(near, tf.constant(a), tf.constant(b))
    return tf.where(tf.equal(tf.abs(x), 1), x * float("inf"), value * x)


def _erf_inv_64(x):
    """From the quantiles of the normal distribution, as in TensorFlow's own, which takes that of the rounded
    ``(1 + x) / 2``."""
    size = tf.abs(x)
    value = -tf.math.ndtri((1 - size) / 2) * scalar(np.sqrt(0.5), x)  # 1 - size is exact from 1/2 on
    slope = scalar(np.sqrt(np.pi) / 2, x) * tf.exp(tf.square(value))
    value = tf.where(size < 0.5, value - (tf.math.erf(value) - size) * slope, value)  # one step of Newton's method
    return tf.where(x < 0, -value, value)


tf_rules.add(p.erf_inv_p, in_carrier(_erf_inv, accumulator), "formula")
