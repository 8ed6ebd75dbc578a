from .array import Array as Array
from .avals import ShapeDtypeStruct as ShapeDtypeStruct, ShapedArray as ShapedArray
from .ir import Jaxpr as Jaxpr, eval_jaxpr as eval_jaxpr
from .jitting import jit as jit
from .staging import eval_shape as eval_shape, make_jaxpr as make_jaxpr
from .tracing import Primitive as Primitive, Tracer as Tracer
