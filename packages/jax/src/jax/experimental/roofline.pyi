from bedrax.extend.roofline import *
from bedrax.extend.unsupported import (
    register_roofline as register_roofline,
    register_standard_roofline as register_standard_roofline,
    roofline as roofline,
    roofline_and_grad as roofline_and_grad,
)
