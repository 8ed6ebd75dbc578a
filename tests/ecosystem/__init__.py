"""Libraries from PyPI, unmodified, at work on this `jax`."""
