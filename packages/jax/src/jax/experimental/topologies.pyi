from bedrax.xla_backend.door.runtime import Device as Device
from bedrax.xla_backend.topologies import *
