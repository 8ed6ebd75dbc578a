from bedrax.core.array import Array as Array
from bedrax.extend.api_util import safe_map as map, safe_zip as zip
from bedrax.libraries.optimizers import *
