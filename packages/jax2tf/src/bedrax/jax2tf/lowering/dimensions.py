"""TF operations for symbolic dimensions as values."""

from bedrax.jax2tf.tables import tf_rules
from bedrax.shape_poly import dim_as_value_p
from bedrax.tf import tensorflow as tf
from bedrax.tf import types

tf_rules.add(dim_as_value_p, lambda ctx, *, dim: tf.cast(ctx.dim(dim), types.tf_dtype(ctx.aval_out.dtype)))
