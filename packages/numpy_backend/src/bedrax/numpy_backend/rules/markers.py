"""NumPy evaluation of markers; NumPy runs on the CPU."""

import numpy as np

from bedrax.core import avals
from bedrax.lax.primitives import markers as p
from bedrax.numpy_backend.tables import numpy_rules

numpy_rules.add(p.create_token_p, lambda: avals.token)
numpy_rules.add(p.after_all_p, lambda *operands: avals.token)
numpy_rules.add(p.stage_p, lambda x: x)
numpy_rules.add(p.hint_p, lambda x, *, pairs: x)
numpy_rules.add(p.dce_sink_p, lambda *operands, prevent_mlir_dce: [])
numpy_rules.add(p.platform_index_p, lambda *, platforms: np.asarray(p.index_of_platform("cpu", platforms), np.int32))
