from bedrax.core.array import Array as Array
from bedrax.extend.api_util import safe_map as _map, safe_zip as _zip
from bedrax.libraries.optimizers import *

map = _map
zip = _zip
