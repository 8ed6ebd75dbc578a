from bedrax.scipy.fft import *
