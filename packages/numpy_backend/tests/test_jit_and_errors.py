"""`jit`: signatures, static arguments, caching, closures; and the errors of Python operations on traced values."""

import functools
import re

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import config, errors
from bedrax.core.array import Array
from bedrax.core.avals import aval_of
from bedrax.core.jitting import Inline, jit
from bedrax.core.staging import make_jaxpr

f32 = np.float32
X = np.arange(3, dtype=f32)


def counting(f):
    calls = []

    @functools.wraps(f)
    def counted(*args, **kwargs):
        calls.append(1)
        return f(*args, **kwargs)

    return counted, calls


def test_one_trace_per_signature():
    f, calls = counting(lambda x, k=1.0: lax.mul(x, k))
    g = jit(f)
    g(X), g(X + 1), g(X, 2.0), g(X, 3.0)
    assert len(calls) == 2  # with the default, and with an argument
    g(X.astype(np.float64).astype(np.int32), 2), g({"a": X}["a"], k=2.0)
    assert len(calls) == 4
    g.clear_cache()
    g(X)
    assert len(calls) == 5


def test_static_arguments_by_position_and_name():
    f = jit(lambda x, n, mode: lax.mul(x, f32(n)) if mode == "mul" else x, static_argnames=("n", "mode"))
    np.testing.assert_allclose(np.asarray(f(X, 2, mode="mul")), 2 * X)
    np.testing.assert_allclose(np.asarray(f(X, 2, "no")), X)
    g = jit(lambda x, n: lax.mul(x, f32(n)), static_argnames="n")
    np.testing.assert_allclose(np.asarray(g(X, 3)), np.asarray(g(X, n=3)))  # a keyword is matched to its position


def test_static_arguments_are_distinguished_by_type():
    f, calls = counting(lambda x, n: lax.mul(x, f32(n)))
    g = jit(f, static_argnums=1)
    g(X, 1), g(X, True), g(X, 1.0), g(X, 1)
    assert len(calls) == 3


@pytest.mark.parametrize(
    "run, error, text",
    [
        (
            lambda: jit(lambda x, s: x, static_argnums=1)(1, [2]),
            ValueError,
            "static argument 1 has type .*not hashable",
        ),
        (
            lambda: jit(lambda x, s: x, static_argnames="s")(1, s=[2]),
            ValueError,
            "argument 's' has type <class 'list'>",
        ),
        (lambda: jit(lambda x, s: x, static_argnames="q"), ValueError, "has 'q', which .* parameters are x, s"),
        (
            lambda: jit(lambda x, s: x, static_argnums=5),
            ValueError,
            r"\(5,\) names position 5, but the number of .* is 2",
        ),
        (lambda: jit(lambda x: x, static_argnums=0, donate_argnums=0), ValueError, "both static and donated"),
        (lambda: jit(3), TypeError, "jit needs a callable, got 3"),
        (
            lambda: jit(lambda x, s: x)(1, "a"),
            TypeError,
            "argument s of type <class 'str'>, which is not a valid JAX type",
        ),
        (lambda: jit(lambda n, x, s: x, static_argnums=0)(1, 2, "a"), TypeError, "argument s of type"),
        (lambda: jit(lambda d: d)({"x": 1, "y": "a"}), TypeError, re.escape("argument d['y'] of type")),
        (
            lambda: jit(lambda x: "a")(1),
            TypeError,
            "returned a value of type <class 'str'> .*leaf 0.* not a valid JAX type",
        ),
        (
            lambda: jit(lambda x: (x, {"k": object()}))(1),
            TypeError,
            "returned a value of type <class 'object'> .leaf 1",
        ),
        (lambda: jit(lambda x: x)(2**40), OverflowError, "1099511627776"),
        (lambda: jit(lambda x, y: x)(1), TypeError, "missing 1 required positional argument: 'y'"),
    ],
)
def test_wrong_arguments_of_jit_are_errors(run, error, text):
    with pytest.raises(error, match=text):
        run()


def test_closures_are_constants_and_tracers_are_seen():
    table = np.arange(4, dtype=f32)
    assert jit(lambda: lax.reduce_sum(table, axes=(0,)))() == 6

    @jit
    def outer(x):
        return jit(lambda y: lax.mul(x, y))(f32(2))

    np.testing.assert_allclose(np.asarray(outer(X)), 2 * X)


