"""Batching of special functions: they are elementwise."""

from bedrax.batching.tables import elementwise
from bedrax.core.tracing import Primitive
from bedrax.lax.primitives import special as p

elementwise(*(prim for prim in vars(p).values() if isinstance(prim, Primitive)))
