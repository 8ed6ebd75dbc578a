"""Options work before the package that owns them is imported."""

import sys

import jax

assert "bedrax.xla_backend" not in sys.modules
jax.config.update("jax_enable_x64", True)
assert "bedrax.xla_backend" not in sys.modules
jax.config.update("jax_transfer_guard", "log")
jax.config.update("jax_default_prng_impl", "rbg")
assert jax.config.jax_platforms == "cpu" and jax.config.jax_threefry_partitionable is False
assert jax.random.key(0).dtype.name == "key<rbg>"
with jax.default_matmul_precision("high"), jax.log_compiles(False):
    assert jax.config.jax_default_matmul_precision == "high"
