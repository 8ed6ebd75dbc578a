from bedrax.scipy.cluster.vq import *
