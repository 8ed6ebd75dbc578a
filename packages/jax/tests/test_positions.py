"""Positions of arguments and axes: one rule for every function that takes them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import api_util, lax
from jax.experimental import sparse
from jax.experimental.custom_partitioning import custom_partitioning
from jax.extend import linear_util


def product(x, y):
    return x * y


def argnums_of(transform):
    return lambda argnums: transform(product, argnums=argnums)(2.0, 3.0)


def static_of(transform):
    return lambda argnums: transform(product, static_argnums=argnums)(2.0, 3.0)


def forward_and_backward(argnums):
    forward, backward = jax.fwd_and_bwd(product, argnums)
    return backward(forward(2.0, 3.0)[1], 1.0)


def custom_rule(kind):
    def run(argnums):
        f = kind(product, nondiff_argnums=argnums)
        f.defjvp(lambda *given: (product(*given), 0.0)) if kind is jax.custom_jvp else f.defvjp(product, product)
        return f(2.0, 3.0)

    return run


def partitioned(argnums):
    f = custom_partitioning(product, static_argnums=argnums)
    f.def_partition(lambda *given: None, sharding_rule=", -> ")
    return f(jnp.float32(2), jnp.float32(3))


def described(argnums):
    return api_util.debug_info("jit", product, (2.0, 3.0), {}, static_argnums=argnums).arg_names


def partially(argnums):
    info = api_util.debug_info("jit", product, (2.0, 3.0), {})
    return api_util.argnums_partial(linear_util.wrap_init(product, debug_info=info), argnums, (2.0, 3.0))[1]


def scanned(argnums):
    axes = argnums if isinstance(argnums, tuple) and len(argnums) > 1 else (argnums,)
    return [lax.associative_scan(jnp.add, jnp.arange(6).reshape(2, 3), axis=axis).tolist() for axis in axes]


def mapped(name, argnums):
    return jax.pmap(lambda x, y: (x * y, x + y), **{name: argnums})(np.ones(1, "f"), np.ones(1, "f"))


def donated(argnums):
    x = jnp.ones(2)
    return jax.jit(lambda x, y: (x + 1, y + 1), donate_argnums=argnums)(x, x + 1)


# site -> (function of positions among two, whether a position may be given twice)
SITES = {
    "grad": (argnums_of(jax.grad), False),
    "value_and_grad": (argnums_of(jax.value_and_grad), False),
    "jacrev": (argnums_of(jax.jacrev), False),
    "jacfwd": (argnums_of(jax.jacfwd), False),
    "hessian": (argnums_of(jax.hessian), False),
    "fwd_and_bwd": (forward_and_backward, False),
    "sparse.grad": (argnums_of(sparse.grad), False),
    "sparse.value_and_grad": (argnums_of(sparse.value_and_grad), False),
    "sparse.jacrev": (argnums_of(sparse.jacrev), False),
    "sparse.jacfwd": (argnums_of(sparse.jacfwd), False),
    "api_util.argnums_partial": (partially, False),
    "checkpoint": (static_of(jax.checkpoint), True),
    "jit static": (static_of(jax.jit), True),
    "jit donated": (donated, True),
    "make_jaxpr": (lambda n: str(jax.make_jaxpr(product, static_argnums=n)(2.0, 3.0)), True),
    "custom_jvp": (custom_rule(jax.custom_jvp), True),
    "custom_vjp": (custom_rule(jax.custom_vjp), True),
    "custom_partitioning": (partitioned, True),
    "pmap donated": (partial(mapped, "donate_argnums"), True),
    "api_util.debug_info": (described, True),
    "associative_scan": (scanned, True),
}
NONE_IS_NO_POSITION = {site for site, (_, may_repeat) in SITES.items() if may_repeat} - {"associative_scan"}
NONE_IS_NO_POSITION |= {"api_util.argnums_partial"}
sites = pytest.mark.parametrize("site", SITES)


def same(a, b):
    assert str(a) == str(b)


@sites
def test_positions_count_from_the_end(site):
    run, _ = SITES[site]
    same(run(0), run(-2))
    same(run(1), run(-1))
    if site != "associative_scan":
        same(run((0, 1)), run((-2, -1)))


@sites
@pytest.mark.parametrize("argnums", [2, 5, -3, (0, 2), (-3, 1)])
def test_a_position_that_does_not_exist_is_refused(site, argnums):
    run, _ = SITES[site]
    with pytest.raises((ValueError, TypeError), match=r"names position (2|5|-3), but the number of .* is 2"):
        run(argnums)


@sites
@pytest.mark.parametrize("argnums", [(0, 0), (0, -2), (-1, 1)])
def test_a_repeated_position_counts_once_or_is_refused(site, argnums):
    run, may_repeat = SITES[site]
    if may_repeat:
        again = run(argnums)
        if site != "associative_scan":
            same(again, run(argnums[:1]))
    else:
        with pytest.raises(ValueError, match=rf"names position {argnums[0] % 2} twice"):
            run(argnums)


@sites
@pytest.mark.parametrize("argnums", [1.0, "x", (0.5,), None])
def test_values_that_are_no_positions_are_refused(site, argnums):
    run, _ = SITES[site]
    if argnums is None and site in NONE_IS_NO_POSITION:
        assert run(None) is not None
        return
    with pytest.raises((TypeError, ValueError), match=r"(must be an int|must not be empty)"):
        run(argnums)


@pytest.mark.parametrize("one", [np.int64(-1), np.int32(1), np.array(1), True])
def test_integers_of_other_libraries_are_positions(one):
    assert jax.grad(product, one)(2.0, 3.0) == 2
    assert sparse.grad(product, one)(2.0, 3.0) == 2
    assert jax.jit(product, static_argnums=one)(2.0, 3.0) == 6
    assert jax.grad(product, np.array([0, 1]))(2.0, 3.0) == (3, 2)


# ---- negative positions of functions with optional arguments


def kinds(seen, x, y, flag=True):
    seen.append(tuple(not isinstance(v, jax.core.Tracer) for v in (x, y, flag)))
    return x * y


def test_negative_positions_of_jit_are_those_of_the_function():
    seen = []
    f = partial(kinds, seen)
    assert jax.jit(f, static_argnums=-1)(2.0, 3.0) == 6
    jax.make_jaxpr(f, static_argnums=-1)(2.0, 3.0)
    assert jax.jit(f, static_argnums=-2)(2.0, 3.0) == 6
    assert seen == [(False, False, True), (False, False, True), (False, True, True)]


def test_negative_positions_of_jit_are_those_of_the_call_where_the_function_takes_any_number():
    def last(*args):
        seen.append(tuple(not isinstance(v, jax.core.Tracer) for v in args))
        return args[0]

    seen = []
    f = jax.jit(last, static_argnums=-1)
    assert [f(2.0, 3.0), f(2.0, 3.0), f(2.0, 3.0, 4.0), f(2.0, 5.0)] == [2, 2, 2, 2]
    assert seen == [(False, True), (False, False, True), (False, True)]
    assert jax.jit(lambda *args: 1, static_argnums=-1)() == 1


def test_positions_of_checkpoint_are_those_of_the_call():
    f = jax.checkpoint(lambda x, y=2.0: x * y, static_argnums=1)
    with pytest.raises(ValueError, match=r"static_argnums=\(1,\) names position 1"):
        f(1.0)
    with pytest.raises(ValueError, match="the number of positional arguments is 0"):
        jax.checkpoint(lambda x: x, static_argnums=0)(x=1.0)


def test_names_that_a_rule_cannot_take_are_refused():
    f = jax.custom_jvp(product, nondiff_argnames=("z",))
    f.defjvp(lambda *given: None)
    with pytest.raises(ValueError, match="nondiff_argnames has 'z'"):
        f(1.0, 2.0)
