"""Mistakes of programs, in `mistakes.txt`: each raises an error of the type before the colon, with a message.

The types are those that upstream raises, or subclasses. At a type marked with a star, upstream raises another type or
no error.
"""

import pathlib
import warnings

import jax
import jax.export
import jax.image
import jax.numpy as jnp
import jax.scipy.linalg
import jax.scipy.special
import numpy as np
import pytest
from jax import grad, jit, lax, random, vmap
from jax.random import key

NAMES = dict(jax=jax, jnp=jnp, lax=lax, random=random, np=np, jit=jit, grad=grad, vmap=vmap, key=key)
MISTAKES = pathlib.Path(__file__).with_name("mistakes.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_an_error(line):
    kind, mistake = line.split(": ", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as raised:
            eval(mistake, dict(NAMES))
    assert kind.rstrip("*") in [c.__name__ for c in type(raised.value).__mro__]
    assert str(raised.value)
