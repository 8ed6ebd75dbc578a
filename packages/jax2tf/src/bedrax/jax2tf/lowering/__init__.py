"""The primitives as TensorFlow operations, one module per family; `Column` imports them on demand."""
