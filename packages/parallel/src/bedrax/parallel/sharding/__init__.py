"""Sharding rules: the split of the results of primitives, by family."""
