from bedrax.extend.refused.thunky import *
