from .call_tf import call_tf as call_tf  # a module and a function: the function stays
from bedrax.jax2tf import PolyShape as PolyShape, convert as convert
from . import jax2tf as jax2tf
