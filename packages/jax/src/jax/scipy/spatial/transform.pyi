from bedrax.scipy.spatial.transform import *
