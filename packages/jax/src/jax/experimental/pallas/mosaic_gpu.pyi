from bedrax.pallas.mosaic_gpu import *
from bedrax.extend.refused.mosaic_gpu import *
