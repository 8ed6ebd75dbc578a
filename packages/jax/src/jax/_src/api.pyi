from bedrax.autodiff import (
    grad as grad,
    hessian as hessian,
    jacfwd as jacfwd,
    jacrev as jacrev,
    jvp as jvp,
    linear_transpose as linear_transpose,
    linearize as linearize,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from bedrax.batching import vmap as vmap
from bedrax.core.staging import eval_shape as eval_shape, make_jaxpr as make_jaxpr
from bedrax.xla_backend import jit as jit
