"""Eager derivatives on NumPy: operations that are linearized often have compiled functions, with the bits of the rules."""

import warnings

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import custom_jvp, grad, linearize, steps, value_and_grad, vjp
from bedrax.autodiff.linearization import linearize_flat
from bedrax.autodiff.tables import jvp_rules
from bedrax.batching import vmap
from bedrax.core import config, executors
from bedrax.core.jitting import jit
from bedrax.core.tracing import Primitive
from bedrax.numpy_backend.executor import NumpyExecutor
from bedrax.numpy_backend.tables import numpy_rules

OFTEN = 8


@pytest.fixture(autouse=True)
def _no_steps(monkeypatch):
    """Each test begins without steps, and soon makes them."""
    monkeypatch.setattr(steps, "_OFTEN", 4)
    steps.known().clear()


def _made(prim):
    return [step for key, step in steps.known().items() if key[0] is prim and isinstance(step, steps.Step)]


def _same(tree, other):
    """Whether two results have the same types and bits."""
    if isinstance(tree, tuple):
        return len(tree) == len(other) and all(map(_same, tree, other))
    a, b = np.asarray(tree), np.asarray(other)
    return (
        a.dtype == b.dtype and tree.weak_type == other.weak_type and a.shape == b.shape and a.tobytes() == b.tobytes()
    )


def _often(function, *args):
    """The results of a function at its first call, and when it has been called often."""
    first = function(*args)
    for _ in range(OFTEN):
        again = function(*args)
    return first, again


def _sum(x):
    return lax.reduce_sum(x, tuple(range(x.ndim)))


def _vector(dtype=np.float32):
    return np.random.default_rng(0).normal(size=7).astype(dtype)


def _at(x, i):
    return lax.index_in_dim(x, i, keepdims=False)


WEIGHTS = np.random.default_rng(1).normal(size=(7, 3))

