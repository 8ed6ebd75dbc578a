from bedrax.scipy.stats.multivariate_normal import *
