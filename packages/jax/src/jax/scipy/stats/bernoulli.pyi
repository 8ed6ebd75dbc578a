from bedrax.scipy.stats.bernoulli import *
