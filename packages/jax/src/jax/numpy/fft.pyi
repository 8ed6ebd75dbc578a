from bedrax.numpy.fft import *
