from bedrax.numpy import *
from . import fft as fft, linalg as linalg
