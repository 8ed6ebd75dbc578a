"""Dependence in programs that hold programs: only the dependent part of an inner loop, branch or call is transposed."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import checkpoint, custom_jvp, grad, jvp, linearize
from bedrax.autodiff.dependence import dependents
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr

f32 = np.float32


def body(c):
    """One step of a loop over a number, a counter that is an operand of the step, and the number of steps so far."""
    x, n, done = c
    return lax.mul(x, lax.sin(lax.convert_element_type(n, f32))), lax.add(n, 1), lax.add(done, n)


def scanned(f, c):
    return lax.scan(lambda c, _: (f(c), None), c, None, length=3)[0]


def counted(f, c):
    return lax.fori_loop(0, 2, lambda _, c: f(c), c)


def chosen(f, c):
    return lax.cond(lax.lt(c[1], 3), f, lambda c: (c[0], lax.add(c[1], 2), c[2]), c)


def looped(f, c):
    stop = lax.add(c[1], 2)
    return lax.while_loop(lambda c: lax.lt(c[1], stop), f, c)


def ruled(f, c):
    @custom_jvp
    def same(x, n, done):
        return f((x, n, done))

    same.defjvp(lambda p, t: (f(p), (jvp(lambda x: f((x, *p[1:]))[0], p[:1], t[:1])[1], *t[1:])))
    return same(*c)


HOLDERS = {
    "scan": scanned,
    "fori": counted,
    "cond": chosen,
    "jit": lambda f, c: jit(f)(c),
    "checkpoint": lambda f, c: checkpoint(f)(c),
    "custom_jvp": ruled,
}


def of_number(outer, inner):
    def f(x):
        y, n, done = outer(lambda c: inner(body, c), (x, 1, 0))
        return lax.mul(y, lax.convert_element_type(lax.add(n, done), f32))

    return f


@pytest.mark.parametrize("inner", HOLDERS)
@pytest.mark.parametrize("outer", HOLDERS)
def test_reverse_mode_passes_through_programs_in_programs(outer, inner):
    f = of_number(HOLDERS[outer], HOLDERS[inner])  # linear in its argument
    np.testing.assert_allclose(grad(f)(f32(0.7)), f(f32(1.0)), rtol=1e-5)
    np.testing.assert_allclose(linearize(jit(f), f32(0.7))[1](f32(2.0)), 2 * f(f32(1.0)), rtol=1e-5)


@pytest.mark.parametrize("outer", [*HOLDERS, "while"])
def test_an_inner_loop_of_unknown_length_has_no_reverse_mode_and_leaks_nothing(outer):
    f = of_number(HOLDERS.get(outer, looped), looped)
    np.testing.assert_allclose(jvp(f, (f32(0.7),), (f32(1.0),))[1], f(f32(1.0)), rtol=1e-5)
    with pytest.raises(ValueError, match="reverse-mode"):
        grad(f)(f32(0.7))


@pytest.mark.parametrize("holder", [*HOLDERS, "while"])
def test_dependence_follows_the_programs_of_an_equation(holder):
    apply = HOLDERS.get(holder, looped)
    program = make_jaxpr(lambda x: apply(body, (x, 1, 0)))(f32(1.0)).jaxpr
    shrinks = holder != "custom_jvp"  # its rule returns all derivatives together
    assert dependents(program, (True,)).results == (True, not shrinks, not shrinks)


def test_every_result_depends_on_the_predicate():
    program = make_jaxpr(lambda n: chosen(body, (1.0, n, 0)))(1).jaxpr
    assert dependents(program, (True,)).results == (True, True, True)
    program = make_jaxpr(lambda n: lax.while_loop(lambda c: lax.lt(c[1], n), body, (1.0, 0, 0)))(1).jaxpr
    assert dependents(program, (True,)).results == (True, True, True)


def test_dependence_passes_through_the_carries_of_a_loop():
    def shift(c, _):
        a, b, x = c
        return (b, x, x), None

    program = make_jaxpr(lambda x: lax.scan(shift, (1.0, 2.0, x), None, length=3)[0])(3.0).jaxpr
    assert dependents(program, (True,)).results == (True, True, True)
