from bedrax.autodiff.taylor import *
