from bedrax.numpy.linalg import *
