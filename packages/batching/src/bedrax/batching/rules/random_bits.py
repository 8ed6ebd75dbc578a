"""Batching of random bits."""

from bedrax.batching.tables import absent, batch_rules, elementwise, to_front
from bedrax.lax.primitives import control_flow
from bedrax.lax.primitives import random_bits as p

elementwise(p.threefry2x32_p)


@batch_rules.rule(p.rng_bit_generator_p)
def _bit_generator(axis, args, dims, **params):
    # XLA draws for one key at a time. A loop over the keys gives each mapped key the same bits as without batching.
    keys = to_front(args[0], dims[0], axis.size)
    new_keys, bits = control_flow.map(lambda key: tuple(p.rng_bit_generator_p.bind(key, **params)), keys)
    return [new_keys, bits], [0, 0]


absent(p.rng_uniform_p, why="its generator has hidden state, so the mapped draws are not defined")
