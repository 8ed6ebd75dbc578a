"""Runs of several processes: `distributed`, `multihost`, `colocated`, `array_serialization`."""

import os

from bedrax.core import executors, source

executors.offer("bedrax.xla_backend", rank=1)  # loaded at the first computation
source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))
