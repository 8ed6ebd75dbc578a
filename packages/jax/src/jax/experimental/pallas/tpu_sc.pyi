from bedrax.pallas.specs import SparseCorePushStreamWarning as SparseCorePushStreamWarning
from bedrax.extend.refused.tpu_sc import *
