from bedrax.libraries.stax import *
