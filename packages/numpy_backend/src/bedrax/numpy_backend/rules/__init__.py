"""What each primitive computes, in NumPy: one module per family; `Column` imports them on demand."""

from bedrax.numpy_backend import composed as _composed  # noqa: F401  (the rules of what has none here)
