"""StableHLO of random bits."""

from __future__ import annotations

import numpy as np

from bedrax.core.primitives import elementwise as e
from bedrax.core.primitives import random_bits as p
from bedrax.core.primitives.conversions import convert_to
from bedrax.core.primitives.shaping import broadcast_in_dim
from bedrax.xla_backend.tables import lowering_rules

_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)


def _rotate_left(x, r):
    right = np.uint32(32 - r) if isinstance(r, int) else e.sub(np.uint32(32), r)
    return e.bitwise_or(
        e.shift_left(x, np.uint32(r) if isinstance(r, int) else r), e.shift_right_logical(x, right)
    )


def _of_one_shape(rounds):
    def hashed(*args):
        shape = next((x.shape for x in args if x.shape), ())
        args = [x if x.shape == shape else broadcast_in_dim(x, shape, ()) for x in args]
        return list(rounds(*args))

    return hashed


@_of_one_shape
def _unrolled(key1, key2, x1, x2):
    return p.threefry_hash((key1, key2), x1, x2, e.add, e.bitwise_xor, _rotate_left, np.uint32)


@_of_one_shape
def _rolled(key1, key2, x1, x2):
    """The same in a loop of five turns, between which keys and rotations move up by one."""
    from bedrax.core.primitives.control_flow import fori_loop

    key3 = e.bitwise_xor(e.bitwise_xor(key1, key2), np.uint32(p.PARITY))
    rotations = tuple(tuple(np.uint32(r) for r in four) for four in p.ROTATIONS)

    def turn(i, carry):
        x1, x2, (key1, key2, key3), (now, later) = carry
        for r in now:
            x1 = e.add(x1, x2)
            x2 = e.bitwise_xor(_rotate_left(x2, r), x1)
        x1 = e.add(x1, key2)
        x2 = e.add(x2, e.add(key3, e.add(convert_to(i, _U32), np.uint32(1))))
        return x1, x2, (key2, key3, key1), (later, now)

    start = (e.add(x1, key1), e.add(x2, key2), (key1, key2, key3), rotations)
    return fori_loop(np.int32(0), np.int32(5), turn, start)[:2]


@lowering_rules.rule(p.threefry2x32_p, kind="composed")
def _threefry(ctx, *operands):
    # XLA's CPU backend takes four times as long to compile the 20 rounds in a row as the loop.
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
