"""Records of the random bits; the hash has the known answers of its authors' test vectors."""

from __future__ import annotations

import numpy as np

from bedrax.lax.primitives import random_bits as p
from bedrax.testing.records import OpCase, arg, into

CASES: list[OpCase] = []
UNSAMPLED = {p.rng_uniform_p: "its generator has hidden state; test_random_bits.py tests its range"}


_add = into(CASES)


def _word(shape=()):
    return arg(shape, "uint32", 0, 2**32)


# kat_vectors of Random123: key, counter -> hash.
_KNOWN = np.uint32(
    [
        [0, 0, 0, 0, 0x6B200159, 0x99BA4EFE],
        [0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x1CB996FC, 0xBB002BE7],
        [0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3, 0xC4923A9C, 0x483DF7A0],
    ]
)
_add(p.threefry2x32_p, "known", p.threefry2x32, list(_KNOWN.T[:4]), oracle=lambda *_: (_KNOWN[:, 4], _KNOWN[:, 5]))
_add(p.threefry2x32_p, "scalar keys", p.threefry2x32, [_word(), _word(), _word((2, 3)), _word((2, 3))])
_add(p.threefry2x32_p, "scalars", p.threefry2x32, [_word() for _ in range(4)])

for _algorithm in (p.RandomAlgorithm.RNG_PHILOX, p.RandomAlgorithm.RNG_THREE_FRY):
    for _dtype, _shape in (
        ("uint32", (5,)),
        ("uint32", (2, 3)),
        ("uint16", (4, 2)),
        ("uint8", (7,)),
        ("uint64", (3, 3)),
        ("uint32", ()),
        ("uint32", (3, 5)),
        ("uint32", (3, 2, 4)),
    ):
        _add(
            p.rng_bit_generator_p,
            f"{_algorithm.name} {_dtype} {_shape}",
            lambda key, s=_shape, d=_dtype, a=_algorithm: p.rng_bit_generator_p.bind(
                key, shape=s, dtype=np.dtype(d), algorithm=a
            ),
            [_word((4,))],
        )
_add(p.rng_bit_generator_p, "wide key", lambda key: p.rng_bit_generator(key, (6,)), [np.uint64([2**64 - 1, 2**64 - 1])])
