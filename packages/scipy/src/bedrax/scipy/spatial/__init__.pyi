from . import transform as transform
