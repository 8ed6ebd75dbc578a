from bedrax.scipy.stats.gennorm import *
