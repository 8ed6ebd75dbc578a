"""The examples: counts against counts by hand, bounds against samples, a new operation under all transformations."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify

sys.path.insert(0, str(Path(__file__).parents[3]))

from examples.transformations.counting import count
from examples.transformations.intervals import bounds
from examples.transformations.repeating import repeat

f32 = np.float32


def by_while(n, x):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * f32(2)), (np.int32(0), x))[1]


def by_scan(x):
    return lax.scan(lambda c, row: (c + row * c, jnp.exp(c)), x, np.linspace(0, 1, 4, dtype=f32))


def by_cond(p, x):
    return lax.cond(p, lambda x: -x, lambda x: x * x + x, x)


@pytest.mark.parametrize(
    "f, args, wanted, indices",
    [
        (by_while, (np.int32(0), f32(1)), 1, 0),  # one test
        (by_while, (np.int32(5), f32(1)), 6 + 5 * 2, 0),
        (by_scan, (f32(1),), 4 * 3, 0),
        (by_cond, (True, f32(2)), 1, 1),
        (by_cond, (False, f32(2)), 2, 1),
        (jax.checkpoint(lambda x: jnp.sin(x) * x), (f32(1),), 2, 0),
        (lambda x: by_scan(lax.cond(x > 0, lambda x: by_scan(x)[0], lambda x: x, x)), (f32(1),), 1 + 12 + 12, 1),
    ],
)
def test_operations_are_counted(f, args, wanted, indices):
    """In a program, an operation makes an index of the boolean of a `cond`."""
    for run, extra in ((count(f), 0), (jax.jit(count(f)), indices), (count(jax.jit(f)), indices)):
        total, out = run(*args)
        assert int(total) == wanted + extra
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), out, f(*args))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize(
    "f, known",
    [
        (lambda x: by_while(np.int32(3), x), ()),
        (by_scan, ()),
        (lambda x: by_cond(True, x), ()),
        (lambda x: by_cond(False, x), ()),
        (jax.jit(lambda x: jnp.tanh(x) - x * x), ()),
        (lambda x: x**2 - x**3, ()),
        (lambda x, y: lax.scan(lambda c, _: ((c[1], c[0] * c[2], c[2]), c[0]), (x, y, y), None, length=5), (f32(0.5),)),
        (lambda x: repeat(lambda s: (s[1], s[0] - s[1]), 3, (x, x * x)), ()),
    ],
)
def test_samples_are_between_the_bounds(wrap, f, known):
    low, high = f32(-0.6), f32(0.9)
    lower, upper = wrap(lambda a, b: bounds(f)((a, b), *known))(low, high)
    below, above = jax.tree.leaves(lower), jax.tree.leaves(upper)
    assert any(np.any(a < b) for a, b in zip(below, above, strict=True))
    values = jax.jit(jax.vmap(lambda x: f(x, *known)))(np.linspace(low, high, 23, dtype=f32))
    for a, b, ys in zip(below, above, jax.tree.leaves(values), strict=True):
        assert np.all(a <= ys + 1e-5) and np.all(ys <= b + 1e-5)


def test_bounds_of_increasing_functions_are_their_values():
    lower, upper = bounds(by_scan)((f32(0.5), f32(0.75)))
    for found, x in ((lower, 0.5), (upper, 0.75)):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, by_scan(f32(x)))


def test_a_condition_that_an_interval_does_not_decide_is_refused():
    with pytest.raises(NotImplementedError, match="no bounds of the results of gt"):
        bounds(lambda x: by_cond(x > 0, x))((f32(-1), f32(1)))


def _step(state):
    x, y = state
    return x * y, y + f32(1)


START = (f32(0.5), f32(1.5))


def by_hand(x, y, times=3):
    for _ in range(times):
        x, y = _step((x, y))
    return x, y


def test_a_new_operation_under_the_transformations():
    new = lambda x, y: repeat(_step, 3, (x, y))
    args, moved = START, (f32(1), f32(-2))
    close = lambda a, b: jax.tree.map(lambda p, q: np.testing.assert_allclose(p, q, rtol=1e-5), a, b)
    close(new(*args), by_hand(*args))
    close(jax.jit(new)(*args), by_hand(*args))
    close(jax.jvp(new, args, moved), jax.jvp(by_hand, args, moved))
    xs = np.linspace(0, 1, 5, dtype=f32)
    close(jax.vmap(new, (0, None))(xs, f32(2)), jax.vmap(by_hand, (0, None))(xs, f32(2)))
    close(jax.jvp(jax.vmap(new), (xs, xs), (xs, xs)), jax.jvp(jax.vmap(by_hand), (xs, xs), (xs, xs)))
    total, out = count(new)(*args)
    assert int(total) == 3 * 2
    close(out, by_hand(*args))


def test_a_new_operation_reports_errors_and_writes_to_references():
    def checked(x):
        checkify.check(x < 3, "{} is too large", x)
        return x + f32(1)

    run = checkify.checkify(lambda x: repeat(checked, 3, x))
    assert run(f32(0))[0].get() is None
    assert "3.0 is too large" in run(f32(1))[0].get()
    ref = jax.new_ref(jnp.zeros(()))

    def noted(x):
        ref[...] += x
        return x * f32(2)

    assert float(repeat(noted, 3, f32(1))) == 8 and float(ref[...]) == 1 + 2 + 4
