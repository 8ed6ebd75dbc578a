from bedrax.lax import *
