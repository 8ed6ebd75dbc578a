from bedrax.scipy.stats.wrapcauchy import *
