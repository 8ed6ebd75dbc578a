from bedrax.scipy.stats.gumbel_r import *
