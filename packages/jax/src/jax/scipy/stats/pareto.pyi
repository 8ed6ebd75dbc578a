from bedrax.scipy.stats.pareto import *
