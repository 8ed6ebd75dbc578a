from bedrax.scipy.optimize import *
