from bedrax.xla_backend.compute_on import *
