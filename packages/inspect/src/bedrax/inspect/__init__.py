"""Pages for people: what a program became, and what an error means."""

import os

from bedrax.core import source
from bedrax.core.lazy import attach

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))

__getattr__, __dir__, __all__ = attach(__name__, {".explaining": ("codes", "explanation"), ".paging": ("Page", "page")})
