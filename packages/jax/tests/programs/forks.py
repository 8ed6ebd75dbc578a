"""Prints the warnings of a fork before and after the first array."""

import os
import warnings

import jax.numpy as jnp


def fork():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    return [w.category.__name__ for w in seen if "XLA" in str(w.message)]


print(fork())
jnp.ones(3)
print(fork())
