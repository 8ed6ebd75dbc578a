"""Resampling of images (`jax.image`)."""

from bedrax.image.resampling import ResizeMethod, resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
