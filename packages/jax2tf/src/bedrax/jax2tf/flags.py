"""Options of the bridge to TensorFlow."""

from __future__ import annotations

from typing import Final

from bedrax.core.config import flag

default_native_serialization: Final = flag(
    "jax2tf_default_native_serialization", False, "the default of jax2tf.convert is StableHLO rather than TF ops"
)
compile_jitted: Final = flag(
    "jax2tf_compile_jitted",
    False,
    "functions that jax2tf.convert makes of jitted functions are compiled by TensorFlow's XLA",
)

# As the value of `native_serialization`: the value of the option.
DEFAULT_NATIVE_SERIALIZATION = None
