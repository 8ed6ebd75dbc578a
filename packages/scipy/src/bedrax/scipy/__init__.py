"""SciPy's functions as programs: traceable, differentiable, batchable."""

import os

from bedrax.core import source

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))
