"""What libraries that extend the system reach for."""

import os

from bedrax.core import source

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))
