"""`make_jaxpr` and `eval_shape` trace a function once per signature, as `jit` does."""

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import objects
from bedrax.core.staging import eval_shape, make_jaxpr


@pytest.fixture(autouse=True)
def arrays_only(monkeypatch):
    # Other tests may have classes of objects. Traces that may depend on their contents are not kept.
    monkeypatch.setattr(objects, "kinds", {})


def test_shapes_and_programs_are_traced_once_per_signature():
    count = []

    def fun(x, n=1):
        count.append(n)
        return lax.mul(x, x)

    x = np.float32([1, 2])
    for _ in range(3):
        assert eval_shape(fun, x).shape == (2,) and make_jaxpr(fun)(x).eqns[0].primitive.name == "mul"
    assert len(count) == 2
    assert eval_shape(fun, x[:1]).shape == (1,) and len(count) == 3
    make_jaxpr(fun, static_argnums=1)(x, 2), make_jaxpr(fun, static_argnums=1)(x, 3)
    assert count[3:] == [2, 3]


def test_a_function_that_closes_over_a_tracer_is_traced_again():
    outer = []

    def inner(y):
        return lax.mul(y, outer[-1])

    def run(x):
        outer[:] = [x]
        return eval_shape(inner, x).shape, len(make_jaxpr(inner)(x).consts)

    seen = []
    for n in (1, 2):
        make_jaxpr(lambda x: seen.append(run(x)) or x)(np.zeros(n, np.float32))
    assert seen == [((1,), 1), ((2,), 1)]
