from bedrax.scipy.sparse.linalg import *
