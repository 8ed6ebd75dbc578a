"""NumPy evaluation of callbacks: call the Python functions."""

import numpy as np

from bedrax.lax.primitives.callbacks import debug_callback_p, io_callback_p, pure_callback_p
from bedrax.numpy_backend.tables import numpy_rules


@numpy_rules.rule(pure_callback_p, io_callback_p, debug_callback_p)
def _call(*args, callback, **_):
    return [np.array(x) for x in callback(*args)]  # the user may write to the original later
