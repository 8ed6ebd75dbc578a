"""Derivatives of random bits: there are none."""

from bedrax.autodiff.tables import zero
from bedrax.lax.primitives import random_bits as p

zero(p.threefry2x32_p, p.rng_bit_generator_p, p.rng_uniform_p)
