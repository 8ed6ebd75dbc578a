"""Functions with derivative rules of their own: the arguments and results of rules, and the errors of wrong rules."""

import functools

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import (
    SymbolicZero,
    checkpoint,
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    grad,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from bedrax.autodiff.custom_rules import custom_vjp_primal_tree_values
from bedrax.batching import vmap
from bedrax.core.avals import aval_of
from bedrax.core.errors import UnexpectedTracerError
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr

f32 = np.float32


def product(fwd=None, bwd=None, **options):
    """`a * b` with a rule for reverse mode."""

    @custom_vjp
    def mul(a, b):
        return lax.mul(a, b)

    mul.defvjp(
        fwd or (lambda a, b: (lax.mul(a, b), (a, b))),
        bwd or (lambda r, ct: (lax.mul(ct, r[1]), lax.mul(ct, r[0]))),
        **options,
    )
    return mul


def test_rule_is_used_everywhere():
    f = product(bwd=lambda r, ct: (lax.mul(ct, 10.0), lax.mul(ct, 20.0)))  # wrong on purpose, so that its use shows
    for g in (f, jit(f), checkpoint(f), lambda a, b: lax.cond(True, f, f, a, b)):
        assert [float(x) for x in grad(g, argnums=(0, 1))(2.0, 3.0)] == [10, 20]
    xs = np.ones(4, f32)
    np.testing.assert_allclose(np.asarray(vmap(grad(f))(xs, xs)), 10 * xs)
    np.testing.assert_allclose(
        np.asarray(grad(lambda x: lax.reduce_sum(vmap(f, in_axes=(None, 0))(x, xs), axes=(0,)))(f32(1))), 40
    )
    np.testing.assert_allclose(float(f(2.0, 3.0)), 6)


def test_arguments_by_keyword_and_default():
    @custom_vjp
    def scale(x, k=2.0):
        return lax.mul(x, k)

    scale.defvjp(lambda x, k: (lax.mul(x, k), k), lambda k, ct: (lax.mul(ct, k), None))
    assert float(scale(k=3.0, x=2.0)) == 6
    assert float(grad(lambda x: scale(x))(1.0)) == 2
    apart = custom_jvp(lambda x, k=2.0, shift=0.0: lax.add(lax.mul(x, k), shift))
    apart.defjvp(lambda x, t: (apart(*x), lax.mul(t[0], x[1])))
    assert float(grad(lambda x: apart(x, shift=5.0))(1.0)) == 2  # an argument after one that is left to its default
    with pytest.raises(TypeError, match="cannot all be given so: missing a required argument: 'x'"):
        scale(k=3.0)


def test_none_from_a_backward_rule_is_a_zero_cotangent():
    f = product(bwd=lambda r, ct: (None, lax.mul(ct, r[0])))
    assert [float(x) for x in grad(f, argnums=(0, 1))(2.0, 3.0)] == [0, 2]


def test_forward_mode_is_refused():
    f = product()
    for run in (lambda: jvp(f, (1.0, 2.0), (1.0, 1.0)), lambda: linearize(f, 1.0, 2.0)[1](1.0, 1.0)):
        with pytest.raises(TypeError, match=r"can't apply forward-mode autodiff \(jvp\) to a custom_vjp function"):
            run()


def test_a_tangent_that_a_program_does_not_use_needs_no_forward_mode():
    f = product()
    assert float(jit(lambda a, b: jvp(f, (a, b), (b, a))[0])(f32(2), f32(3))) == 6
    assert jit(lambda a, b: jvp(lambda a, b: (f(a, b), b)[1], (a, b), (b, a)))(f32(2), f32(3)) == (3, 2)
    squared = lambda a: jvp(lambda a: f(a, a), (a,), (a,))[0]
    assert float(lax.scan(lambda a, _: (squared(a), None), f32(2), None, length=2)[0]) == 16
    assert float(jit(lambda a: lax.cond(a > 0, squared, squared, a))(f32(3))) == 9


def test_forward_over_reverse_differentiates_the_rule():
    f = product()
    value, tangent = jvp(lambda a: grad(lambda a: f(a, lax.sin(a)))(a), (1.0,), (1.0,))
    np.testing.assert_allclose(float(tangent), 2 * np.cos(1) - np.sin(1), rtol=1e-5)


@pytest.mark.parametrize(
    "rules, error, text",
    [
        ({"fwd": lambda a, b: lax.mul(a, b)}, TypeError, "the fwd rule <lambda> of mul returns a pair"),
        ({"fwd": lambda a, b: ((a, b), None)}, TypeError, "one scalar|structure"),
        (
            {"bwd": lambda r, ct: ct},
            TypeError,
            "of mul returns a tuple, one cotangent or None per differentiable argument, got",
        ),
        ({"bwd": lambda r, ct: (ct,)}, TypeError, "cotangents, one or None per argument"),
        ({"bwd": lambda r, ct: ({"a": ct}, ct)}, TypeError, "cotangents of structure"),
        ({"bwd": lambda r, ct: (np.ones(2, f32), ct)}, ValueError, r"expected float32\[\], .*got float32\[2\]"),
    ],
)
def test_a_wrong_vjp_rule_raises_its_error(rules, error, text):
    with pytest.raises(error, match=text):
        grad(product(**rules))(2.0, 3.0)


def test_functions_without_a_rule():
    with pytest.raises(AttributeError, match="the custom_vjp function sin has no rules yet"):
        custom_vjp(lax.sin)(1.0)
    with pytest.raises(AttributeError, match="the custom_jvp function sin has no rule yet"):
        custom_jvp(lax.sin)(1.0)


def test_arguments_that_are_no_arrays():
    @functools.partial(custom_vjp, nondiff_argnums=(0,))
    def apply(f, x):
        return f(x)

    apply.defvjp(lambda f, x: (f(x), x), lambda f, x, ct: (lax.mul(ct, 2.0),))
    assert float(grad(lambda x: apply(lax.sin, x))(1.0)) == 2
    with pytest.raises(UnexpectedTracerError, match="nondiff_argnums"):
        jit(lambda n, x: apply(n, x))(3, 1.0)


def test_closing_over_a_differentiated_value_is_an_error():
    def outer(y):
        f = custom_vjp(lambda x: lax.mul(x, y))
        f.defvjp(lambda x: (lax.mul(x, y), None), lambda r, ct: (lax.mul(ct, y),))
        return jit(f)(2.0)

    with pytest.raises(UnexpectedTracerError, match="with respect to a closed-over value"):
        grad(outer)(3.0)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: f,
        jit,
        checkpoint,
        lambda f: lambda x: lax.cond(lax.lt(x, 100.0), f, f, x),
        lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
    ],
)
def test_rules_may_close_over_tracers(wrap):
    def with_slope(y):
        f = custom_jvp(lax.sin)
        f.defjvp(lambda primals, tangents: (f(*primals), lax.mul(tangents[0], lax.mul(y, 1.0))))
        return wrap(f)

    slope = lambda y: grad(with_slope(y))(0.5)
    assert float(slope(f32(3))) == 3
    assert float(jit(slope)(f32(3))) == 3
    assert float(grad(lambda y: lax.mul(y, slope(y)))(f32(3))) == 6
    np.testing.assert_allclose(np.asarray(vmap(slope)(np.arange(3, dtype=f32))), [0, 1, 2])


