"""Sparse arrays, by the names that libraries import: not supported, and no value is one."""

from __future__ import annotations


class JAXSparse:
    """Not supported: making one raises NotImplementedError; `isinstance` says no."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            f"jax.experimental.sparse.{type(self).__name__} is not supported: use dense arrays, or jax.ops.segment_sum"
            " over indices and values"
        )


class BCOO(JAXSparse):
    """Batched coordinates and values: not supported."""


class BCSR(JAXSparse):
    """Batched compressed rows: not supported."""
