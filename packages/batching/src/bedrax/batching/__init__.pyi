from .api import vmap as vmap
from .custom_batching import custom_vmap as custom_vmap, sequential_vmap as sequential_vmap
from .tables import AxisData as AxisData, batch_rules as batch_rules