def test_symbolic_zeros_in_reverse_mode():
    seen = []

    @custom_vjp
    def both(x, y):
        return lax.mul(x, y), x

    def fwd(x, y):
        seen.append((x.perturbed, y.perturbed))
        x, y = custom_vjp_primal_tree_values((x, y))
        return (lax.mul(x, y), x), (x, y)

    def bwd(residuals, cts):
        seen.append([type(ct) is SymbolicZero for ct in cts])
        return lax.mul(cts[0], residuals[1]), lax.mul(cts[0], residuals[0])

    both.defvjp(fwd, bwd, symbolic_zeros=True)
    assert float(grad(lambda x: both(x, 3.0)[0])(2.0)) == 3
    assert seen == [(True, False), [False, True]]


def test_symbolic_zeros_in_forward_mode():
    @custom_jvp
    def mul(x, y):
        return lax.mul(x, y)

    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        assert type(ty) is SymbolicZero and ty.shape == () and ty.dtype == f32
        return lax.mul(x, y), lax.mul(tx, y)

    mul.defjvp(rule, symbolic_zeros=True)
    assert float(jvp(lambda x: mul(x, f32(3)), (f32(2),), (f32(1),))[1]) == 3


@pytest.mark.parametrize(
    "rule, text",
    [
        (lambda p, t: p[0], "returns a pair"),
        (lambda p, t: (p[0], (t[0],)), r"result of structure PyTreeDef\(\*\), but a tangent of structure"),
        (lambda p, t: (p[0], np.ones(2, f32)), r"expected float32\[\], .* got float32\[2\]"),
        (lambda p, t: (p[0], np.float16(1)), r"got float16\[\]"),
    ],
)
def test_a_wrong_jvp_rule_raises_its_error(rule, text):
    f = custom_jvp(lambda x: x)
    f.defjvp(rule)
    with pytest.raises(TypeError, match=text):
        jvp(f, (1.0,), (1.0,))


