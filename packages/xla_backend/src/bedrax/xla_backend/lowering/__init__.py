"""From jaxprs to StableHLO: `program` reads programs, `types` makes types, attributes and constants, and each
family of primitives has its file of rules."""
