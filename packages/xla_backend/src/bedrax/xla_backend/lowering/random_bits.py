"""StableHLO of random bits."""

import numpy as np

from bedrax.lax.decompositions.random_bits import threefry_loop
from bedrax.lax.primitives import random_bits as p
from bedrax.xla_backend.lowering import types
from bedrax.xla_backend.tables import lowering_rules, platform_rule

_U32, _U64 = np.dtype(np.uint32), np.dtype(np.uint64)


@platform_rule(p.threefry2x32_p, "cpu")
def _threefry(ctx, *operands):
    # XLA's CPU backend recomputes a fused operation for each use. 20 rounds in a row would be compiled and run often.
    return ctx.lower_fun(threefry_loop, *operands)


_ALGORITHMS = {
    p.RandomAlgorithm.RNG_DEFAULT: "DEFAULT",
    p.RandomAlgorithm.RNG_THREE_FRY: "THREE_FRY",
    p.RandomAlgorithm.RNG_PHILOX: "PHILOX",
}


@lowering_rules.rule(p.rng_bit_generator_p)
def _bit_generator(ctx, key, *, shape, dtype, algorithm):
    key_aval = ctx.avals_in[0]
    state_type = ctx.tensor_type((2,), _U64)
    if key_aval.dtype == _U32:
        pairs = ctx.reshape(key, (2, 2))
        key = ctx.emit("stablehlo.bitcast_convert", (pairs,), state_type)
    # XLA generates words of 32 and 64 bits. Narrower ones are the low bits of words.
    word = dtype if dtype == _U64 else _U32
    results = [state_type, ctx.tensor_type(shape, word)]
    options = dict(rng_algorithm=ctx.parse(f"#stablehlo<rng_algorithm {_ALGORITHMS[algorithm]}>"))
    if ctx.is_static(shape):
        state, bits = ctx.emit("stablehlo.rng_bit_generator", (key,), results, **options)
    else:  # becomes the other form when the sizes are known
        state, bits = ctx.emit(
            "stablehlo.custom_call",
            (key, ctx.shape_tensor(shape)),
            results,
            call_target_name="stablehlo.dynamic_rng_bit_generator",
            api_version=types.i32(1),
            **options,
        )
    if key_aval.dtype == _U32:
        pairs = ctx.emit("stablehlo.bitcast_convert", (state,), ctx.tensor_type((2, 2), _U32))
        state = ctx.reshape(pairs, (4,))
    return [state, ctx.convert(bits, dtype)]


@lowering_rules.rule(p.rng_uniform_p)
def _uniform(ctx, a, b, *, shape):
    return ctx.emit(
        "stablehlo.rng",
        (a, b, ctx.constant(np.asarray(shape, np.int64))),
        rng_distribution=ctx.parse("#stablehlo<rng_distribution UNIFORM>"),
    )
