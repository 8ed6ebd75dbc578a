from bedrax.extend.unsupported import (  # Flax, nnx.transforms.transforms: user_checks
    Error as Error, JaxException as JaxException, Out as Out, check as check, checkify as checkify,
    user_checks as user_checks,
)  # fmt: skip
