from bedrax.scipy.stats.dirichlet import *
