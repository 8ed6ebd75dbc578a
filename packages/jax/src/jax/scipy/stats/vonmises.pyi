from bedrax.scipy.stats.vonmises import *
