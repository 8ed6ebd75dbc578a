"""Dead code elimination, inside calls, loops and branches, too."""

import numpy as np

from bedrax import lax
from bedrax.core import dead_code
from bedrax.core.jitting import jit
from bedrax.core.passes import programs_in
from bedrax.core.staging import make_jaxpr
from bedrax.core.typecheck import check_jaxpr
from bedrax.numpy_backend.executor import evaluate

X = np.arange(3, dtype=np.float32)


def names(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name
        for inner in programs_in(eqn):
            yield from names(inner)


def shrunk(fun, used, *args):
    """Return the program for some results. Checks that they equal those of the whole program."""
    jaxpr = make_jaxpr(fun)(*args).jaxpr
    smaller, _ = dead_code.dce_with(jaxpr, used)
    check_jaxpr(smaller)
    wanted = [x for x, u in zip(evaluate(jaxpr, *args), used, strict=True) if u]
    for actual, expected in zip(evaluate(smaller, *args), wanted, strict=True):
        np.testing.assert_array_equal(actual, expected)
    return smaller


def test_call():
    f = jit(lambda x, y: (lax.sin(x), jit(lambda y: (lax.cos(y), lax.exp(y)))(y)[0]))
    assert set(names(shrunk(f, [True, False], X, X))) == {"jit", "sin"}
    small = shrunk(f, [False, True], X, X)
    assert set(names(small)) == {"jit", "cos"}
    assert len(small.eqns[0].invars) == 1


def test_loops_drop_unused_carries_and_stacked_results():
    def f(x):
        def body(carry, row):
            a, b, c = carry
            return (a + row, b + a, lax.exp(c)), (lax.sin(row), lax.cos(c))

        (a, b, c), (s, t) = lax.scan(body, (X[0], X[0], X[0]), x)
        return a, b, c, s, t

    everything = {"scan", "add", "exp", "sin", "cos"}
    assert everything <= set(names(make_jaxpr(f)(X).jaxpr))
    assert set(names(shrunk(f, [True, False, False, False, False], X))) == {"scan", "add"}
    small = shrunk(f, [False, True, False, False, False], X)  # needs the first carry, too
    (scan,) = (e for e in small.eqns if e.primitive.name == "scan")
    assert scan.params["num_carry"] == 2 and len(scan.outvars) == 2
    assert set(names(shrunk(f, [False, False, False, True, False], X))) == {"scan", "sin"}
    assert {"exp", "cos"} <= set(names(shrunk(f, [False, False, False, False, True], X)))


def test_branches():
    def f(p, x, y):
        return lax.cond(p, lambda x, y: (lax.sin(x), lax.cos(y)), lambda x, y: (x, lax.exp(y)), x, y)

    small = shrunk(f, [True, False], np.bool_(True), X, X)
    assert "sin" in set(names(small)) and not {"cos", "exp"} & set(names(small))
    (cond,) = (e for e in small.eqns if e.primitive.name == "cond")
    assert len(cond.invars) == 2


def test_while_keeps_carries_that_the_condition_and_used_carries_read():
    def f(n, x):
        def goes_on(c):
            return c[0] < n + 4

        def body(c):
            n, a, b, d = c
            return n + 1, lax.sin(a), lax.exp(b), lax.add(d, a)

        return lax.while_loop(goes_on, body, (n, x, x, x))

    small = shrunk(f, [False, True, False, False], X[0], X)
    assert "sin" in set(names(small)) and "exp" not in set(names(small))
    (loop,) = (e for e in small.eqns if e.primitive.name == "while")
    assert len(loop.outvars) == 2  # the count, which the condition reads, and the used result
    check_jaxpr(small)
    small = shrunk(f, [False, False, False, True], X[0], X)
    assert "sin" in set(names(small)) and "exp" not in set(names(small))
    small = shrunk(f, [True, False, False, False], X[0], X)
    assert not {"sin", "exp"} & set(names(small))


def test_effects_stay():
    from bedrax.lax.primitives.callbacks import debug_callback

    seen = []

    def f(x):
        def body(c, _):
            debug_callback(lambda v: seen.append(float(v)), c)
            return c + X[1], lax.sin(c)

        return lax.scan(body, x, None, length=3)

    jaxpr = make_jaxpr(f)(X[0]).jaxpr
    smaller, _ = dead_code.dce_with(jaxpr, [False, False])
    evaluate(smaller, X[0])
    assert seen == [0, 1, 2]


def test_a_program_without_unused_operations_stays_the_same_object():
    """A program keeps the results of its analyses. An equal program would be processed again."""
    step = lambda c: (
        lax.add(c[0], 1),
        lax.while_loop(lambda d: lax.lt(d[0], 3), lambda d: (lax.add(d[0], 1), d[1] * 2), c)[1],
    )
    program = make_jaxpr(lambda x: lax.while_loop(lambda c: lax.lt(c[0], 3), step, (0, x))[1])(np.float32(1))
    smaller = dead_code.dce(program)
    assert dead_code.dce(smaller) is smaller
    assert dead_code.dce_for(smaller, (True,))[0] is smaller
