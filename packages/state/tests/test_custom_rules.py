"""Functions with derivative rules that use references, in loops and branches, under transformations."""

import numpy as np
import pytest

import bedrax.numpy as jnp
import bedrax.numpy.methods  # noqa: F401
from bedrax import lax, state
from bedrax.autodiff import checkpoint, custom_jvp, custom_vjp, grad, jvp, value_and_grad, vjp
from bedrax.batching import vmap
from bedrax.core.jitting import jit


@custom_vjp
def logged(x, ref):
    return x


def _log(ref, ct):
    state.addupdate(ref, ..., ct)
    return ct, None


logged.defvjp(lambda x, ref: (x, ref), _log)


@custom_vjp
def scaled(x, ref):
    ref[...] += 1.0
    return x * ref[...]


def _scaled_forward(x, ref):
    ref[...] += 1.0
    return x * ref[...], ref[...]


scaled.defvjp(_scaled_forward, lambda factor, ct: (10 * ct * factor, None))


@custom_jvp
def counted(x, ref):
    ref[...] += 1
    return x * 3.0


@counted.defjvp
def _counted_rule(primals, tangents):
    x, ref = primals
    ref[...] += 10
    return x * 3.0, tangents[0] * 5.0


def in_scan(fun, x, ref):
    return lax.scan(lambda c, _: (fun(c, ref), None), x, None, length=3)[0]


def in_branch(fun, x, ref):
    return lax.cond(x > 0, lambda c: in_scan(fun, c, ref), lambda c: c, x)


def in_jit(fun, x, ref):
    return jit(lambda x, ref: in_scan(fun, x, ref))(x, ref)


PLACES = [in_scan, in_branch, in_jit]
one = np.float32(1)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("outer", [lambda f: f, jit])
def test_a_backward_rule_writes_in_the_loop_backwards(place, outer):
    ref = state.new_ref(jnp.zeros(()))
    assert outer(grad(lambda x, r: place(lambda c, r: logged(c * 2.0, r), x, r)))(one, ref) == 8
    assert ref[...] == 1 + 2 + 4


def test_a_backward_rule_writes_to_the_row_of_its_round():
    ref = state.new_ref(jnp.zeros(3))
    grad(lambda x: lax.scan(lambda c, row: (logged(c * 2.0, row), None), x, ref)[0])(one)
    np.testing.assert_array_equal(ref[...], [4, 2, 1])
    grad(lambda x: logged(x, ref.at[1]) * 5)(one)
    np.testing.assert_array_equal(ref[...], [4, 7, 1])


def test_each_element_of_a_batch_has_its_own_loop():
    ref = state.new_ref(jnp.zeros(2))
    fun = lambda x, r: in_scan(lambda c, r: logged(c * x, r), x, r)
    np.testing.assert_allclose(vmap(grad(fun))(jnp.array([1.0, 2.0]), ref), [4, 32])
    np.testing.assert_array_equal(ref[...], [3, 1 + 2 + 4])


@pytest.mark.parametrize("place", PLACES)
def test_a_forward_rule_reads_and_writes(place):
    ref = state.new_ref(jnp.ones(()))
    y, g = value_and_grad(lambda x: place(scaled, x, ref))(one)
    assert (y, g, ref[...]) == (2 * 3 * 4, 20 * 30 * 40, 4)


@pytest.mark.parametrize("place", PLACES)
def test_the_reference_is_made_in_the_transformed_function(place):
    def fun(x):
        ref = state.new_ref(x**2)
        return place(scaled, x, ref) * ref[...]  # the rule does not determine the derivative of its value

    x = 2.0
    factors = (x**2 + 1) * (x**2 + 2) * (x**2 + 3)
    slope = 1000 * factors * (x**2 + 3) + x * factors * 2 * x
    got = vmap(value_and_grad(fun))(jnp.array([x, x]))
    np.testing.assert_allclose(got, [[x * factors * (x**2 + 3)] * 2, [slope] * 2], rtol=1e-6)
    np.testing.assert_allclose(jit(grad(lambda xs: vmap(fun)(xs).sum()))(jnp.array([x])), [slope], rtol=1e-6)


@pytest.mark.parametrize("place", PLACES)
def test_forward_mode_in_a_loop(place):
    def fun(x):
        count = state.new_ref(0)
        return place(counted, x, count), count[...]

    (y, n), (t, _) = jvp(fun, (one,), (one,))
    assert (y, t, n) == (27, 125, 30)
    assert grad(lambda x: fun(x)[0])(one) == 125
    np.testing.assert_array_equal(vmap(fun)(jnp.array([1.0, 2.0])), [[27, 54], [3, 3]])


def test_a_loop_whose_rounds_are_not_known():
    ref = state.new_ref(0)
    fun = lambda x: lax.while_loop(lambda c: c < 20, lambda c: counted(c, ref), x)
    assert jvp(fun, (one,), (one,)) == (27, 125) and ref[...] == 30


def test_a_rule_may_write_the_tangent_that_a_reference_has():
    @custom_jvp
    def store(x, ref):
        ref[...] = 2 * x
        return x

    @store.defjvp
    def _(primals, tangents):
        primals[1][...], tangents[1][...] = 2 * primals[0], 7 * tangents[0]
        return primals[0], tangents[0]

    def fun(x):
        ref = state.new_ref(jnp.zeros(()))
        in_scan(store, x, ref)
        return ref[...]

    assert jvp(fun, (one,), (one,)) == (2, 7) and grad(fun)(one) == 7


def test_the_derivative_of_a_reference_used_by_a_backward_rule_is_an_error():
    def fun(x):
        return in_scan(logged, x, state.new_ref(x))

    assert fun(one) == 1 and vmap(fun)(jnp.ones(1)) == 1
    with pytest.raises(ValueError, match="read or written in the backward pass"):
        grad(fun)(one)


def _by_a_reference(x):
    ref = state.new_ref(x)
    ref[0] = 5.0
    ref[...] += 1.0
    return state.freeze(ref) * x


def _with_rules(kind):
    f = (custom_jvp if kind == "jvp" else custom_vjp)(_by_a_reference)
    if kind == "jvp":
        f.defjvp(lambda primals, tangents: jvp(_by_a_reference, primals, tangents))
    else:
        backward = lambda x, ct: (vjp(_by_a_reference, x)[1](ct)[0] + 0 * _by_a_reference(ct),)
        f.defvjp(lambda x: (_by_a_reference(x), x), backward, optimize_remat=kind == "remat")
    return f


@pytest.mark.parametrize("kind", ["jvp", "vjp", "remat"])
@pytest.mark.parametrize(
    "within",
    [
        jit,
        lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
        lambda f: lambda x: lax.cond(x[1] > 0, f, lambda x: x, x),
        lambda f: lambda x: vmap(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])(x[None])[0],
        lambda f: jit(checkpoint(f)),
    ],
    ids=["jit", "scan", "cond", "vmap of scan", "checkpoint"],
)
def test_functions_and_rules_may_make_references(within, kind):
    x, f = jnp.arange(3.0), _with_rules(kind)
    np.testing.assert_allclose(within(f)(x), within(_by_a_reference)(x), rtol=1e-6)
    gradient = grad(lambda x: jnp.sum(within(f)(x)))
    expected = grad(lambda x: jnp.sum(within(_by_a_reference)(x)))(x)
    np.testing.assert_allclose(gradient(x), expected, rtol=1e-6)
    np.testing.assert_allclose(jit(gradient)(x), expected, rtol=1e-6)
