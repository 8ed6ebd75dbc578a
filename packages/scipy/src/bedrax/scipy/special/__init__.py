"""`jax.scipy.special`: special functions, elementwise.

Arguments are promoted and broadcast; integers become floats. What has no operation of its own in XLA is a program of
lax functions, so it is differentiated and compiled like everything else; where differentiating the program would be
wrong or wasteful, it has the derivative from the Digital Library of Mathematical Functions (https://dlmf.nist.gov).
"""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
