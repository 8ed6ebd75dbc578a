from bedrax.scipy.stats.geom import *
