from bedrax.libraries.ode import *
