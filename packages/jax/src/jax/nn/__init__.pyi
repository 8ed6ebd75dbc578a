from bedrax.nn import *
from . import initializers as initializers  # type: ignore[no-redef]
