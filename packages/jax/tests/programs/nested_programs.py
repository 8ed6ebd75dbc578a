"""Programs that nest as deeply as upstream's."""

import jax
import jax.numpy as jnp


def nested(n):
    f = jnp.sin
    for _ in range(n):
        f = jax.jit(lambda x, f=f: f(x) + 1)
    return f


print(
    nested(115)(0.0),
    jax.grad(nested(92))(0.0),
    jax.vmap(nested(75))(jnp.zeros(2))[0],
    jax.jvp(nested(70), (0.0,), (1.0,))[0],
)
