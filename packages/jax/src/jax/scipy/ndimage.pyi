from bedrax.scipy.ndimage import *
