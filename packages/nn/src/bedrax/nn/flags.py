"""Options of functions for neural networks."""

from bedrax.core.config import flag

softmax_custom_jvp = flag("jax_softmax_custom_jvp", False, "softmax has a derivative rule of its own", keyed=True)
