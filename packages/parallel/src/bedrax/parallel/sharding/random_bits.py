"""The split of random bits: those of one key are whole on each device."""

from bedrax.lax.primitives import random_bits as p
from bedrax.parallel.explicit import sharding_rules

sharding_rules.add(p.rng_bit_generator_p, lambda op, **params: [op.specs[0], (None,) * len(op.outs[1].shape)])
