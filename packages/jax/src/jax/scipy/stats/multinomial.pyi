from bedrax.scipy.stats.multinomial import *
