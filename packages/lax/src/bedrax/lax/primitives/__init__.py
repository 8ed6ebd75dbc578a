"""The primitives with their shape rules and lax functions, one module per family."""
