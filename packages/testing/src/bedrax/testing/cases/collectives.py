"""Records of collectives: there are none, since a collective never stands in a program without its named axis."""

from bedrax.lax.primitives import collectives as p

CASES: list = []

UNSAMPLED = {
    prim: "inside the transformation that maps its axis; its tests are in batching's test_collectives.py"
    for prim in (
        p.psum_p, p.pmax_p, p.pmin_p, p.ppermute_p, p.all_gather_p, p.reduce_scatter_p, p.all_to_all_p, p.axis_index_p,
    )
}  # fmt: skip
