from bedrax.sparse.samples import *
