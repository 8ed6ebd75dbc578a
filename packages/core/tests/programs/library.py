"""Functions that look for the frames of a user; a test runs them as if they were a file of Bedrax."""

import warnings

from bedrax.core import source


def place():
    return source.user_frame()


def deep(n):
    return deep(n - 1) if n else source.user_frame()


def call(f):
    return f()


def warn():
    warnings.warn("careful", UserWarning, stacklevel=source.stacklevel())
