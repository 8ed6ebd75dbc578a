"""Prints the number of errors, and the number of tracers that they keep alive."""

import gc
import weakref

import jax
import jax.numpy as jnp
from jax import lax

x, seen, errors = jnp.ones(3), [], []


def bad(x, *rest):
    seen.append(weakref.ref(x))
    raise ValueError


USES = [
    lambda: jax.jit(bad)(x),
    lambda: jax.grad(bad)(x),
    lambda: jax.vmap(bad)(x),
    lambda: jax.jvp(bad, (x,), (x,)),
    lambda: lax.scan(bad, x, x),
    lambda: lax.while_loop(lambda c: True, bad, x),
    lambda: lax.map(bad, x),
    lambda: lax.cond(True, bad, bad, x),
    lambda: jax.checkpoint(bad)(x),
    lambda: jax.linearize(bad, x),
    lambda: jax.make_jaxpr(bad)(x),
    lambda: jax.eval_shape(bad, x),
    lambda: jax.hessian(bad)(x),
    lambda: jax.jit(jax.vmap(jax.grad(bad)))(x),
    lambda: lax.fori_loop(0, 3, lambda i, c: bad(c), x),
]
for use in USES:
    try:
        use()
    except ValueError as error:
        errors.append(error.with_traceback(None))
gc.collect()
print(len(errors), sum(alive() is not None for alive in seen))
