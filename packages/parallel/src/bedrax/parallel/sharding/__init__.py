"""Sharding rules: the split of the results of primitives, and their partial sums, by family."""
