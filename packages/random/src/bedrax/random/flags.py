"""Options of keys and samplers."""

from bedrax.core.config import flag

default_prng_impl = flag(
    "jax_default_prng_impl", "threefry2x32", "implementation of keys that do not name theirs",
    choices=("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32"), keyed=True)  # fmt: skip
enable_custom_prng = flag("jax_enable_custom_prng", False, "PRNGKey makes typed keys", keyed=True)
legacy_prng_key = flag(
    "jax_legacy_prng_key", "allow", "what to do when an untyped uint32 key is used", choices=("allow", "warn", "error"),
    keyed=True)  # fmt: skip
threefry_partitionable = flag(
    "jax_threefry_partitionable", True, "threefry bits do not depend on how the array is sharded",
    keyed=True)  # fmt: skip
random_seed_offset = flag("jax_random_seed_offset", 0, "added to every seed", keyed=True)
high_dynamic_range_gumbel = flag(
    "jax_high_dynamic_range_gumbel", False, "Gumbel samples with more bits in their tails", keyed=True)  # fmt: skip
