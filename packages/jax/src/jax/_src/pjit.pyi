from bedrax.core.jitting import jit_p as jit_p
