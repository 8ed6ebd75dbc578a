"""`jax.scipy.special`: special functions, elementwise.

Arguments are promoted and broadcast; integers become floats. A function without an operation in XLA is a program of
lax functions, so it is differentiated and compiled like other programs. Where differentiating the program would be
wrong or wasteful, the function has the derivative from the Digital Library of Mathematical Functions
(https://dlmf.nist.gov).
"""

from bedrax.core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
