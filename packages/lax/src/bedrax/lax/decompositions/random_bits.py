"""The Threefry hash: written out, and as a loop."""

from __future__ import annotations

import numpy as np

from bedrax.lax.primitives import elementwise as e
from bedrax.lax.primitives import random_bits as p
from bedrax.lax.primitives.control_flow import fori_loop
from bedrax.lax.primitives.conversions import convert_to
from bedrax.lax.primitives.shaping import broadcast_in_dim
from bedrax.lax.tables import decompositions


def _rotate_left(x, r):
    right = np.uint32(32 - r) if isinstance(r, int) else e.sub(np.uint32(32), r)
    return e.bitwise_or(e.shift_left(x, np.uint32(r) if isinstance(r, int) else r), e.shift_right_logical(x, right))


@decompositions.rule(p.threefry2x32_p)
def threefry(key1, key2, x1, x2):
    return list(p.threefry_hash((key1, key2), x1, x2, e.add, e.bitwise_xor, _rotate_left, np.uint32))


def threefry_loop(key1, key2, x1, x2):
    """`threefry` with a loop of two turns of eight rounds, between which the keys move on by two, before the last four."""

    def four_rounds(x1, x2, rotations):
        for r in rotations:
            x1 = e.add(x1, x2)
            x2 = e.bitwise_xor(_rotate_left(x2, r), x1)
        return x1, x2

    def inject(x1, x2, key1, key2, n):
        return e.add(x1, key1), e.add(x2, e.add(key2, n))

    def turn(i, carry):
        x1, x2, (key1, key2, key3) = carry
        n = convert_to(e.mul(i, np.int32(2)), np.uint32)
        x1, x2 = four_rounds(x1, x2, p.ROTATIONS[0])
        x1, x2 = inject(x1, x2, key2, key3, e.add(n, np.uint32(1)))
        x1, x2 = four_rounds(x1, x2, p.ROTATIONS[1])
        x1, x2 = inject(x1, x2, key3, key1, e.add(n, np.uint32(2)))
        return x1, x2, (key3, key1, key2)

    key3 = e.bitwise_xor(e.bitwise_xor(key1, key2), np.uint32(p.PARITY))
    x1, x2 = e.add(x1, key1), e.add(x2, key2)
    shape = x1.shape or x2.shape
    x1, x2 = (x if x.shape == shape else broadcast_in_dim(x, shape, ()) for x in (x1, x2))
    x1, x2, (_, key2, key3) = fori_loop(np.int32(0), np.int32(2), turn, (x1, x2, (key1, key2, key3)))
    x1, x2 = four_rounds(x1, x2, p.ROTATIONS[0])
    return list(inject(x1, x2, key2, key3, np.uint32(5)))
