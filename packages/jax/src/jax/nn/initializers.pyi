from bedrax.nn.initializers import *
