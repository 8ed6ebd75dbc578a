"""Small libraries that use only public functions: `stax`, `optimizers`, `ode`."""

import os

from bedrax.core import source

source.register_exclusion(os.path.dirname(os.path.abspath(__file__)))
