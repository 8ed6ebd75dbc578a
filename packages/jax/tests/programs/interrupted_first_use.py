"""A first use that is interrupted and repeated: python interrupted_first_use.py SEED"""

import random
import signal
import sys

import jax


class Interrupt(KeyboardInterrupt):
    pass


def interrupt(*_):
    raise Interrupt


def use():
    import jax.numpy as jnp

    jax.jit(lambda x: jnp.sin(x).sum())(jnp.arange(3.0))
    jnp.linalg.norm(jnp.ones(3)), jnp.fft.fft(jnp.ones(4)), jax.nn.softmax(jnp.ones(3)), jax.scipy.special.erf(1.0)
    jax.lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(3.0)), jax.grad(lambda x: x**2)(1.0)
    jax.random.normal(jax.random.key(0), (2,))


random.seed(int(sys.argv[1]))
signal.signal(signal.SIGALRM, interrupt)
for _ in range(4):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.random() * 1.5 + 0.005)
        use()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupt:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
use()
print("fine")
