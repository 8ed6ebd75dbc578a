"""The kernel: types, primitives, tracing, the jaxpr, and evaluation by NumPy."""

from bedrax.core.array import Array
from bedrax.core.avals import ShapedArray, ShapeDtypeStruct
from bedrax.core.ir import Jaxpr, eval_jaxpr
from bedrax.core.jitting import jit
from bedrax.core.staging import eval_shape, make_jaxpr
from bedrax.core.tracing import Primitive, Tracer

__all__ = [
    "Array", "Jaxpr", "Primitive", "ShapeDtypeStruct", "ShapedArray", "Tracer", "eval_jaxpr", "eval_shape",
    "jit", "make_jaxpr",
]  # fmt: skip
