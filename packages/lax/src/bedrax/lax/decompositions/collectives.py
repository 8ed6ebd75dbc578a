"""What varies over which axes is said in types only: the values are as they were."""

from bedrax.core.tracing import pvary_p
from bedrax.lax.tables import decompositions

decompositions.add(pvary_p, lambda x, *, axes: x, "identity")
