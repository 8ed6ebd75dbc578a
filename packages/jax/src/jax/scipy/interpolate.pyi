from bedrax.scipy.interpolate import *
