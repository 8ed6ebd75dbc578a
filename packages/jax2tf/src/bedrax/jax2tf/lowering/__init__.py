"""The primitives as TensorFlow operations, one module per family; `RuleTable` imports them on demand."""
