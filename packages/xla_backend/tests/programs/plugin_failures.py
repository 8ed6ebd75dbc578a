"""Prints the platforms of the devices and the failures of plugins."""

import bedrax.xla_backend as xla
from bedrax.xla_backend import clients

print([d.platform for d in xla.devices()])
for name, why in clients._failures.items():
    print(name, why)
try:
    clients.get_backend("gpu")
except RuntimeError as error:
    print(error)
