from bedrax.jax2tf import PolyShape as PolyShape, convert as convert
