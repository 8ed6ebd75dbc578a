from bedrax.core.jitting import jit as _jit

pjit = _jit
