"""Runs of several processes: `distributed`, `multihost`, `colocated`, `array_serialization`."""

import os

from bedrax.core import source

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))
