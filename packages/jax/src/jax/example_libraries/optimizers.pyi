from bedrax.libraries.optimizers import *
