"""The cumulative reductions in StableHLO: a parallel prefix scan.

(A `reduce_window` as long as the axis, which XLA rewrites to something like it, is slower on CPU.)
"""

from __future__ import annotations

from bedrax.core.primitives import cumulative as p
from bedrax.xla_backend.tables import lower_fun

for _prim in (p.cumsum_p, p.cumprod_p, p.cummax_p, p.cummin_p, p.cumlogsumexp_p):
    lower_fun(_prim, p.composed(_prim))
