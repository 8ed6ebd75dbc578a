from bedrax.scipy.stats.poisson import *
