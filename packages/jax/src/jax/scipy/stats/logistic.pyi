from bedrax.scipy.stats.logistic import *