def test_defjvps_takes_one_rule_per_argument():
    f = custom_jvp(lambda x, y: lax.mul(x, y))
    f.defjvps(lambda t, ans, x, y: lax.mul(t, y), None)
    assert [float(g) for g in grad(f, argnums=(0, 1))(2.0, 3.0)] == [3, 0]


def test_defjvps_refuses_another_number_of_rules_and_static_arguments():
    f = custom_jvp(lambda x, y: lax.mul(x, y))
    f.defjvps(lambda t, ans, x, y: lax.mul(t, y))
    with pytest.raises(TypeError, match="one rule .or None. per argument, got 1 rules for 2 arguments"):
        grad(f)(np.float32(2), np.float32(3))
    with pytest.raises(TypeError, match="does not support nondiff_argnums and nondiff_argnames, got .'y',."):
        custom_jvp(lambda x, y: x, nondiff_argnames=("y",)).defjvps(lambda t, ans, x: t)


def test_keyword_only_arguments_with_defaults_are_left_alone():
    f = custom_jvp(lambda x, *, k=2.0: lax.mul(x, k))
    f.defjvp(lambda p, t: (f(*p), lax.mul(t[0], 2.0)))
    assert float(grad(f)(1.0)) == 2
    with pytest.raises(TypeError, match="k can be given by keyword only"):
        f(1.0, k=3.0)


def test_a_rule_with_checkpoint_inside():
    inner = checkpoint(lambda x: lax.sin(lax.sin(x)))
    f = custom_jvp(inner)
    f.defjvp(lambda primals, tangents: jvp(inner, primals, tangents))
    expected = np.cos(np.sin(0.5)) * np.cos(0.5)
    for g in (grad(f), grad(jit(f)), lambda x: linearize(f, x)[1](1.0)):
        np.testing.assert_allclose(float(g(0.5)), expected, rtol=1e-6)


def test_methods_and_docs_are_kept():
    class Model:
        k = 3.0

        @functools.partial(custom_jvp, nondiff_argnums=(0,))
        def scale(self, x):
            """Scales."""
            return lax.mul(x, self.k)

        scale.defjvp(lambda self, p, t: (self.scale(*p), lax.mul(t[0], self.k)))

    assert float(grad(Model().scale)(1.0)) == 3
    assert Model.scale.__doc__ == "Scales." and Model.scale.__name__ == "scale"


def test_custom_gradient():
    @custom_gradient
    def f(x, y):
        return lax.mul(x, y), lambda ct: (lax.mul(ct, lax.mul(y, 2.0)), lax.mul(ct, x))

    assert [float(g) for g in jit(grad(f, argnums=(0, 1)))(3.0, 4.0)] == [8, 3]
    xs = np.arange(3, dtype=f32)
    np.testing.assert_allclose(np.asarray(vmap(grad(f))(xs, xs)), 2 * xs)


def test_closures_as_arguments():
    @functools.partial(custom_vjp, nondiff_argnums=(0,))
    def call(f, x, *consts):
        return f(x, *consts)

    def bwd(f, residuals, ct):
        return vjp(f, *residuals)[1](ct)

    call.defvjp(lambda f, x, *consts: (f(x, *consts), (x, *consts)), bwd)

    def outer(y):
        f, consts = closure_convert(lambda x: lax.mul(lax.sin(x), y), f32(1))
        assert len(consts) == 1
        return call(f, f32(1), *consts)

    value, g = value_and_grad(outer)(f32(2))
    np.testing.assert_allclose([float(value), float(g)], [2 * np.sin(1), np.sin(1)], rtol=1e-6)


