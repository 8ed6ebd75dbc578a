from bedrax.scipy.integrate import *
