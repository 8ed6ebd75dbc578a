"""A first program about keys alone, without jaxlib."""

import sys

sys.modules["jaxlib"] = None
import bedrax.random as r
from bedrax.core import offers
from bedrax.core.jitting import jit

offers.name_all({})  # as if only the imported packages were installed

assert list(jit(lambda s: r.key_data(r.key(s)))(3)) == [0, 3]
