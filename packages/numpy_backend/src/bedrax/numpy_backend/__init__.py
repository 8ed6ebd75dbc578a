"""NumPy evaluation: what each primitive computes, and the executor that needs no compiler."""

from bedrax.core import executors

__all__: list[str] = []

executors.offer("bedrax.numpy_backend.executor", rank=0)
