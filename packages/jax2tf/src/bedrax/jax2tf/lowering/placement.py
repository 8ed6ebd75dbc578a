"""TensorFlow for placement: values that are split over devices are marked for XLA's partitioner, others stay
unchanged."""

from bedrax.jax2tf.tables import tf_rules
from bedrax.lax.primitives.placement import reshard_p
from bedrax.tf import tensorflow as tf
from bedrax.xla_backend.sharding import Sharding


@tf_rules.rule(reshard_p, kind="XlaSharding")
def _reshard(ctx, x, *, to, src):
    if not isinstance(to, Sharding) or to.num_devices == 1 or to.is_fully_replicated or not ctx.enable_xla:
        return x
    if tf.executing_eagerly():
        raise ValueError(
            f"jax2tf: a value is split over devices ({to}), which is possible only in a graph of TensorFlow: wrap the converted"
            " function with tf.function"
        )
    from tensorflow.compiler.tf2xla.python import xla

    how = to._to_xla_hlo_sharding(len(x.shape)).to_proto()
    return xla.sharding(x, sharding=how.SerializeToString(), unspecified_dims=[])
