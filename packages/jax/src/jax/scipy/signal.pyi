from bedrax.scipy.signal import *
