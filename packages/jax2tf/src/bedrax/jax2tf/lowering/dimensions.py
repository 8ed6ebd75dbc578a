"""TF operations for symbolic dimensions as values."""

from __future__ import annotations

from bedrax.jax2tf.tables import tf_rules
from bedrax.shape_poly import dim_as_value_p
from bedrax.tf import tensorflow as tf
from bedrax.tf import types


@tf_rules.rule(dim_as_value_p)
def _dim_as_value(ctx, *, dim):
    return tf.cast(ctx.dim(dim), types.tf_dtype(ctx.aval_out.dtype))