def test_printed_form_names_the_function():
    f = custom_jvp(lax.sin)
    f.defjvp(lambda p, t: (f(*p), t[0]))
    text = str(make_jaxpr(f)(1.0))
    assert "custom_jvp_call[" in text and "name=sin" in text and "= sin " in text


def test_a_rule_with_a_loop_whose_carry_is_forgotten():
    """The initial carry is the differentiated argument, but a step does not keep it."""

    def loop(x):
        return lax.scan(lambda c, k: (lax.mul(k, 2.0), lax.mul(lax.sin(c), k)), x, np.array([1.0, 3.0], f32))[1]

    def first(x):
        return lax.reduce_sum(loop(x), axes=(0,))

    f = custom_jvp(first)
    f.defjvp(lambda primals, tangents: jvp(first, primals, tangents))
    for g in (grad(f), grad(first), grad(jit(f)), lambda x: linearize(first, x)[1](f32(1))):
        np.testing.assert_allclose(float(g(f32(0.5))), np.cos(0.5), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
@pytest.mark.parametrize("how", ["grad", "jit", "vmap"])
def test_backward_rules_get_arrays(how, dtype):
    seen = []

    def bwd(residuals, ct):
        seen.append((ct.shape, ct.dtype.name))
        return lax.mul(ct, residuals[1]), lax.mul(ct, residuals[0])

    f = product(bwd=bwd)
    x = np.ones((), dtype)
    real = lambda a, b: lax.real(f(a, b)) if dtype == "complex64" else f(a, b)
    if how == "grad":
        grad(real)(x, x)
    elif how == "jit":
        jit(grad(real))(x, x)
    else:
        vmap(grad(real))(np.ones(3, dtype), np.ones(3, dtype))
    if dtype == "float32":
        vjp(f, x, x)[1](1.0)
    assert set(seen) == {((), dtype)}


def test_backward_rules_get_arrays_and_float0_of_integer_results():
    @custom_vjp
    def f(x, n):
        return lax.mul(x, x), n

    seen = []

    def bwd(x, cts):
        seen.extend((ct.shape, ct.dtype) for ct in cts)
        return lax.mul(cts[0], lax.mul(f32(2), x)), None

    f.defvjp(lambda x, n: (f(x, n), x), bwd)
    assert grad(lambda x: f(x, np.int32(3))[0])(f32(5)) == 10
    assert seen == [((), np.dtype("float32")), ((), np.dtype([("float0", "V")]))]


@pytest.mark.parametrize("how, shape", [(lambda f: f, ()), (jit, ()), (vmap, (4,))], ids=["eager", "jit", "vmap"])
def test_none_from_a_backward_rule_runs_the_rules_behind_it(how, shape):
    """A rule may return values that are not derivatives (as statistics of quantized training), for any cotangent."""
    seen = []

    @custom_vjp
    def scaled(x, history):
        return lax.mul(x, f32(2)), lax.add(history, f32(1))

    def bwd(history, cts):
        seen.append(tuple(ct.shape for ct in cts))
        return cts[0], lax.add(history, f32(7))

    scaled.defvjp(lambda x, history: (scaled(x, history), history), bwd)

    @custom_vjp
    def through(x, scaled):
        return lax.mul(x, f32(3))

    through.defvjp(lambda x, scaled: (through(x, scaled), None), lambda _, ct: (lax.mul(ct, f32(3)), None))

    def loss(x, history):
        return through(x, scaled(x, history)[0])

    one = np.ones(shape, f32)
    by_x, history = how(grad(loss, argnums=(0, 1)))(one, one)
    np.testing.assert_array_equal(by_x, 3 * one)
    np.testing.assert_array_equal(history, 8 * one)
    assert seen == [((), ())]


def test_a_symbolic_zero_from_a_backward_rule_ends_there():
    @custom_vjp
    def behind(x):
        return x

    behind.defvjp(lambda x: (x, None), lambda _, ct: 1 / 0)

    @custom_vjp
    def stop(x, y):
        return lax.add(x, y)

    zero = SymbolicZero(aval_of(f32(1)))
    stop.defvjp(lambda x, y: (stop(x, y), None), lambda _, ct: (ct, zero))
    assert grad(lambda x: stop(x, behind(x)))(f32(2)) == 1
