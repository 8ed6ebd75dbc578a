"""Static arguments are compared by type and bits on every path that looks up a program."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bedrax.core import signatures


def described(x, n):
    return jnp.full(2, str(n).count("."), "int32") + x


def rule(n, primals, tangents):
    return described(*primals, n), tangents[0]


def with_rule(f):
    g = jax.custom_jvp(f, nondiff_argnums=1)
    g.defjvp(rule)
    return g


FUNCTIONS = {
    "jit": lambda f: jax.jit(f, static_argnums=1),
    "jit by name": lambda f: lambda x, n: named(x, n=n) if (named := jax.jit(f, static_argnames="n")) else None,
    "jit from the end": lambda f: jax.jit(lambda *args: f(*args), static_argnums=-1),
    "checkpoint": lambda f: jax.checkpoint(f, static_argnums=1),
    "checkpoint in jit": lambda f: jax.jit(jax.checkpoint(f, static_argnums=1), static_argnums=1),
    "custom_jvp": with_rule,
    "custom_jvp in jit": lambda f: jax.jit(with_rule(f), static_argnums=1),
    "pmap": lambda f: lambda x, n: jax.pmap(f, static_broadcasted_argnums=1)(x[None], n)[0],
}
EQUAL = [
    [2, 2.0, np.int32(2), np.float32(2), True + 1.0],
    [1, True, 1.0],
    [(2,), (2.0,), (2,)],
    [((1, (2,)),), ((1, (2.0,)),), ((True, (2,)),)],
    [0.0, -0.0, 0],
    [(0.0,), (-0.0,)],
    [complex(0.0, -0.0), complex(-0.0, 0.0), 0j],
    [frozenset({1}), frozenset({1.0}), frozenset({True})],
    [np.float32(0.0), np.float32(-0.0)],
]


@pytest.mark.parametrize("values", EQUAL, ids=str)
@pytest.mark.parametrize("how", FUNCTIONS)
def test_equal_values_of_other_types_or_bits_are_other_static_arguments(how, values):
    seen = []

    def spied(x, n):
        seen.append(n)
        return described(x, n)

    f = FUNCTIONS[how](spied)
    x = jnp.arange(2)
    for _ in range(3):
        for n in values:
            assert f(x, n).tolist() == described(x, n).tolist()
    if "custom_jvp" != how:  # runs eagerly
        assert {(type(n), repr(n)) for n in seen} == {(type(n), repr(n)) for n in values}


@pytest.mark.parametrize("n", [(2, 3), 0.0, float("nan"), (float("nan"),), np.float32(1.5), frozenset({2})], ids=str)
def test_each_static_value_is_traced_once(n):
    traces = []
    f = jax.jit(lambda x, n: (traces.append(n), x)[1], static_argnums=1)
    for _ in range(4):
        f(jnp.ones(2), n)
    assert len(traces) == 1
    f(jnp.ones(3), n)
    f(jnp.ones(3), n)
    assert len(traces) == 2
    f.clear_cache()
    f(jnp.ones(3), n)
    assert len(traces) == 3


def test_a_function_of_static_tuples_is_not_kept():
    def f(x, n):
        return x * n[0]

    reference = weakref.ref(f)
    g = jax.jit(f, static_argnums=1)
    assert g(jnp.ones(2), (3,)).tolist() == [3, 3]
    del f, g
    gc.collect()
    assert reference() is None


def test_options_hold_for_functions_of_static_tuples():
    traces = []
    f = jax.jit(lambda x, n: (traces.append(n), x * n[0])[1], static_argnums=1)
    x = np.arange(2.0)
    assert f(x, (3,)).dtype == jnp.float32
    with jax.enable_x64(True):
        assert f(x, (3,)).dtype == jnp.float64
    with jax.disable_jit():
        assert f(x, (3,)).tolist() == [0, 3]
    assert f(x, (3,)).dtype == jnp.float32
    assert len(traces) == 3
    assert jax.vmap(lambda x: f(x, (4,)))(x).tolist() == [0, 4]
    assert jax.grad(lambda x: f(x, (5,)))(2.0) == 5


def test_an_unhashable_static_argument_among_tuples_is_refused():
    f = jax.jit(lambda x, n: x, static_argnums=1)
    with pytest.raises(ValueError, match="hashable"):
        f(1.0, ([],))


@pytest.mark.parametrize("static", [(1,), (1, 2), (0, 3)])
def test_known_values_are_not_compared_again(monkeypatch, static):
    """Numbers, strings and tuples of them are found by their encoding, also as new objects and at several positions."""

    def call(n, y):
        args = [n if i in static else y for i in range(4)]
        return f(*args)

    f = jax.jit(lambda *args: sum(a if isinstance(a, jax.Array) else a[0][0] for a in args), static_argnums=static)
    compared = []
    split = signatures.Signature.split
    monkeypatch.setattr(signatures.Signature, "split", lambda *args: compared.append(1) or split(*args))
    values = [((2,), "a"), ((2.0,), "a"), ((True,), "a"), ((-0.0,), "a"), ((0.0,), "a"), ((2.5, None), "b")]

    def check(n):
        x = jnp.arange(3, 6)
        out = call(n, x)
        want = len(static) * n[0][0] + (4 - len(static)) * x
        assert out.dtype == want.dtype and out.tolist() == want.tolist()

    for n in values:
        check(n)
    before = len(compared)
    for (n, *rest), text in values * 2:
        check((tuple([n, *rest]), "".join(text)))
    assert len(compared) == before
    f.clear_cache()
    check(values[0])
    assert len(compared) > before


def test_a_static_tuple_at_the_address_of_a_freed_one_is_traced_again():
    f, x = jax.jit(lambda x, n: x * n[0], static_argnums=1), jnp.int32(3)
    for k in range(300):
        for kind in (int, float):  # the second tuple may have the address of the first one
            assert f(x, tuple([kind(k % 7)])).dtype == (jnp.int32 if kind is int else jnp.float32)


@pytest.mark.parametrize("static", [{"static_argnums": 0}, {"static_argnames": "n"}])
def test_errors_of_compiled_programs_name_the_argument_and_not_a_static_one(static):
    compiled = jax.jit(lambda n, x, y: n * x + y, **static).lower(2, A3, A3).compile()
    with pytest.raises(TypeError, match=r"'y': expected float32\[3\], got float32\[4\]"):
        compiled(A3, np.ones(4, np.float32))


A3 = np.ones(3, np.float32)
