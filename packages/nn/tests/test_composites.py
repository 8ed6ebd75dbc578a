"""Functions are recorded as named programs, which keep the name when their first argument is mapped."""

import functools

import numpy as np
import pytest

from bedrax import nn
from bedrax.autodiff import grad, jvp
from bedrax.batching import vmap
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


def test_a_function_that_wraps_one_has_no_name():
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
