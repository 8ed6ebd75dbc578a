from bedrax.xla_backend.executables import *
