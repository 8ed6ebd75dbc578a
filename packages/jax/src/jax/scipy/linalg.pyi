from bedrax.scipy.linalg import *
