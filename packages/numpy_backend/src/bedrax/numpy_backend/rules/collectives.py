"""NumPy evaluation of collectives: none. `vmap` turns those over its axis into ordinary operations."""

from bedrax.lax.primitives import collectives as p
from bedrax.numpy_backend.tables import numpy_rules

numpy_rules.absent(
    p.psum_p, p.pmax_p, p.pmin_p, p.ppermute_p, p.all_gather_p, p.reduce_scatter_p, p.all_to_all_p, p.axis_index_p,
    why="NumPy runs one program on one device; a collective needs the transformation that maps its axis around it",
)  # fmt: skip
