from bedrax.pytree.tree import *
