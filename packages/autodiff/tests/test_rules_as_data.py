"""Rules of users are data: no rule keeps state of a call, and rules of equal parts compare equal."""

import pickle
import threading

import numpy as np
import pytest

from bedrax import lax
from bedrax.autodiff import checkpoint, checkpoint_policies, custom_jvp, custom_vjp, grad, jvp, vjp
from bedrax.batching import vmap
from bedrax.core.ir import Jaxpr
from bedrax.core.jitting import jit
from bedrax.core.staging import make_jaxpr
from bedrax.core.tracing import Trace, current, entered, set_trace
from bedrax.pytree import tree_flatten, tree_unflatten

f32 = np.float32
TWO, THREE, ONES = np.full(3, 2, f32), np.full(3, 3, f32), np.ones(3, f32)


@custom_vjp
def product(x, y):
    return lax.mul(x, y)


def product_fwd(x, y):
    """The residuals' structure depends on the differentiated arguments."""
    residuals = {}
    if x.perturbed:
        residuals["y"] = y.value
    if y.perturbed:
        residuals["x"] = x.value
    return lax.mul(x.value, y.value), residuals


def product_bwd(residuals, ct):
    return tuple(lax.mul(ct, residuals[k]) if k in residuals else None for k in ("y", "x"))


product.defvjp(product_fwd, product_bwd, symbolic_zeros=True)


@custom_jvp
def cube(x):
    return lax.integer_pow(x, 3)


@cube.defjvp
def cube_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    return cube(x), lax.mul(t, lax.mul(lax.square(x), f32(3)))


