from bedrax.scipy.special import *
