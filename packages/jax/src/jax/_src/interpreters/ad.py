"""`jax._src.interpreters.ad`: a name that Diffrax uses in its tests."""

from bedrax.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, {"bedrax.autodiff.rules.custom_rules": ("CustomVJPException",)})
