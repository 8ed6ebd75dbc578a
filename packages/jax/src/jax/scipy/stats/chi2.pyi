from bedrax.scipy.stats.chi2 import *
