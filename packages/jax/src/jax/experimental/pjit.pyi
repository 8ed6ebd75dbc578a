from bedrax.core.jitting import jit as pjit
