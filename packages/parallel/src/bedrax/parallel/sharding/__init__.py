"""Sharding rules: how the results of primitives are split, by family."""
