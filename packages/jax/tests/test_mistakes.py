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
def test_each_mistake_raises_its_error(line):
    kind, mistake = line.split(": ", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as raised:
            eval(mistake, dict(NAMES))
    assert kind.rstrip("*") in [c.__name__ for c in type(raised.value).__mro__]
    assert str(raised.value)


def message_of(f, *args):
    with pytest.raises(Exception) as raised:
        f(*args)
    return str(raised.value)


def test_errors_name_the_argument_by_its_path():
    def product(params, x):
        return jnp.dot(params["w"], x)

    def sum_of(params, x):
        return params["w"] + jnp.sin(x)

    def number(params, x):
        return float(params["w"].sum())

    params, x = {"w": jnp.ones(4)}, jnp.ones(5)
    for f in (product, sum_of):
        text = message_of(jit(f), params, x)
        place = f"{f.__code__.co_filename}:{f.__code__.co_firstlineno}"
        assert f"Operand 0, float32[4], depends on the argument params['w'] of {f.__name__} at {place}." in text
        assert f"Operand 1, float32[5], depends on the argument x of {f.__name__} at {place}." in text
        assert f"At {__file__}:{f.__code__.co_firstlineno + 1} ({f.__name__})." in text.splitlines()[-1]
    assert "of the argument params['w']." in message_of(jit(number), params, x)
    assert "of the argument params['w']." in message_of(jit(grad(number)), params, x)
    assert "of the argument params['w']." in message_of(jit(vmap(number)), {"w": jnp.ones((5, 4))}, x)
    assert "It is the argument params['w'] of number at " in message_of(grad(number), {"w": 1}, x)
    assert "It is the argument params['w'] of number at " in message_of(vmap(number), {"w": 1.0}, x)
    assert "an argument params['w'] of type <class 'str'>" in message_of(jit(number), {"w": "a"}, x)


def test_errors_of_our_own_programs_do_not_name_our_arguments():
    text = message_of(jnp.dot, jnp.ones(4), jnp.ones(5))  # one program, whose arguments are those of `dot`
    assert "depends on" not in text and f"At {__file__}:" in text
