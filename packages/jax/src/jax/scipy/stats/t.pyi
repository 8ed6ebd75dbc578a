from bedrax.scipy.stats.t import *
