"""The speed of Bedrax compared with upstream JAX, autograd and optree; see README.md."""
