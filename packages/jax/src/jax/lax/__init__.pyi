from bedrax.lax import *
from bedrax.autodiff.implicit import custom_linear_solve as custom_linear_solve, custom_root as custom_root
from bedrax.xla_backend.placement import device_put_p as device_put_p, sharding_constraint_p as sharding_constraint_p
from bedrax.xla_backend.placement import with_sharding_constraint as with_sharding_constraint
from . import linalg as linalg
