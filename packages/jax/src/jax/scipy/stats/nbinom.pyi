from bedrax.scipy.stats.nbinom import *
