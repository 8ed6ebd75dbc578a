"""NumPy rules of the primitives: one module per family; `Column` imports them on demand."""
