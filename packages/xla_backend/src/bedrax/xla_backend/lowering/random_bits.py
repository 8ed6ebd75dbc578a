"""StableHLO of random bits."""

from __future__ import annotations

import numpy as np

from bedrax.core.avals import aval_of
from bedrax.lax.primitives import elementwise as e
from bedrax.lax.primitives import random_bits as p
from bedrax.lax.primitives.conversions import convert_to
from bedrax.lax.primitives.shaping import broadcast_in_dim
from bedrax.xla_backend.tables import lowering_rules

_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)


def _rotate_left(x, r):
    right = np.uint32(32 - r) if isinstance(r, int) else e.sub(np.uint32(32), r)
    return e.bitwise_or(
        e.shift_left(x, np.uint32(r) if isinstance(r, int) else r), e.shift_right_logical(x, right)
    )


def _unrolled(key1, key2, x1, x2):
    return list(p.threefry_hash((key1, key2), x1, x2, e.add, e.bitwise_xor, _rotate_left, np.uint32))


def _rolled(key1, key2, x1, x2):
    """The same with a loop of two turns of eight rounds, between which the keys move on by two, before the last four."""
    from bedrax.lax.primitives.control_flow import fori_loop

    def four_rounds(x1, x2, rotations):
        for r in rotations:
            x1 = e.add(x1, x2)
            x2 = e.bitwise_xor(_rotate_left(x2, r), x1)
        return x1, x2

    def inject(x1, x2, key1, key2, n):
        return e.add(x1, key1), e.add(x2, e.add(key2, n))

    def turn(i, carry):
        x1, x2, (key1, key2, key3) = carry
        n = convert_to(e.mul(i, np.int32(2)), _U32)
        x1, x2 = four_rounds(x1, x2, p.ROTATIONS[0])
        x1, x2 = inject(x1, x2, key2, key3, e.add(n, np.uint32(1)))
        x1, x2 = four_rounds(x1, x2, p.ROTATIONS[1])
        x1, x2 = inject(x1, x2, key3, key1, e.add(n, np.uint32(2)))
        return x1, x2, (key3, key1, key2)

    key3 = e.bitwise_xor(e.bitwise_xor(key1, key2), np.uint32(p.PARITY))
    x1, x2 = e.add(x1, key1), e.add(x2, key2)
    shape = aval_of(x1).shape or aval_of(x2).shape
    x1, x2 = (x if aval_of(x).shape == shape else broadcast_in_dim(x, shape, ()) for x in (x1, x2))
    x1, x2, (_, key2, key3) = fori_loop(np.int32(0), np.int32(2), turn, (x1, x2, (key1, key2, key3)))
    x1, x2 = four_rounds(x1, x2, p.ROTATIONS[0])
    return list(inject(x1, x2, key2, key3, np.uint32(5)))


@lowering_rules.rule(p.threefry2x32_p, kind="composed")
def _threefry(ctx, *operands):
    # XLA's CPU backend repeats what it fuses for each use: 20 rounds in a row would be compiled, and run, many times.
    return ctx.lower_fun(_rolled if ctx.platform == "cpu" else _unrolled, *operands)


_ALGORITHMS = {
    p.RandomAlgorithm.RNG_DEFAULT: "DEFAULT",
    p.RandomAlgorithm.RNG_THREE_FRY: "THREE_FRY",
    p.RandomAlgorithm.RNG_PHILOX: "PHILOX",
}


@lowering_rules.rule(p.rng_bit_generator_p)
def _bit_generator(ctx, key, *, shape, dtype, algorithm, out_sharding=None):
    key_aval = ctx.avals_in[0]
    state_type = ctx.tensor_type((2,), _U64)
    if key_aval.dtype == _U32:
        pairs = ctx.reshape(key, (2, 2))
        key = ctx.emit("stablehlo.bitcast_convert", (pairs,), state_type)
    # XLA has the generator for words of 32 and 64 bits; narrower ones are the low bits of words.
    word = dtype if dtype == _U64 else _U32
    state, bits = ctx.emit(
        "stablehlo.rng_bit_generator", (key,), [state_type, ctx.tensor_type(shape, word)],
        rng_algorithm=ctx.parse(f"#stablehlo<rng_algorithm {_ALGORITHMS[algorithm]}>"),
    )  # fmt: skip
    if key_aval.dtype == _U32:
        pairs = ctx.emit("stablehlo.bitcast_convert", (state,), ctx.tensor_type((2, 2), _U32))
        state = ctx.reshape(pairs, (4,))
    return [state, ctx.convert(bits, dtype)]


@lowering_rules.rule(p.rng_uniform_p)
def _uniform(ctx, a, b, *, shape):
    return ctx.emit(
        "stablehlo.rng", (a, b, ctx.constant(np.asarray(shape, np.int64))),
        rng_distribution=ctx.parse("#stablehlo<rng_distribution UNIFORM>"),
    )  # fmt: skip
