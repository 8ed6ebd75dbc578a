"""Prints the error of the second import of the bridge where TensorFlow cannot be found."""

import contextlib

import without_tensorflow  # noqa: F401  hides it

with contextlib.suppress(ImportError):
    import bedrax.tf
try:
    import bedrax.tf  # noqa: F401  raises again
except ImportError as error:
    assert error.name == "tensorflow"
    print(error)
