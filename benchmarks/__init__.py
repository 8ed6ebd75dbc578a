"""How fast Bedrax is next to upstream JAX, autograd and optree; see README.md."""