FUNCTIONS = {
    "chain of scalars": lambda x: lax.sin(_at(x, 0) * _at(x, 1)) * _at(x, 2) + 1.0,
    "the same operand twice": lambda x: _sum(x * x + x * (x * x)),
    "many uses": lambda x: _sum(x * lax.exp(x) - x / (1.0 + x * x) + lax.tanh(x) * x),
    "a tangent that passes through": lambda x: _sum((x + 1.0) - 2.0 + lax.reshape(x, (7,)) - _at(x, 0)),
    "scalars that are broadcast": lambda x: _sum(_at(x, 0) * x + x / _at(x, 1) - _at(x, 2)),
    "zero derivatives": lambda x: _sum(x * lax.floor(x) + lax.select(x > 0, x, lax.neg(x))),
    "slices": lambda x: (
        _sum(lax.slice_in_dim(x, 1, 7) * lax.slice_in_dim(x, 0, -1)) + _at(x, 3) + _sum(lax.rev(x, (0,)))
    ),
    "products": lambda x: _sum(lax.dot(x, WEIGHTS.astype(x.dtype)) ** 2),
    "an array of NumPy": lambda x: _sum(x * WEIGHTS[:, 0].astype(x.dtype)),
    "reductions": lambda x: lax.reduce_max(x, (0,)) * _sum(lax.cumsum(x)) + lax.reduce_prod(x, (0,)),
    "powers": lambda x: _sum(x**3 + lax.pow(lax.abs(x) + 1.0, x)),
    "indices": lambda x: _sum(lax.index_take(x, (np.array([0, 2, 2]),), (0,)) * lax.dynamic_slice(x, (1,), (3,))),
    "concatenation": lambda x: _sum(lax.concatenate([x, x * 2.0], 0) * lax.concatenate([x, x], 0)),
    "a call": lambda x: _sum(jit(lambda y: lax.sin(y) * y)(x) * x),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_steps_give_the_bits_of_the_rules(name, dtype):
    x = lax.convert_element_type(_vector(), dtype)
    first, again = _often(value_and_grad(FUNCTIONS[name]), x)
    assert _same(first, again)
    assert any(isinstance(step, steps.Step) for step in steps.known().values())


def test_steps_of_complex_numbers_and_of_64_bits():
    z = _vector() + 1j * _vector()[::-1]
    first, again = _often(grad(lambda z: _sum(lax.exp(z) * z), holomorphic=True), z.astype(np.complex64))
    assert _same(first, again)
    f = value_and_grad(lambda x: _sum(lax.exp(x) * 0.1))
    narrow = f(_vector(np.float64))
    with config.enable_x64(True):
        first, again = _often(f, _vector(np.float64))
        assert _same(first, again)
        assert again[0].dtype == np.float64
    assert _same(f(_vector(np.float64)), narrow)


def test_steps_of_python_scalars_have_weak_types():
    first, again = _often(value_and_grad(lambda x: lax.sin(2.0 * x) * x + 1.0), 0.5)
    assert _same(first, again)
    assert again[1].weak_type
    assert _made(lax.mul_p)


def test_tangents_that_are_constants():
    @custom_jvp
    def one(x):
        return x

    one.defjvp(lambda primals, tangents: (primals[0], np.float32(1)))
    x = lax.asarray(np.float32(2))
    first, again = _often(lambda x: linearize(lambda x: lax.mul(one(x), x), x)[1](x), x)
    assert _same(first, again)
    first, again = _often(grad(lambda x: lax.mul(lax.sin(one(x)), x)), x)
    assert _same(first, again)


def test_derivatives_of_derivatives():
    f = lambda x: lax.sin(x) * x * x
    first, again = _often(grad(grad(grad(f))), np.float32(0.7))
    assert _same(first, again)


def test_a_pullback_can_be_called_again_and_traced():
    f = lambda x, y: lax.sin(x) * y
    x, y = lax.convert_element_type(_vector(), np.float32), lax.convert_element_type(_vector() + 1, np.float32)
    for _ in range(OFTEN):
        out, pullback = vjp(f, x, y)
    ct = np.arange(7, dtype=np.float32)
    wanted = lax.mul(lax.mul(ct, y), lax.cos(x)), lax.mul(ct, lax.sin(x))
    _, pullback = vjp(f, x, y)
    for got in (pullback(ct), pullback(ct), jit(pullback)(ct)):
        np.testing.assert_allclose(got[0], wanted[0], rtol=1e-6)
        np.testing.assert_allclose(got[1], wanted[1], rtol=1e-6)
    many = vmap(vjp(f, x, y)[1])(np.stack([ct, 2 * ct]))
    np.testing.assert_allclose(np.asarray(many[0])[1], 2 * wanted[0], rtol=1e-6)
    second = grad(lambda c: _sum(vjp(f, x, y)[1](c)[0]))(ct)  # the pullback of the pullback
    np.testing.assert_allclose(second, lax.mul(y, lax.cos(x)), rtol=1e-6)


def test_the_residuals_of_a_pullback_are_its_arguments():
    x, y = lax.convert_element_type(_vector(), np.float32), lax.convert_element_type(_vector() + 1, np.float32)
    for _ in range(OFTEN):
        _, pullback = vjp(lambda x, y: x * y, x, y)
    _, pullback = vjp(lambda x, y: x * y, x, y)
    assert pullback.args_res[0] is x
    assert pullback.args_res[1] is y


def test_the_linear_program_of_steps_is_that_of_the_rules():
    f = lambda x: _sum(lax.exp(x) * x + lax.sin(x * x) / (x + 2.0))
    x = lax.convert_element_type(_vector(), np.float32)
    first = linearize(f, x)[1]
    for _ in range(OFTEN):
        again = linearize(f, x)[1]
    assert str(again.program.jaxpr) == str(first.program.jaxpr)
    assert _same(first(x), again(x))


def test_later_writes_to_an_array_of_numpy_have_no_effect():
    factor = np.ones(7, np.float32)
    x = lax.convert_element_type(_vector(), np.float32)
    for _ in range(OFTEN):
        _, pullback = vjp(lambda x: x * factor, x)
    factor[:] = 5
    np.testing.assert_array_equal(pullback(np.ones(7, np.float32))[0], np.ones(7))


def test_results_of_steps_share_no_memory_with_arrays_of_numpy():
    rules = [(lax.max_p, lambda x, y: y)]  # a rule that returns an operand
    replaced = [(prim, numpy_rules[prim], numpy_rules.kinds[prim]) for prim, _ in rules]
    other = np.ones(7, np.float32)
    for prim, rule in rules:
        numpy_rules.replace(prim, rule)
    try:
        for _ in range(OFTEN):
            out, _ = vjp(lambda x: lax.max_p.bind(x, other), np.zeros(7, np.float32))
        assert _made(lax.max_p)
    finally:
        for prim, rule, kind in replaced:
            numpy_rules.replace(prim, rule)
            numpy_rules.kinds[prim] = kind
    other[:] = 5
    np.testing.assert_array_equal(out, np.ones(7))


def test_steps_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(OFTEN):
            grad(lambda x: _sum(lax.exp(x) / (x - x)))(np.full(3, 1000, np.float32))


def test_a_rule_that_a_library_sets_replaces_the_step(monkeypatch):
    f = grad(lambda x: lax.sin(x))
    for _ in range(OFTEN):
        f(np.float32(1))
    assert _made(lax.sin_p)
    old = jvp_rules[lax.sin_p]
    kind = jvp_rules.kinds[lax.sin_p]
    jvp_rules.replace(
        lax.sin_p, lambda primals, tangents: (lax.sin_p.bind(*primals), lax.mul(tangents[0], np.float32(9)))
    )
    try:
        assert f(np.float32(1)) == 9
    finally:
        jvp_rules.replace(lax.sin_p, old)
        jvp_rules.kinds[lax.sin_p] = kind
    np.testing.assert_allclose(f(np.float32(1)), np.cos(1), rtol=1e-6)


def test_primitives_with_an_evaluation_of_their_own_have_no_steps():
    twice_p = Primitive("twice")
    calls = []
    twice_p.def_impl(lambda x: calls.append(x) or lax.mul(x, np.float32(2)))
    twice_p.def_abstract_eval(lambda x: x)
    jvp_rules.replace(twice_p, lambda primals, tangents: (twice_p.bind(*primals), lax.mul(tangents[0], np.float32(2))))
    for _ in range(OFTEN):
        assert grad(twice_p.bind)(np.float32(3)) == 2
    assert len(calls) == OFTEN


def test_errors_are_those_of_the_rules():
    rough_p = Primitive("rough")
    rough_p.def_impl(lambda x: x)
    rough_p.def_abstract_eval(lambda x: x)
    jvp_rules.absent(rough_p, why="it has a jump everywhere")
    for _ in range(OFTEN + 1):
        with pytest.raises(NotImplementedError, match="it has a jump everywhere"):
            grad(lambda x: _sum(rough_p.bind(x)))(_vector())


def test_a_gradient_drops_the_residuals_that_were_read():
    x = executors.get().asarray(_vector())
    for _ in range(OFTEN):
        recorded = linearize_flat(lambda x: ([_sum(lax.exp(x) * lax.sin(x))], None), [x], [True])
        node = recorded.tangents[0]
        (first,) = recorded.backward([np.float32(1)])
        (again,) = recorded.backward([np.float32(1)], once=True)
        assert _same(first, again)
        assert not recorded.record.entries
    assert node.entry is None


@pytest.fixture
def install():
    """`executors.install`, and the executor of the test run again afterwards."""
    before = executors.get()
    yield executors.install
    executors.install(before)


class Counting(NumpyExecutor):
    """A backend of a user, as in docs/howto/backend.md."""

    def __init__(self):
        self.names = []

    def apply(self, prim, args, params):
        self.names.append(str(prim))
        return super().apply(prim, args, params)


class Compiling(NumpyExecutor):
    """It changes only how programs become functions, so its derivatives have steps."""

    def __init__(self):
        self.programs = 0

    def function_of(self, jaxpr):
        self.programs += 1
        return super().function_of(jaxpr)


def test_a_backend_with_its_own_evaluation_evaluates_every_operation(install):
    x, backend = _vector(), Counting()
    derivative = grad(lambda x: _sum(lax.sin(x)))
    _often(derivative, x)  # NumPy's backend has steps
    assert _made(lax.sin_p)
    install(backend)
    counts = []
    for _ in range(OFTEN):
        backend.names.clear()
        derivative(x)
        counts.append(backend.names.count("sin"))
    assert counts == [1] * OFTEN


def test_each_backend_has_its_own_steps(install):
    x, backend = _vector(), Compiling()
    derivative = grad(lambda x: _sum(lax.sin(x) * x))
    expected, _ = _often(derivative, x)
    install(backend)
    found, again = _often(derivative, x)
    assert backend.programs and _same(found, expected) and _same(again, expected)
