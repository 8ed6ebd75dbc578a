from bedrax.scipy.stats.gumbel_l import *
