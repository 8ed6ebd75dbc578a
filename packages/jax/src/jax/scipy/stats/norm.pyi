from bedrax.scipy.stats.norm import *
