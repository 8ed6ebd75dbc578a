"""Functions are recorded as named programs, which keep the name when their first argument is mapped."""

import functools

import numpy as np
import pytest

from bedrax import lax, nn
from bedrax.autodiff import checkpoint, grad, jvp, linearize
from bedrax.batching import vmap
from bedrax.core import source
from bedrax.core.composites import composite_of
from bedrax.core.ir import Var
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr

X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)


def _named(fun, *args):
    """The composites of the calls in a program."""
    equations = make_jaxpr(fun)(*args).eqns
    return [found for e in equations if e.primitive.name == "jit" and (found := composite_of(e.params["jaxpr"]))]


@pytest.mark.parametrize(
    ("fun", "name"),
    [
        (nn.relu, "nn.relu"),
        (nn.gelu, "nn.gelu"),
        (nn.softmax, "nn.softmax"),
        (nn.standardize, "nn.standardize"),
        (lambda x: nn.one_hot(x, 3), "nn.one_hot"),
    ],
)
def test_a_call_is_one_equation_of_this_name(fun, name):
    (found,) = _named(fun, X)
    assert found.name == name and isinstance(found.args[0], Var)


def test_arguments_that_are_no_arrays_are_kept():
    (found,) = _named(lambda x: nn.softmax(x, axis=(0, 1)), X)
    assert found.kwargs == {"axis": (0, 1)}
    (found,) = _named(lambda x: nn.softmax(x, 0, where=x > 0), X)
    assert found.args[1] == 0 and isinstance(found.kwargs["where"], Var)


def test_mapped_axes_are_counted():
    assert [c.mapped for c in _named(vmap(nn.softmax), X)] == [((0, 0),)]
    assert [c.mapped for c in _named(vmap(vmap(nn.relu), 1), X[None])] == [((0, 0), (1, 0))]
    assert _named(lambda x: vmap(lambda y, w: nn.softmax(y, where=w))(x, x > 0), X) == []


def test_derivatives_have_no_name():
    program = make_jaxpr(lambda x: jvp(nn.relu, (x,), (x,)))(X)
    assert len(program.eqns) == 1 and composite_of(program.eqns[0].params["jaxpr"]) is None


def test_a_function_that_wraps_a_named_one_has_no_name():
    @functools.wraps(nn.relu)
    def relu(x):
        return nn.relu(x) * 2

    assert _named(jit(relu), X) == []


@pytest.mark.parametrize("fun", [nn.relu, nn.relu6, nn.elu, nn.gelu, nn.softmax, nn.log_softmax, nn.silu, nn.mish])
def test_derivatives_are_those_of_the_operations(fun):
    """The derivative of the recorded call equals that of the function whose operations are recorded."""
    total = lambda f: lambda x: (f(x) * np.cos(X)).sum()
    expected = grad(total(fun.__wrapped__))(X)
    np.testing.assert_allclose(grad(total(fun))(X), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(jit(grad(total(fun)))(X), expected, rtol=1e-6, atol=1e-7)
    twice = lambda f: grad(lambda x: (grad(total(f))(x) * X).sum())(X)
    np.testing.assert_allclose(twice(fun), twice(fun.__wrapped__), rtol=1e-5, atol=1e-6)


def _places(program):
    """The places of the equations of a program, and of those in it."""
    for eqn in program.eqns:
        yield eqn.source_info
        for inner in eqn.params.values():
            if hasattr(inner, "eqns"):
                yield from _places(inner)


DERIVED = {
    "as it is": lambda f: f,
    "grad": lambda f: grad(lambda x: lax.reduce_sum(f(x), axes=(0, 1))),
    "grad of grad": lambda f: grad(
        lambda x: lax.reduce_sum(grad(lambda y: lax.reduce_sum(f(y), axes=(0, 1)))(x), axes=(0, 1))
    ),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x,)),
    "vmap": lambda f: vmap(f),
    "vmap of grad": lambda f: vmap(grad(lambda x: lax.reduce_sum(f(x), axes=(0,)))),
    "linearize": lambda f: lambda x: linearize(f, x)[1](x),
    "checkpoint": lambda f: grad(lambda x: lax.reduce_sum(checkpoint(f)(x), axes=(0, 1))),
}


@pytest.mark.parametrize("derived", DERIVED.values(), ids=DERIVED)
@pytest.mark.parametrize("fun", [nn.softmax, nn.gelu, nn.silu, nn.standardize], ids=lambda f: f.__name__)
def test_each_call_has_its_own_line(fun, derived):
    """Calls in two lines share programs, also those that transformations make of them. No line of the first is in them."""

    def f(x):
        a = fun(x)
        b = fun(x)
        return lax.mul(a, b)

    first = f.__code__.co_firstlineno
    calls = [eqn for eqn in make_jaxpr(derived(f))(X).eqns if eqn.primitive.name == "jit"]
    for eqn in calls:
        assert not any(_places(eqn.params["jaxpr"]))
    assert {source.line_of(eqn.source_info) - first for eqn in calls} >= {1, 2}
