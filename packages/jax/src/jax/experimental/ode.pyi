from bedrax.libraries.ode import *
from bedrax.libraries.ode_steps import *
