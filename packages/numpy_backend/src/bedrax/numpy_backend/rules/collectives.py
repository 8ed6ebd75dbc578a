"""NumPy evaluation of collectives: none. `vmap` turns those over its axis into ordinary operations."""

from bedrax.lax.primitives import collectives as p
from bedrax.numpy_backend.tables import numpy_rules

numpy_rules.absent(
    *[prim for name, prim in vars(p).items() if name.endswith("_p") and prim not in (p.pvary_p, p.ragged_all_to_all_p)],
    why="NumPy runs one program on one device; a collective needs the transformation that maps its axis around it",
)
