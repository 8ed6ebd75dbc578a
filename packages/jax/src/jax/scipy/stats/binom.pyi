from bedrax.scipy.stats.binom import *
