"""Equations of a derivative have the line of the operation that they are derived from."""

import numpy as np

from bedrax import lax
from bedrax.autodiff import custom_vjp, grad
from bedrax.core import source
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr

X = np.float32(0.5)


def lines_of(program, function):
    """The lines of the equations, counted from the definition of a function; inner programs included."""
    found = []
    for eqn in program.eqns:
        assert eqn.source_info[0].co_filename == __file__
        found.append(source.line_of(eqn.source_info) - function.__code__.co_firstlineno)
        for inner in eqn.params.values():
            if hasattr(inner, "eqns"):
                found += lines_of(inner, function)
    return found


def test_reverse_mode_returns_through_the_lines():
    def f(x):
        y = lax.sin(x)
        z = lax.mul(y, y)
        return lax.exp(z)

    found = lines_of(make_jaxpr(grad(f))(X), f)
    forward, backward = found[: found.index(3) + 1], found[found.index(3) + 1 :]
    assert forward == sorted(forward) and set(forward) == {1, 2, 3}
    assert backward == sorted(backward, reverse=True) and {1, 2} <= set(backward)


def test_programs_inside_have_their_lines():
    def inner(x):
        return lax.sin(x)

    def f(x):
        return lax.mul(jit(inner)(x), x)

    found = set(lines_of(make_jaxpr(grad(f))(X), inner))
    assert found == {1, 4}  # that of the sine, and that of the call


def test_a_users_rule_has_its_own_lines():
    @custom_vjp
    def f(x):
        return lax.sin(x)

    def back(x, ct):
        return (lax.mul(lax.cos(x), ct),)

    f.defvjp(lambda x: (lax.sin(x), x), back)

    def g(x):
        return lax.mul(f(x), x)

    program = make_jaxpr(grad(g))(X)
    (cosine,) = [eqn for eqn in program.eqns if eqn.primitive.name == "cos"]
    assert cosine.source_info[0] is back.__code__


def test_the_line_ends_with_the_derivative():
    def f(x):
        y = grad(lax.sin)(x)
        return lax.add(y, x)

    found = lines_of(make_jaxpr(f)(X), f)
    assert found[-1] == 2 and set(found[:-1]) == {1}
