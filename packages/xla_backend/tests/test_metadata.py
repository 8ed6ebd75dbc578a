"""Hints for the compiler: their operations have them in the module."""

import re

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import grad
from bedrax.batching import vmap
from bedrax.core.jitting import jit
from bedrax.xla_backend.metadata import set_xla_metadata

X = np.float32(2)


def hints_of(fun, *args):
    """Operation -> its hints, in the module of a function."""
    text = (fun if hasattr(fun, "lower") else jit(fun)).lower(*args).as_text()
    found = re.findall(r"stablehlo\.(\w+) .*frontend_attributes = \{([^}]*)\}", text)
    return {name: hints for name, hints in found}


def test_a_value():
    hints = {"breakpoint": True, "n": 3, "s": "q"}
    f = lambda x: set_xla_metadata(lax.mul(lax.sin(x), lax.cos(x)), **hints)
    expected = {"multiply": 'breakpoint = "true", n = "3", s = "q"'}
    assert hints_of(f, X) == expected and hints_of(vmap(f), np.ones(3, np.float32)) == expected
    np.testing.assert_allclose(f(X), np.sin(2) * np.cos(2), rtol=1e-6)
    np.testing.assert_allclose(grad(f)(X), np.cos(4), rtol=1e-5)
    assert hints_of(lambda x: set_xla_metadata({"a": lax.sin(x), "b": x}, k=1), X) == {"sine": 'k = "1"'}


def test_operations_traced_inside_have_the_metadata():
    def f(x):
        with set_xla_metadata(a=1):
            y = lax.sin(x)
            with set_xla_metadata(b=2):
                y = lax.cos(y)
        return lax.tanh(y)

    assert hints_of(f, X) == {"sine": 'a = "1"', "cosine": 'a = "1", b = "2"'}
    text = jit(grad(f)).lower(X).as_text()  # also in the backward pass: a product with each derivative
    assert re.search(r'multiply [^{]*{mhlo.frontend_attributes = {a = "1"}', text), text
    assert re.search(r'multiply [^{]*{mhlo.frontend_attributes = {a = "1", b = "2"}', text), text


def test_functions_that_were_traced_before():
    f = jit(lambda x: lax.sin(x))
    assert hints_of(f, X) == {}
    with set_xla_metadata(k="v"):
        assert hints_of(f, X) == {"sine": 'k = "v"'}
        np.testing.assert_allclose(f(X), np.sin(2), rtol=1e-6)
    assert hints_of(f, X) == {}
    marked = set_xla_metadata(k="v")(f)
    assert hints_of(marked, X) == {"sine": 'k = "v"'} and marked(X) == f(X)


def test_wrong_metadata_values_are_refused():
    with pytest.raises(TypeError, match="a boolean, a number or a string"):
        set_xla_metadata(k=None)
