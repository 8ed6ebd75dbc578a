from bedrax.random import *
