"""Programs are freed with the function that was traced."""

import gc
import weakref

import numpy as np
import pytest

from bedrax import lax
from bedrax.core import caches, config, jit


@pytest.mark.parametrize(
    "use",
    [
        lambda f: jit(f)(1.0),
        lambda f: lax.scan(f, np.float32(0), np.ones(3, np.float32)),
        lambda f: lax.while_loop(lambda x: lax.lt(x, np.float32(3)), f, np.float32(0)),
        lambda f: lax.cond(True, f, f, 1.0),
        lambda f: lax.fori_loop(0, 3, lambda i, c, f=f: f(c), np.float32(0)),
        lambda f: lax.fori_loop(0, lax.add(np.int32(3), np.int32(0)), lambda i, c, f=f: f(c), np.float32(0)),
        lambda f: lax.fori_loop(0, 3, f, np.float32(0)),
        lambda f: jit(lambda n: lax.fori_loop(0, n, f, np.float32(0)))(3),
        lambda f: lax.reduce(np.ones(3, np.float32), np.float32(0), f, (0,)),
    ],
    ids=["jit", "scan", "while_loop", "cond", "fori", "fori_while", "fori_itself", "fori_while_itself", "reduce"],
)
def test_functions_are_not_kept_alive(use, request):
    scans = request.node.callspec.id == "scan"

    def f(c, x=None):
        if c is not None and x is not None and not scans:
            return lax.add(lax.convert_element_type(c, np.float32), lax.convert_element_type(x, np.float32))
        moved = lax.add(c, np.float32(1)) if not isinstance(c, float) else c
        return moved if x is None else (moved, x)

    use(f)
    reference = weakref.ref(f)
    del f
    gc.collect()
    assert reference() is None


def test_loops_that_close_over_a_tracer_leak_nothing():
    with config.check_tracer_leaks(True):
        for upper in (3, np.int32(3)):
            out = jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: lax.add(c, x), x))(np.float32(2), upper)
            assert out == 8
            out = jit(lambda x: lax.fori_loop(0, 3, lambda i, c: lax.add(c, x), x))(np.float32(2))
            assert out == 8


def test_a_function_is_traced_once_for_all_that_jit_makes_of_it():
    traced = []

    def f(x):
        traced.append(x)
        return lax.sin(x)

    for _ in range(3):
        jit(f)(np.float32(1))
    assert len(traced) == 1
    jit(f, static_argnums=0)(np.float32(1))
    jit(f)(np.ones(2, np.float32))
    assert len(traced) == 3
    with config.no_tracing(True):  # nothing is to be traced
        jit(f)(np.float32(5))
        with pytest.raises(RuntimeError, match="jit would trace f now"):
            jit(f)(np.ones(3, np.float32))


def test_loop_bodies_are_traced_once_per_function():
    traced = []

    def body(i, x):
        traced.append(i)
        return lax.sin(x)

    for _ in range(3):
        lax.fori_loop(0, 4, body, np.float32(1))
        jit(lambda n: lax.fori_loop(0, n, body, np.float32(1)))(4)
    assert len(traced) == 2


def test_the_traces_of_a_function_are_bounded():
    f = lambda x: lax.sin(x)
    g = jit(f)
    for n in range(caches.traces.size + 5):
        g.cache.keep(("filler", n), n)
    g(np.float32(1))
    assert len(g.cache) == caches.traces.size
    assert g.cache.get(("filler", 5)) is None and g.cache.get(("filler", 7)) == 7