MAPS = {
    "plain": product,
    "jit": jit(product),
    "vmap": vmap(product),
    "jit of vmap": jit(vmap(product)),
    "vmap of jit": vmap(jit(product)),
    "twice": jit(vmap(vmap(product, in_axes=(None, 0)), in_axes=(0, None))),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("first", [0, 1])
def test_two_pullbacks_of_one_call(name, first):
    """Each reads its own residuals, in whatever order they are made and called."""
    g = MAPS[name]
    by_x = vjp(lambda x: g(x, THREE), TWO)[1]
    by_y = vjp(lambda y: g(TWO, y), THREE)[1]
    ct = np.ones(g(TWO, THREE).shape, f32)
    pulled = [(by_x, THREE), (by_y, TWO)]
    count = 3 if name == "twice" else 1
    for pullback, wanted in pulled if first == 0 else pulled[::-1]:
        np.testing.assert_array_equal(pullback(ct)[0], wanted * count)


def test_pullbacks_from_many_threads():
    g = jit(vmap(product))
    by_x = vjp(lambda x: g(x, THREE), TWO)[1]
    wrong, barrier = [], threading.Barrier(8)

    def work(n):
        barrier.wait()
        for _ in range(10):
            if n % 2:
                found, wanted = vjp(lambda y: g(TWO, y), THREE)[1](ONES)[0], TWO
            else:
                found, wanted = by_x(ONES)[0], THREE
            if not np.array_equal(found, wanted):
                wrong.append((n, np.asarray(found)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def _rule(fun, *args):
    (eqn,) = make_jaxpr(lambda *args: fun(*args))(*args).eqns  # traced again, as a new function
    return eqn.params["rule"]


@pytest.mark.parametrize("fun, args", [(product, (2.0, 3.0)), (cube, (2.0,))], ids=["vjp", "jvp"])
def test_equal_calls_have_equal_rules(fun, args):
    rule, again = _rule(fun, *args), _rule(fun, *args)
    assert rule is not again and rule == again and hash(rule) == hash(again)
    other = custom_jvp(lambda x: x)
    other.defjvp(cube_rule)
    assert rule != _rule(other, 2.0)


@pytest.mark.parametrize("wrap", [lambda f: f, vmap], ids=["plain", "vmap"])
@pytest.mark.parametrize("fun, args", [(product, (TWO, THREE)), (cube, (TWO,))], ids=["vjp", "jvp"])
def test_rules_can_be_pickled(fun, args, wrap):
    rule = _rule(wrap(fun), *args)
    copied = pickle.loads(pickle.dumps(_named(rule)))
    np.testing.assert_array_equal(copied.primal(*args)[0], rule.primal(*args)[0])


def _named(rule):
    """Pickle finds functions by name, so names of this module refer to the decorated functions."""
    inner = rule
    while hasattr(inner, "rule"):
        inner = inner.rule
    inner.fun = lax.mul if inner.fun is product.fun else lax.square
    return rule


def test_a_pullback_is_rebuilt_from_its_leaves():
    pullback = vjp(lambda x: product(x, THREE), TWO)[1]
    before = pullback(ONES)[0]
    leaves, tree = tree_flatten(pullback)
    np.testing.assert_array_equal(pullback(ONES)[0], before)
    np.testing.assert_array_equal(tree_unflatten(tree, leaves)(ONES)[0], before)


class Noting(Trace):
    """A library's trace. It records the parameters of functions with rules, and passes all operations on."""

    def __init__(self, parent):
        super().__init__(parent)
        self.found = []

    def process(self, prim, args, params):
        if "rule" in params:
            self.found.append(params)
        with set_trace(self.parent):
            return self.parent.process(prim, args, params)


@pytest.mark.parametrize("wrap", [lambda f: f, vmap, jit], ids=["plain", "vmap", "jit"])
@pytest.mark.parametrize("fun, args", [(product, (TWO, THREE)), (cube, (TWO,))], ids=["vjp", "jvp"])
def test_the_params_of_a_bound_call_hold_a_program(fun, args, wrap):
    """This holds in a trace of a library, which has no code for rules."""
    with entered(Noting(current.trace)) as trace:
        out = lax.exp(wrap(fun)(*args))
    np.testing.assert_array_equal(out, lax.exp(fun(*args)))
    assert all(type(params["call_jaxpr"]) is Jaxpr for params in trace.found)
    assert wrap is jit or len(trace.found) == 1


@custom_jvp
def doubled(x):
    return lax.mul(x, f32(2)) if x > 0 else x


@doubled.defjvp
def doubled_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    return lax.mul(x, f32(2)) if x > 0 else x, lax.mul(t, f32(7))


@pytest.mark.parametrize(
    "use, wanted",
    [
        (lambda x: doubled(x), 2),
        (lambda x: grad(doubled)(x), 7),
        (lambda x: jvp(doubled, (x,), (x,))[1], 7),
        (lambda x: grad(lambda y: lax.mul(doubled(x), y))(x), 2),
        (lambda x: lax.reduce_sum(vmap(lambda y: lax.mul(doubled(x), y))(ONES), (0,)), 6),
        (lambda x: grad(lambda y: lax.mul(doubled(doubled(x)), y))(x), 4),
    ],
)
def test_a_function_may_read_the_values_of_known_arguments(use, wanted):
    assert float(use(f32(1))) == wanted


@pytest.mark.parametrize("kind", [custom_jvp, custom_vjp])
def test_values_closed_over_by_a_function_with_rules_are_mapped(kind):
    def product_with(y):
        f = kind(lambda x: lax.mul(x, y))
        if kind is custom_jvp:
            f.defjvp(lambda primals, tangents: (f(*primals), lax.mul(tangents[0], f32(5))))
        else:
            f.defvjp(lambda x: (f(x), None), lambda _, ct: (lax.mul(ct, f32(5)),))
        return f

    ys = np.arange(3, dtype=f32)
    np.testing.assert_array_equal(vmap(lambda y: product_with(y)(f32(2)))(ys), 2 * ys)
    np.testing.assert_array_equal(jit(vmap(lambda y: product_with(y)(f32(2))))(ys), 2 * ys)
    total = lambda x: lax.reduce_sum(vmap(lambda y: product_with(y)(x))(ys), (0,))
    assert float(grad(total)(f32(2))) == float(jit(grad(total))(f32(2))) == 15


def test_under_a_named_axis_a_function_runs_once():
    calls = []
    f = custom_jvp(lambda x: calls.append(1) or lax.sin(x))
    f.defjvp(lambda p, t: (f(*p), lax.mul(t[0], lax.cos(p[0]))))
    out = vmap(lambda x: lax.add(x, f(f32(1))), axis_name="i")(ONES)
    np.testing.assert_allclose(out, 1 + np.sin(ONES), rtol=1e-6)
    assert len(calls) == 1


def test_a_collective_in_a_function_with_a_rule_is_found():
    f = custom_jvp(lambda x: lax.mul(x, lax.psum(f32(1), "i")))
    f.defjvp(lambda p, t: (f(*p), lax.mul(t[0], f32(3))))
    np.testing.assert_array_equal(vmap(lambda x: lax.add(x, f(f32(2))), axis_name="i")(ONES), ONES * 7)
    total = lambda y: lax.reduce_sum(vmap(lambda x: f(y), axis_name="i", axis_size=3)(ONES), (0,))
    assert float(jvp(total, (f32(2),), (f32(1),))[1]) == 9


@pytest.mark.parametrize(
    "make",
    [
        lambda: checkpoint_policies.save_only_these_names("a"),
        lambda: checkpoint_policies.save_anything_except_these_names("a", "b"),
        lambda: checkpoint_policies.save_any_names_but_these("a"),
        lambda: checkpoint_policies.save_from_both_policies(
            checkpoint_policies.dots_saveable, checkpoint_policies.save_only_these_names("a")
        ),
        lambda: checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
        lambda: checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"],
            names_which_can_be_offloaded=["b"],
            offload_src="device",
            offload_dst="pinned_host",
        ),
    ],
)
def test_policies_compare_by_value(make):
    assert make() == make() and hash(make()) == hash(make())
    assert make() != checkpoint_policies.save_only_these_names("z")
    assert pickle.loads(pickle.dumps(make())) == make()


def test_a_policy_made_in_every_step_adds_nothing_to_a_program():
    def f(x):
        return lax.sin(lax.sin(x))

    def step():
        policy = checkpoint_policies.save_only_these_names("a")
        return grad(checkpoint(f, policy=policy))(f32(1))

    program = make_jaxpr(checkpoint(f))(f32(1)).eqns[0].params["jaxpr"]
    step()
    size = len(program.cache)
    for _ in range(5):
        step()
    assert len(program.cache) == size > 0
