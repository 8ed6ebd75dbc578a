from bedrax.lax import (
    cond as cond,
    fori_loop as fori_loop,
    map as map,
    scan as scan,
    switch as switch,
    while_loop as while_loop,
)
from bedrax.lax.primitives.control_flow import cond_p as cond_p, scan_p as scan_p, while_p as while_p
