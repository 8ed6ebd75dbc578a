"""No names: a TPU needs no preparation by the module."""
