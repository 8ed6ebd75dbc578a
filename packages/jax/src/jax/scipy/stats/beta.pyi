from bedrax.scipy.stats.beta import *
