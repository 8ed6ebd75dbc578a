"""What each primitive computes, in NumPy: one module per family; `Column` imports them on demand."""
