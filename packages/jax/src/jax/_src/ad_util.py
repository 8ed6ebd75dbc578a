"""`jax._src.ad_util`: needed by Lineax (stop_gradient_p)."""

from bedrax.lax.primitives.elementwise import add_jaxvals_p, stop_gradient_p
from bedrax.autodiff.tables import (
    Zero,
    add_tangents,
    instantiate,
)
