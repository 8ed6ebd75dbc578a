from bedrax.scipy.stats.truncnorm import *