def test_inline_leaves_no_call():
    inner = jit(lax.sin, inline=Inline.JAX_EARLY)
    assert [e.primitive.name for e in make_jaxpr(inner)(X).eqns] == ["sin"]
    for other in (True, False, Inline.XLA_EARLY):
        assert [e.primitive.name for e in make_jaxpr(jit(lax.sin, inline=other))(X).eqns] == ["jit"]
    with pytest.raises(ValueError, match=r"boolean or a (jax|bedrax.core)\.Inline, got 'auto'"):
        jit(lax.sin, inline="auto")


def test_methods_and_partial_functions():
    class Model:
        @functools.partial(jit, static_argnums=0)
        def scale(self, x):
            return lax.mul(x, 3.0)

    np.testing.assert_allclose(np.asarray(Model().scale(X)), 3 * X)
    np.testing.assert_allclose(np.asarray(jit(functools.partial(lax.mul, f32(2)))(X)), 2 * X)


def test_disable_jit_runs_python():
    seen = []
    f = jit(lambda x: (seen.append(type(x)), lax.sin(x))[1])
    with config.disable_jit(True):
        f(1.0)
        assert seen == [float]
        assert float(lax.cond(True, lambda: 1.0, lambda: 2.0)) == 1
        assert int(lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0)) == 3
        for start in (0, 3):
            count, same = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (start, 2.0))
            assert isinstance(count, Array) and count == 3 and aval_of(count).weak_type
            assert isinstance(same, Array) and same == 2


# ---- what Python may not do with traced values


@pytest.mark.parametrize(
    "use, error, text",
    [
        (
            lambda x: 1 if x else 0,
            errors.TracerBoolConversionError,
            "Python needs the boolean value of a traced array of type float32[].",
        ),
        (lambda x: not x, errors.TracerBoolConversionError, ", lax.cond or lax.while_loop"),
        (lambda x: float(x), errors.ConcretizationTypeError, "float(x) makes a Python number of it."),
        (lambda x: int(x), errors.ConcretizationTypeError, "write x.astype(int)"),
        (lambda x: complex(x), errors.ConcretizationTypeError, "complex(x) makes a Python number"),
        (lambda x: [1, 2][x], errors.TracerIntegerConversionError, "Python needs the integer value of a traced array"),
        (
            lambda x: f"{x:.2f}",
            errors.JAXTypeError,
            "the format '.2f' is for a number, got a traced array of type float32[]",
        ),
        (lambda x: range(x), errors.TracerIntegerConversionError, "lax.fori_loop"),
        (
            lambda x: np.sin(x),
            errors.TracerArrayConversionError,
            "NumPy needs the elements of a traced array of type float32[]",
        ),
        (lambda x: x.item(), errors.ConcretizationTypeError, "The method item was called."),
    ],
)
def test_conversions(use, error, text):
    def named(unused, value):
        return use(lax.mul(value, 2.0))

    with pytest.raises(error) as raised:
        jit(named)(1.0, f32(1))
    message = str(raised.value)
    assert text in message
    assert "the function named at" in message and "test_jit_and_errors.py" in message
    assert "depends on the value of the argument value." in message
    assert message.splitlines()[-1].endswith(error.code)


def test_all_arguments_that_matter_are_named():
    def f(a, b, c, *rest, d):
        return bool(lax.add(lax.add(a["x"], rest[1]), d))

    with pytest.raises(errors.TracerBoolConversionError, match=re.escape("arguments a['x'], rest[1], d.")):
        jit(f)({"x": 1.0}, 1.0, 1.0, 1.0, 1.0, d=1.0)
    with pytest.raises(errors.TracerBoolConversionError, match="argument b."):
        jit(lambda a, b: bool(b), static_argnums=0)("static", 1.0)


def test_the_error_of_a_leaked_tracer_names_its_line():
    kept = []

    def leaky(x):
        kept.append(lax.mul(x, 2.0))
        return x

    jit(leaky)(f32(1))
    for use in (lambda: lax.sin(kept[0]), lambda: jit(lax.sin)(kept[0]), lambda: jit(lambda: lax.sin(kept[0]))()):
        with pytest.raises(errors.UnexpectedTracerError) as raised:
            use()
        message = str(raised.value)
        assert "a traced value of type float32[]" in message
        assert "leaky at" in message and "(leaky)" in message and ".checking_leaks" in message


def test_check_tracer_leaks_raises_at_the_end_of_a_trace():
    kept = []
    with config.check_tracer_leaks(True):
        with pytest.raises(errors.LeakedTracerError, match="values leaked from a"):
            jit(lambda x: (kept.append(x), x)[1])(f32(1))
        kept.clear()
        assert float(jit(lambda x: lax.sin(lax.cond(True, lax.sin, lax.cos, x)))(f32(0))) == 0
