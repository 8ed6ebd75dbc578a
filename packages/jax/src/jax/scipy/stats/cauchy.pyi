from bedrax.scipy.stats.cauchy import *
