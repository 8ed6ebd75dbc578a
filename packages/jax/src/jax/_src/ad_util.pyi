from bedrax.autodiff.tables import Zero as Zero, add_tangents as add_tangents, instantiate as instantiate
from bedrax.lax.primitives.elementwise import add_jaxvals_p as add_jaxvals_p, stop_gradient_p as stop_gradient_p
