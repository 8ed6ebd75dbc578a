"""Prints the platforms of the devices, or the error."""

import bedrax.xla_backend as xla
from bedrax.core import config

try:
    print([d.platform for d in xla.devices()])
    config.config.update("jax_num_cpu_devices", 5)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
