from bedrax.scipy.stats.expon import *
