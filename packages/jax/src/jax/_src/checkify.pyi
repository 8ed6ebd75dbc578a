from bedrax.checkify.assertions import check as check
from bedrax.checkify.errors import (  # Flax, nnx.transforms.transforms: user_checks
    Error as Error,
    JaxException as JaxException,
    user_checks as user_checks,
)
from bedrax.checkify.trace import Out as Out, checkify as checkify
