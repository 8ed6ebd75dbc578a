"""Options of the bridge to TensorFlow."""

from bedrax.core.config import flag

default_native_serialization = flag(
    "jax2tf_default_native_serialization", False,
    "jax2tf.convert writes StableHLO rather than TF ops, unless told otherwise")  # fmt: skip

# As the value of `native_serialization`: what the option says.
DEFAULT_NATIVE_SERIALIZATION = None
