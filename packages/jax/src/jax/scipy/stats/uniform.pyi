from bedrax.scipy.stats.uniform import *
