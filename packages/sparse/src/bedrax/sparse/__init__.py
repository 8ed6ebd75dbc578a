"""Sparse arrays: batched coordinates (`BCOO`) and compressed rows (`BCSR`), under every transformation."""

from bedrax.sparse import (
    ad,
    bcoo,
    bcoo_products,
    bcoo_shaping,
    bcsr,
    creation,
    formats,
    linalg,
    matrices,
    rules,
    transform,
)

__all__ = [
    "ad",
    "bcoo",
    "bcoo_products",
    "bcoo_shaping",
    "bcsr",
    "creation",
    "formats",
    "linalg",
    "matrices",
    "rules",
    "transform",
]
