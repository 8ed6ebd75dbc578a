from bedrax.scipy.stats.gamma import *
