"""The interface for libraries that extend the system."""

import os

from bedrax.core import executors, source

executors.offer("bedrax.xla_backend", rank=1)  # loaded at the first computation
source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))
