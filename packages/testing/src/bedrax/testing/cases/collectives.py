"""Records of collectives: there are none, since a collective never stands in a program without its named axis."""

from __future__ import annotations

from typing import Any

from bedrax.lax.primitives import collectives as p

CASES: list[Any] = []

UNSAMPLED = {
    prim: "inside the transformation that maps its axis; its tests are in batching's test_collectives.py"
    for name, prim in vars(p).items()
    if name.endswith("_p")
}
