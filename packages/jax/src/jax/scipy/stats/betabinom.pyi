from bedrax.scipy.stats.betabinom import *
