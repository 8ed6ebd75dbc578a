"""From jaxprs to StableHLO: `engine` reads programs, `types` makes types, attributes and constants, and each
family of primitives has its file of rules."""
