from bedrax.scipy.stats.laplace import *
