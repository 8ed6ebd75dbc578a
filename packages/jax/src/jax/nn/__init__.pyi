from bedrax.nn import *
from . import initializers as initializers
